/* SPDX-License-Identifier: MIT */
/*
 * ring-buffers-fixture.h - a cache and a ring that only its thread may use, whose memory is
 * registered with it.  All routes are fixed to zero-copy, since the kernel copies on a loopback.
 */
#ifndef RING_BUFFERS_FIXTURE_H
#define RING_BUFFERS_FIXTURE_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <nabc-async.h>
#include <nabc.h>

#include "async-fixture.h"
#include "nabc-fixture.h"
#include "pinned.h"
#include "send-op-fixture.h"
#include "suite.h"
#include "os/registered.h"
#include "send/ring-buffers.h"
#include "send/zerocopy.h"

#define HEAD "HTTP/1.1 200 OK\r\n\r\n"

static struct io_uring ring;
static NC_ring_buffers *buffers;
static size_t at_start;
static unsigned stale_calls;

static inline void stale(void *data)
{
	ck_assert_ptr_eq(data, &ring);
	stale_calls++;
}

static inline void open_registering_cache(uint64_t flags)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 64 * MIB,
				      .flags = NC_CACHE_NO_THREAD | NC_CACHE_NO_HUGE | flags);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
}

/* Returns false if io_uring is unavailable, or nothing can be registered here. */
static inline bool begin(void)
{
	struct io_uring_params parameters = {.flags = IORING_SETUP_SINGLE_ISSUER |
						      IORING_SETUP_DEFER_TASKRUN};

	if (getenv("NABC_TEST_NO_URING") || !may_pin())
		return false;
	if (io_uring_queue_init_params(8, &ring, &parameters) < 0) {
		puts("ring-buffers: no such io_uring");
		return false;
	}
	at_start = pinned();
	stale_calls = 0;
	open_registering_cache(0);
	ck_assert_int_eq(NC_route_set(NULL, "*", NC_METHOD_ZEROCOPY), 0);
	buffers = NC_ring_buffers_open(NULL, &ring, stale, &ring);
	ck_assert_ptr_nonnull(buffers);
	buffers->table->after = 0;
	buffers->zerocopy->budget.limit = UINT64_MAX;
	return true;
}

/* Nothing remains pinned. */
static inline void end(void)
{
	if (buffers)
		ck_assert_int_eq(NC_ring_buffers_close(buffers), 0);
	buffers = NULL;
	await_pinned(at_start);
	close_cache();
	io_uring_queue_exit(&ring);
}

static inline NC_send_op *open_op(int fd, const struct NC_range *range, unsigned flags)
{
	struct NC_send message = NC_SEND_INIT(.header = HEAD, .header_length = sizeof(HEAD) - 1,
					      .ranges = range, .range_count = 1, .flags = flags);
	NC_send_op *op = NC_send_op_open(NULL, fd, &message, 0);

	ck_assert_ptr_nonnull(op);
	return op;
}

/* Prepares a step of that many submissions. */
static inline void prepare_step(NC_send_op *op, int steps)
{
	ck_assert_int_eq(NC_send_op_steps(op, buffers), steps);
	for (int i = 0; i < steps; i++)
		ck_assert_int_eq(NC_prep_send(io_uring_get_sqe(&ring), op), 0);
}

/* Waits for a completion and returns the progress. */
static inline int next(NC_send_op *op)
{
	struct io_uring_cqe *cqe;
	int progress;

	ck_assert_int_ge(io_uring_submit_and_wait(&ring, 1), 0);
	ck_assert_int_eq(io_uring_peek_cqe(&ring, &cqe), 0);
	progress = NC_send_op_complete(op, cqe);
	io_uring_cqe_seen(&ring, cqe);
	return progress;
}

static inline void finish(NC_send_op *op, int progress)
{
	while (progress == NC_PROGRESS_SENT || progress == NC_PROGRESS_WAIT)
		progress = next(op);
	ck_assert_int_eq(progress, NC_PROGRESS_DONE);
	ck_assert_int_eq(NC_send_op_close(op), 0);
}

static inline void expect_message(int fd, uint64_t seed, size_t at, size_t length)
{
	expect_text(fd, HEAD);
	expect_pattern(fd, seed, at, length);
}

/* As begin(), with a message of the first bytes of a unit of that size. */
static inline bool begin_message(NC_send_op **op, struct NC_range *range, size_t size, int pair[2])
{
	if (!begin())
		return false;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
	*range = (struct NC_range){.id = insert_as(NULL, 1, size, 0, NC_KIND_APPENDED),
				   .length = 100 * KIB};
	*op = open_op(pair[0], range, 0);
	return true;
}

#endif
