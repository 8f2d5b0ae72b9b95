/* SPDX-License-Identifier: MIT */
/* collector-fixture.h - a cache with a collector, and its units. */
#ifndef COLLECTOR_FIXTURE_H
#define COLLECTOR_FIXTURE_H

#include <nabc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "nabc-fixture.h"
#include "suite.h"

static inline struct NC_cache_stat stat_now(void)
{
	struct NC_cache_stat stat;

	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	return stat;
}

static inline void open_with(struct NC_cache_options options)
{
	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
}

static inline size_t insert_kind(uint64_t seed, size_t size, enum NC_kind kind)
{
	NC_handle handle;
	size_t id, length, at = 0;

	ck_assert_int_eq(NC_unit_alloc(cache, &handle, size, 0, kind, 0), 0);
	for (size_t i = 0; at < size; i++) {
		void *fragment = NC_fragment(&handle, i, &length);

		pattern_fill(fragment, seed, at, length);
		at += length;
	}
	ck_assert_int_eq(NC_insert(&handle), 0);
	id = NC_cache_id(&handle);
	ck_assert_int_eq(NC_free(&handle), 0);
	return id;
}

static inline void check_bytes(size_t id, uint64_t seed, size_t size)
{
	unsigned char *got = must_alloc(size);

	ck_assert_int_eq(NC_pread(cache, id, got, size, 0), (ssize_t)size);
	ck_assert_uint_eq(pattern_match(got, seed, 0, size), size);
	free(got);
}

#endif
