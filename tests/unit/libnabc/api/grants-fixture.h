/* SPDX-License-Identifier: MIT */
/*
 * grants-fixture.h - two caches of one process and a member of the first; a thread does the
 * owners' work.
 */
#ifndef GRANTS_FIXTURE_H
#define GRANTS_FIXTURE_H

#include <errno.h>
#include <nabc.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nabc-fixture.h"
#include "process-fixture.h"
#include "suite.h"
#include "unit-holds.h"

static NC_cache *second; /* another cache of this process */
static char directory[64], path[2][100];

static pthread_t dispatcher;
static _Atomic bool dispatching;

static inline void *dispatch(void *context)
{
	NC_cache *caches[2] = {cache, second};

	(void)context;
	while (atomic_load(&dispatching)) {
		struct pollfd wait[2] = {{.fd = NC_cache_fd(caches[0]), .events = POLLIN},
					 {.fd = NC_cache_fd(caches[1]), .events = POLLIN}};

		(void)poll(wait, 2, 5);
		for (unsigned i = 0; i < 2; i++)
			if (NC_cache_dispatch(caches[i]) < 0)
				return "NC_cache_dispatch";
	}
	return NULL;
}

static inline void start_dispatching(void)
{
	atomic_store(&dispatching, true);
	ck_assert_int_eq(pthread_create(&dispatcher, NULL, dispatch, NULL), 0);
}

static inline void stop_dispatching(void)
{
	void *complaint;

	atomic_store(&dispatching, false);
	pthread_join(dispatcher, &complaint);
	ck_assert_msg(!complaint, "%s", (const char *)complaint);
}

static inline void open_owners(void)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB, .member_size = 256 << 10,
				      .flags = NO_THREAD_TO_FORK);

	make_directory(directory);
	cache = NC_cache_open(&options);
	second = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	ck_assert_ptr_nonnull(second);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/%u", directory, i);
		ck_assert_int_eq(NC_cache_serve(i ? second : cache, path[i], NULL), 0);
	}
	start_dispatching();
}

static inline void close_owners(void)
{
	stop_dispatching();
	ck_assert_int_eq(NC_cache_close(second), 0);
	close_cache();
	rmdir(directory);
}

static inline NC_cache *join(unsigned which, unsigned flags)
{
	struct NC_attach_options options = NC_ATTACH_OPTIONS_INIT(.flags = flags);
	NC_cache *made = NC_cache_attach(path[which], &options);

	ck_assert_ptr_nonnull(made);
	return made;
}

static inline size_t insert_in(NC_cache *in, uint64_t seed, size_t size, enum NC_kind kind)
{
	return insert_as(in, seed, size, 0, kind);
}

static inline bool reads(NC_cache *in, size_t id, uint64_t seed, size_t size)
{
	unsigned char *data = must_alloc(size);
	ssize_t got = NC_pread(in, id, data, size, 0);
	bool same = got == (ssize_t)size && pattern_match(data, seed, 0, size) == size;

	free(data);
	return same;
}

/* Every call on such a cache, or none, fails. */
static inline void check_calls_fail(NC_cache *in, int error)
{
	struct NC_range range = {.id = 1, .length = 1};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	struct NC_stat stat;
	NC_handle handle = {{0}};
	size_t cursor = 0, run;
	char byte;

	FAILS(NC_unit_alloc(in, &handle, 10, 0, NC_KIND_AUTO, 0), error);
	FAILS(NC_unit_read(&handle, 0, 1, 0), EINVAL);
	FAILS(NC_insert(&handle), EINVAL);
	FAILS(NC_send(in, 0,
		      &(struct NC_send)NC_SEND_INIT(.ranges = &(struct NC_range){1, 0, 1},
						    .range_count = 1)),
	      error);
	FAILS(NC_send(in, 0, &message), error);
	FAILS(NC_destroy(in, 1), error);
	FAILS(hold_id(in, 1), error);
	FAILS(release_id(in, 1), EINVAL);
	FAILS(NC_stat(in, 1, &stat, sizeof(stat)), error);
	FAILS(NC_list(in, &cursor, &stat, sizeof(stat), 1), error);
	FAILS(NC_grant(in, 1, NC_USER, 1), error);
	FAILS(NC_revoke(in, 1, NC_USER, 1), error);
	FAILS(NC_grants(in, 1, NULL, 0, 0), error);
	FAILS(NC_pread(in, 1, &byte, 1, 0), error);
	NULL_FAILS(data_of_id(in, 1, 0, &run), EINVAL);
	FAILS(NC_cache_serve(in, "/nonexistent", NULL), error);
}

#endif
