/* SPDX-License-Identifier: MIT */
/*
 * async-fixture.h - shared by the tests of asynchronous sends: the mechanisms that
 * can be tested here, units of a kind, messages, and received data.
 */
#ifndef ASYNC_FIXTURE_H
#define ASYNC_FIXTURE_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <nabc-async.h>
#include <nabc.h>

#include "send/async.h"

#include "nabc-fixture.h"
#include "suite.h"

#define KIB ((size_t)1 << 10)

/* Valgrind 3.19 hangs in io_uring_enter(). */
static inline bool may_use_uring(void)
{
	struct io_uring ring;
	int error;

	if (getenv("NABC_TEST_NO_URING"))
		return false;
	error = io_uring_queue_init(8, &ring, 0);
	if (error == 0)
		io_uring_queue_exit(&ring);
	else
		printf("async: no io_uring: %s\n", strerror(-error));
	return error == 0;
}

static inline unsigned holds_of(size_t id)
{
	struct NC_stat stat;

	ck_assert_int_eq(NC_stat(NULL, id, &stat, sizeof(stat)), 0);
	return stat.holds;
}

static inline struct NC_cache_stat statistics(void)
{
	struct NC_cache_stat stat;

	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	return stat;
}

/* Asserts that the next length bytes of fd are the pattern of seed, from at on. */
static inline void expect_pattern(int fd, uint64_t seed, size_t at, size_t length)
{
	char *got = must_alloc(length);

	read_exactly(fd, got, length);
	ck_assert_uint_eq(pattern_match(got, seed, at, length), length);
	free(got);
}

static inline void expect_text(int fd, const char *text)
{
	char got[256];

	read_exactly(fd, got, strlen(text));
	ck_assert_mem_eq(got, text, strlen(text));
}

/* Asserts that the stream ends here. */
static inline void expect_end(int fd)
{
	char byte;

	ck_assert_int_eq(read(fd, &byte, 1), 0);
}

#endif
