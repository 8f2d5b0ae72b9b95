/* SPDX-License-Identifier: MIT */
/*
 * transmit-fixture.h - shared by the tests of transmit.c: a cache with its
 * transmitter, and units with a pattern.
 */
#ifndef TRANSMIT_FIXTURE_H
#define TRANSMIT_FIXTURE_H

#include <nabc-worker.h>
#include <nabc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#include "base/id.h"
#include "cache/index.h"
#include "cache/inspect.h"
#include "membership/handle.h"
#include "send/route.h"
#include "send/transmit.h"
#include "store/pool.h"
#include "store/unit.h"

#include "plain-ids.h"
#include "suite.h"

#define PAGE ((size_t)4096)
#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static struct nc_index cache;
static struct nc_transmit transmit;

static inline void open_cache(size_t size, unsigned flags)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = size, .flags = flags);

	ck_assert_int_eq(nc_index_init_owner(&cache, &options), 0);
	use_plain_ids(&cache);
	nc_transmit_init(&transmit, &cache);
	/* As for other machines: then small units are spliced too. */
	transmit.local_splice = NC_ROUTE_CLASS_MIN;
}

static inline void close_cache(void)
{
	nc_transmit_fini(&transmit);
	nc_index_fini(&cache);
}

/* Makes a unit with the pattern of a seed. */
static inline size_t insert(uint64_t seed, size_t size, size_t fraglen, enum NC_kind kind)
{
	unsigned char *data = must_alloc(size);
	NC_handle handle;
	size_t id;

	pattern_fill(data, seed, 0, size);
	ck_assert_int_eq(nc_handle_alloc(&handle, &cache, size, fraglen, kind, 0), 0);
	ck_assert_int_eq(nc_handle_write(&handle, 0, data, size), (ssize_t)size);
	ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
	id = nc_handle_id(&handle);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	free(data);
	return id;
}

static inline uint32_t holds_of(size_t id)
{
	return nc_word_holds(nc_unit_word(nc_units_at(&cache.own.units, nc_id_slot(id))));
}

static inline struct NC_cache_stat statistics(void)
{
	struct NC_cache_stat stat;

	nc_inspect_counters(&cache, &stat);
	return stat;
}

#endif
