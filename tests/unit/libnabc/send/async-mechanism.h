/* SPDX-License-Identifier: MIT */
/* async-mechanism.h - a ring of each mechanism, and its completions one by one. */
#ifndef ASYNC_MECHANISM_H
#define ASYNC_MECHANISM_H

#include <nabc-async.h>
#include <nabc.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

#include "send/async.h"

#include "async-fixture.h"
#include "nabc-fixture.h"
#include "suite.h"

enum { EPOLL, URING, MECHANISMS };

static NC_sender *ring;

/* Returns false if that mechanism is unavailable here. */
static inline bool open_ring(int mechanism, size_t size, unsigned depth)
{
	if (mechanism == URING && !may_use_uring())
		return false;
	open_cache(size);
	ring = NC_sender_open(cache, depth, mechanism == EPOLL ? NC_SENDER_NO_URING : 0);
	ck_assert_ptr_nonnull(ring);
	ck_assert_ptr_eq(ring->backend, mechanism == EPOLL ? &nc_async_epoll : &nc_async_uring);
	return true;
}

static inline void close_ring(void)
{
	FAILS(NC_cache_close(cache), EBUSY);
	ck_assert_int_eq(NC_sender_close(ring), 0);
	close_cache();
}

/* Returns the next completion; awaits it by the descriptor, as a program does. */
static inline struct NC_completion next_completion(void)
{
	struct NC_completion done;
	int count;

	while ((count = NC_sender_reap(ring, &done, sizeof(done), 1)) == 0)
		await(NC_sender_fd(ring), POLLIN);
	ck_assert_int_eq(count, 1);
	return done;
}

#endif
