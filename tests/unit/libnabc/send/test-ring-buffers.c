/* SPDX-License-Identifier: MIT */
/*
 * test-ring-buffers.c - unit tests of ring-buffers.c: sends from memory that is registered
 * with the program's ring, whatever becomes of the header, the unit, the operation or the
 * ring.  Each test owns its cache and its ring, which only its thread may use.  All routes
 * are fixed to zero-copy, since the kernel copies on a loopback.
 */
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <nabc-async.h>
#include <nabc.h>

#include "async-fixture.h"
#include "nabc-fixture.h"
#include "pinned.h"
#include "ring-buffers-fixture.h"
#include "suite.h"

/* Header and body by two submissions; the memory remains registered for later messages. */
START_TEST(test_linked)
{
	struct NC_range range = {.offset = 5, .length = 200 * KIB};
	int pair[2];

	if (!begin())
		return;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 1 << 20, 1 << 20);
	range.id = insert_as(NULL, 1, 300 * KIB, 0, NC_KIND_APPENDED);
	for (unsigned i = 1; i <= 3; i++) {
		NC_send_op *op = open_op(pair[0], &range, 0);

		prepare_step(op, 2);
		/* Prepared, it uses the memory. */
		FAILS(NC_ring_buffers_close(buffers), EBUSY);
		FAILS(NC_send_op_steps(op, buffers), EINVAL);
		ck_assert_int_eq(next(op), NC_PROGRESS_NEXT);
		ck_assert_uint_eq(NC_send_op_sent(op), sizeof(HEAD) - 1);
		finish(op, next(op));
		expect_message(pair[1], 1, 5, range.length);
		ck_assert_uint_eq(statistics().registered_sends, i);
		ck_assert_uint_eq(statistics().registrations, 1);
	}
	ck_assert_uint_gt(statistics().registered_bytes, 0);
	ck_assert_uint_eq(pinned(), at_start + statistics().registered_bytes);
	FAILS(NC_cache_close(cache), EBUSY);
	close_pair(pair);
	ck_assert_int_eq(NC_ring_buffers_close(buffers), 0);
	buffers = NULL;
	ck_assert_uint_eq(statistics().registered_bytes, 0);
	ck_assert_uint_eq(statistics().registrations, 1);
	end();
}
END_TEST

/* A socket that takes parts: the rest continues from registered memory, without a header. */
START_TEST(test_parts)
{
	struct NC_range range = {.length = MIB};
	size_t got = 0, total = sizeof(HEAD) - 1 + MIB;
	int pair[2], progress = NC_PROGRESS_AGAIN, steps = 2;
	unsigned char *bytes;
	NC_send_op *op;

	if (!begin())
		return;
	bytes = must_alloc(total);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 64 << 10, 64 << 10);
	set_nonblocking(pair[0]);
	set_nonblocking(pair[1]);
	range.id = insert_as(NULL, 1, MIB, 0, NC_KIND_APPENDED);
	op = open_op(pair[0], &range, NC_SEND_DONTWAIT);
	while (progress != NC_PROGRESS_DONE) {
		ssize_t length;

		if (progress == NC_PROGRESS_AGAIN || progress == NC_PROGRESS_FULL) {
			ck_assert_int_eq(NC_send_op_steps(op, buffers) > 0, 1);
			for (int i = 0; i < steps; i++)
				ck_assert_int_eq(NC_prep_send(io_uring_get_sqe(&ring), op), 0);
			steps = 1;
		}
		progress = next(op);
		ck_assert_int_ge(progress, 0);
		while ((length = read(pair[1], bytes + got, total - got)) > 0)
			got += (size_t)length;
		if (progress == NC_PROGRESS_FULL)
			await(pair[0], POLLOUT);
	}
	while (got < total) {
		ssize_t length;

		await(pair[1], POLLIN);
		length = read(pair[1], bytes + got, total - got);
		ck_assert_int_gt(length, 0);
		got += (size_t)length;
	}
	ck_assert_mem_eq(bytes, HEAD, sizeof(HEAD) - 1);
	ck_assert_uint_eq(pattern_match(bytes + sizeof(HEAD) - 1, 1, 0, MIB), MIB);
	ck_assert_uint_ge(statistics().registered_sends, 2);
	ck_assert_int_eq(NC_send_op_close(op), 0);
	free(bytes);
	close_pair(pair);
	end();
}
END_TEST

/* Messages for which one submission is as good, or the only way. */
START_TEST(test_one_step)
{
	struct NC_range ranges[2] = {{.length = 100 * KIB}, {.length = 100 * KIB}};
	struct NC_send message =
		NC_SEND_INIT(.header = HEAD, .header_length = sizeof(HEAD) - 1, .ranges = ranges);
	size_t large;
	int pair[2];

	if (!begin())
		return;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
	ranges[0].id = ranges[1].id = insert_as(NULL, 1, 200 * KIB, 0, NC_KIND_APPENDED);
	large = insert_as(NULL, 2, 5 * MIB, 0, NC_KIND_APPENDED);
	for (unsigned i = 0; i < 4; i++) {
		NC_send_op *op;

		message.range_count = i == 0 ? 2 : 1;
		message.flags = i == 1 ? NC_SEND_COPY : 0;
		ranges[0].length = i == 2 ? 20 * KIB : 100 * KIB;
		if (i == 3)
			/* In two blocks. */
			ranges[0] = (struct NC_range){
				.id = large, .offset = 2 * MIB - 50 * KIB, .length = 100 * KIB};
		op = NC_send_op_open(NULL, pair[0], &message, 0);
		ck_assert_ptr_nonnull(op);
		prepare_step(op, 1);
		finish(op, next(op));
		expect_text(pair[1], HEAD);
		if (i == 3)
			expect_pattern(pair[1], 2, ranges[0].offset, ranges[0].length);
		else
			expect_pattern(pair[1], 1, 0, ranges[0].length);
		if (i == 0)
			expect_pattern(pair[1], 1, 0, ranges[1].length);
		ck_assert_uint_eq(statistics().registered_sends, 0);
	}
	close_pair(pair);
	end();
}
END_TEST

static void *destroy_unit(void *id)
{
	ck_assert_int_eq(NC_destroy(NULL, *(const size_t *)id), 0);
	return NULL;
}

/* Another thread closes the segment: the owner is asked, and only it can unpin. */
START_TEST(test_other_thread)
{
	struct NC_range range;
	pthread_t thread;
	NC_send_op *op;
	int pair[2];

	/* In a segment of its own. */
	if (!begin_message(&op, &range, 6 * MIB, pair))
		return;
	prepare_step(op, 2);
	ck_assert_int_eq(next(op), NC_PROGRESS_NEXT);
	finish(op, next(op));
	expect_message(pair[1], 1, 0, range.length);
	ck_assert_uint_eq(pinned(), at_start + 2 * MIB);
	ck_assert_int_eq(pthread_create(&thread, NULL, destroy_unit, &range.id), 0);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(stale_calls, 1);
	ck_assert_uint_eq(pinned(), at_start + 2 * MIB);
	ck_assert_int_eq(NC_ring_buffers_clear(buffers), 0);
	await_pinned(at_start);
	ck_assert_uint_eq(statistics().registered_bytes, 0);
	ck_assert_int_eq(NC_ring_buffers_clear(buffers), 0);
	close_pair(pair);
	end();
}
END_TEST

/* The unit is destroyed while the peer has read nothing: its bytes arrive all the same. */
START_TEST(test_destroyed_in_flight)
{
	struct NC_range range;
	NC_send_op *op;
	int pair[2];

	/* In a segment of its own. */
	if (!begin_message(&op, &range, 6 * MIB, pair))
		return;
	prepare_step(op, 2);
	ck_assert_int_eq(NC_destroy(NULL, range.id), 0);
	ck_assert_int_eq(next(op), NC_PROGRESS_NEXT);
	finish(op, next(op));
	/* With its last hold the segment was closed, by the owner of the ring. */
	ck_assert_uint_eq(stale_calls, 0);
	await_pinned(at_start);
	(void)insert_as(NULL, 9, 6 * MIB, 0, NC_KIND_APPENDED);
	expect_message(pair[1], 1, 0, range.length);
	close_pair(pair);
	end();
}
END_TEST

START_TEST(test_errors)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB);
	struct NC_range range = {.length = 100 * KIB};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	NC_cache *other;
	NC_send_op *op;
	int pair[2];

	if (!begin())
		return;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
	NULL_FAILS(NC_ring_buffers_open(NULL, NULL, NULL, NULL), EINVAL);
	FAILS(NC_ring_buffers_clear(NULL), EINVAL);
	FAILS(NC_ring_buffers_close(NULL), EINVAL);
	options.flags = NC_CACHE_NO_REGISTER;
	other = NC_cache_open(&options);
	ck_assert_ptr_nonnull(other);
	NULL_FAILS(NC_ring_buffers_open(other, &ring, NULL, NULL), EOPNOTSUPP);
	range.id = insert_as(other, 1, 100 * KIB, 0, NC_KIND_APPENDED);
	op = NC_send_op_open(other, pair[0], &message, 0);
	ck_assert_ptr_nonnull(op);
	FAILS(NC_send_op_steps(op, buffers), EINVAL);
	FAILS(NC_send_op_steps(op, NULL), EINVAL);
	FAILS(NC_send_op_steps(NULL, buffers), EINVAL);
	ck_assert_int_eq(NC_send_op_close(op), 0);
	ck_assert_int_eq(NC_cache_close(other), 0);
	close_pair(pair);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_linked);
	tcase_add_test(tcase, test_parts);
	tcase_add_test(tcase, test_one_step);
	tcase_add_test(tcase, test_other_thread);
	tcase_add_test(tcase, test_destroyed_in_flight);
	tcase_add_test(tcase, test_errors);
}

RUN_SUITE("ring-buffers", fill)
