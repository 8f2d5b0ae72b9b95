/* SPDX-License-Identifier: MIT */
/*
 * test-ring-buffers-steps.c - unit tests of ring-buffers.c: completions in every order, and those
 * that never come; the test itself plays the kernel.  Each test owns its cache and its ring.
 */
#include <errno.h>
#include <liburing.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <nabc-async.h>
#include <nabc.h>

#include "os/registered.h"
#include "send/ring-buffers.h"

#include "async-fixture.h"
#include "nabc-fixture.h"
#include "ring-buffers-fixture.h"
#include "send-op-fixture.h"
#include "suite.h"

/* Prepares the header's submission and the body's, as yet unsubmitted. */
static void prepare_both(NC_send_op *op, struct io_uring_sqe *sqe)
{
	ck_assert_int_eq(NC_send_op_steps(op, buffers), 2);
	prepare(&sqe[0], op);
	prepare(&sqe[1], op);
}

/* What becomes of the message if the header does not leave as a whole. */
START_TEST(test_header_fails)
{
	struct NC_range range = {.length = 100 * KIB};
	struct io_uring_sqe sqe[2];
	NC_send_op *op;
	int pair[2];

	if (!begin())
		return;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 1 << 20, 1 << 20);
	range.id = insert_as(NULL, 1, 100 * KIB, 0, NC_KIND_APPENDED);
	for (unsigned i = 0; i < 4; i++) {
		static const int32_t results[] = {3, -EAGAIN, -EPIPE, -EINTR};
		static const int progress[] = {NC_PROGRESS_AGAIN, NC_PROGRESS_FULL, -1,
					       NC_PROGRESS_AGAIN};

		op = open_op(pair[0], &range, NC_SEND_DONTWAIT);
		ck_assert_int_eq(NC_send_op_steps(op, buffers), 2);
		prepare(&sqe[0], op);
		/* No completion can come before both are prepared. */
		FAILS(completed(op, 3, 0), EINVAL);
		prepare(&sqe[1], op);
		ck_assert_uint_eq(sqe[0].opcode, IORING_OP_SEND);
		ck_assert_uint_eq(sqe[0].flags, IOSQE_IO_LINK);
		ck_assert(sqe[0].msg_flags & MSG_MORE && sqe[0].msg_flags & MSG_WAITALL);
		ck_assert_uint_eq(sqe[0].len, sizeof(HEAD) - 1);
		ck_assert_uint_eq(sqe[1].opcode, IORING_OP_SEND_ZC);
		ck_assert(sqe[1].ioprio & IORING_RECVSEND_FIXED_BUF);
		ck_assert_uint_eq(sqe[1].flags, 0);
		ck_assert_uint_eq(sqe[1].len, range.length);
		FAILS(completed(op, sizeof(HEAD), 0), EINVAL);
		ck_assert_int_eq(completed(op, results[i], 0), NC_PROGRESS_NEXT);
		ck_assert_uint_eq(NC_send_op_sent(op), 0);
		ck_assert_int_eq(completed(op, -ECANCELED, 0), progress[i]);
		ck_assert_uint_eq(NC_send_op_sent(op), i == 0 ? 3 : 0);
		if (i != 2) {
			/* The rest again by two. */
			prepare_both(op, sqe);
			ck_assert_uint_eq(sqe[0].len, sizeof(HEAD) - 1 - (i == 0 ? 3 : 0));
			ck_assert_int_eq(completed(op, (int32_t)sqe[0].len, 0), NC_PROGRESS_NEXT);
			/* The body fails, and was notified of. */
			ck_assert_int_eq(completed(op, -EAGAIN, IORING_CQE_F_MORE),
					 NC_PROGRESS_FULL);
			ck_assert_int_eq(completed(op, 0, IORING_CQE_F_NOTIF), NC_PROGRESS_WAIT);
		}
		ck_assert_int_eq(NC_send_op_close(op), 0);
	}
	/* Submitted apart, the body went out although the header did not: nothing can repair that. */
	op = open_op(pair[0], &range, NC_SEND_DONTWAIT);
	prepare_both(op, sqe);
	ck_assert_int_eq(completed(op, -EAGAIN, 0), NC_PROGRESS_NEXT);
	FAILS(completed(op, 1000, 0), EIO);
	ck_assert_int_eq(NC_send_op_close(op), 0);
	close_pair(pair);
	end();
}
END_TEST

static uint64_t in_flight(void)
{
	return buffers->table->sends[0] + buffers->table->sends[1];
}

/* Memory of an earlier part counts as used until the last notification has come. */
START_TEST(test_parts_in_flight)
{
	const uint32_t more = IORING_CQE_F_MORE, notif = IORING_CQE_F_NOTIF;
	struct NC_range range;
	struct io_uring_sqe sqe[2];
	NC_send_op *op;
	int pair[2];

	if (!begin_message(&op, &range, 100 * KIB, pair))
		return;
	prepare_both(op, sqe);
	ck_assert_int_eq(completed(op, sizeof(HEAD) - 1, 0), NC_PROGRESS_NEXT);
	ck_assert_int_eq(completed(op, 1000, more), NC_PROGRESS_AGAIN);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(NC_send_op_steps(op, buffers), 1);
		ck_assert_uint_eq(in_flight(), 2);
	}
	prepare(&sqe[0], op);
	ck_assert_uint_eq(sqe[0].opcode, IORING_OP_SEND_ZC);
	ck_assert_int_eq(completed(op, (int32_t)range.length - 1000, more), NC_PROGRESS_SENT);
	ck_assert_int_eq(completed(op, 0, notif), NC_PROGRESS_WAIT);
	ck_assert_uint_eq(in_flight(), 2);
	ck_assert_int_eq(completed(op, 0, notif), NC_PROGRESS_DONE);
	ck_assert_uint_eq(in_flight(), 0);
	ck_assert_int_eq(NC_send_op_close(op), 0);
	close_pair(pair);
	end();
}
END_TEST

/* The buffers are closed while the kernel has the bytes, and then the segment. */
START_TEST(test_closed_in_flight)
{
	const uint32_t more = IORING_CQE_F_MORE, notif = IORING_CQE_F_NOTIF;
	struct NC_range range;
	struct io_uring_sqe sqe[2];
	NC_send_op *op;
	int pair[2];

	/* In a segment of its own. */
	if (!begin_message(&op, &range, 6 * MIB, pair))
		return;
	prepare_both(op, sqe);
	ck_assert_int_eq(completed(op, sizeof(HEAD) - 1, 0), NC_PROGRESS_NEXT);
	ck_assert_int_eq(completed(op, (int32_t)range.length, more), NC_PROGRESS_SENT);
	ck_assert_int_eq(NC_ring_buffers_close(buffers), 0);
	buffers = NULL;
	ck_assert_int_eq(NC_destroy(NULL, range.id), 0);
	ck_assert_int_eq(completed(op, 0, notif), NC_PROGRESS_DONE);
	ck_assert_int_eq(NC_send_op_close(op), 0);
	close_pair(pair);
	end();
}
END_TEST

/* Selected and never prepared, or prepared and lost with the ring. */
START_TEST(test_given_up)
{
	struct NC_range range;
	struct io_uring_sqe sqe[2];
	NC_send_op *op;
	int pair[2];

	if (!begin_message(&op, &range, 100 * KIB, pair))
		return;
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(NC_send_op_steps(op, buffers), 2);
	FAILS(NC_ring_buffers_close(buffers), EBUSY);
	ck_assert_int_eq(NC_send_op_close(op), 0);
	op = open_op(pair[0], &range, 0);
	prepare_both(op, sqe);
	ck_assert_int_eq(NC_send_op_abandon(op), 0);
	close_pair(pair);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_header_fails);
	tcase_add_test(tcase, test_parts_in_flight);
	tcase_add_test(tcase, test_closed_in_flight);
	tcase_add_test(tcase, test_given_up);
}

RUN_SUITE("ring-buffers-steps", fill)
