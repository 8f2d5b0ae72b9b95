/* SPDX-License-Identifier: MIT */
/*
 * nabc-fixture.h - shared by the tests of the exported calls: the default cache,
 * units with a pattern, and calls that must fail with an errno.
 */
#ifndef NABC_FIXTURE_H
#define NABC_FIXTURE_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "suite.h"
#include "unit-holds.h"

#define MIB ((size_t)1 << 20)

/* A call must fail with -1 and that errno. */
#define FAILS(call, error)                                                                         \
	do {                                                                                       \
		errno = 0;                                                                         \
		ck_assert_int_eq(call, -1);                                                        \
		ck_assert_int_eq(errno, error);                                                    \
	} while (0)

#define NULL_FAILS(call, error)                                                                    \
	do {                                                                                       \
		errno = 0;                                                                         \
		ck_assert_ptr_null(call);                                                          \
		ck_assert_int_eq(errno, error);                                                    \
	} while (0)

/*
 * For a cache whose owner forks: see fork_alone().  Threads and processes are
 * tested without ASan.
 */
#ifdef __SANITIZE_ADDRESS__
#define NO_THREAD_TO_FORK NC_CACHE_NO_THREAD
#else
#define NO_THREAD_TO_FORK 0
#endif

static NC_cache *cache;

static inline void open_cache(size_t size)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = size, .member_size = 256 << 10,
				      .flags = NC_CACHE_NO_THREAD);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
}

static inline void close_cache(void)
{
	ck_assert_int_eq(NC_cache_close(cache), 0);
	cache = NULL;
}

static inline size_t insert_as(NC_cache *in, uint64_t seed, size_t size, size_t fraglen,
			       enum NC_kind kind)
{
	unsigned char *data = must_alloc(size);
	NC_handle handle;
	size_t id;

	pattern_fill(data, seed, 0, size);
	ck_assert_int_eq(NC_unit_alloc(in, &handle, size, fraglen, kind, 0), 0);
	ck_assert_int_eq(NC_write(&handle, data, size, 0), (ssize_t)size);
	ck_assert_int_eq(NC_insert(&handle), 0);
	id = NC_cache_id(&handle);
	ck_assert_uint_ne(id, 0);
	ck_assert_int_eq(NC_free(&handle), 0);
	free(data);
	return id;
}

static inline size_t insert(uint64_t seed, size_t size)
{
	return insert_as(NULL, seed, size, 0, NC_KIND_AUTO);
}

/* Runs the owner's loop until a descriptor is readable. */
static inline void dispatch_until(int fd)
{
	while (!readable(fd)) {
		struct pollfd wait[2] = {{.fd = NC_cache_fd(cache), .events = POLLIN},
					 {.fd = fd, .events = POLLIN}};

		ck_assert_int_ge(poll(wait, 2, 60000), 1);
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
	}
}

static inline bool alive(size_t id)
{
	struct NC_stat stat;

	return NC_stat(NULL, id, &stat, sizeof(stat)) == 0;
}

/* Makes every call that needs a cache, in a process that has none. */
static inline void check_no_cache(int error)
{
	struct NC_range range = {.id = 1, .length = 1};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	struct NC_backend_options options = NC_BACKEND_OPTIONS_INIT(.channels = 1);
	struct NC_cache_stat cache_stat;
	struct NC_stat stat;
	NC_handle handle = {{0}};

	FAILS(NC_alloc(&handle, 10, 0), error);
	FAILS(NC_unit_alloc(NULL, &handle, 10, 0, NC_KIND_RECYCLED, 0), error);
	FAILS(NC_destroy(NULL, 1), error);
	FAILS(hold_id(NULL, 1), error);
	FAILS(release_id(NULL, 1), EINVAL);
	FAILS(NC_stat(NULL, 1, &stat, sizeof(stat)), error);
	FAILS(NC_cache_stat(NULL, &cache_stat, sizeof(cache_stat)), error);
	FAILS(NC_socksend(0, 1, 0, 1), error);
	FAILS(NC_send(NULL, 0, &message), error);
	NULL_FAILS(NC_backend_start(NULL, &options), error);
}

/* There must be no default cache, else the calls would not try to attach. */
static inline void check_none(void)
{
	setenv("NABC_CACHE", "/nonexistent/socket", 1);
	check_no_cache(ENOENT);
	unsetenv("NABC_CACHE");
}

#endif
