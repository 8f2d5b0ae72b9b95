/* SPDX-License-Identifier: MIT */
/*
 * test-ring-buffers.c - unit tests of ring-buffers.c: sends from memory that is registered
 * with the program's ring, whatever becomes of the header, the unit, the operation or the
 * ring.  Each test owns its cache and its ring, which only its thread may use.  All routes
 * are fixed to zero-copy, since the kernel copies on a loopback.
 */
#include "pinned.h"
#include "send-op-fixture.h"
#include "send/ring-buffers.h"

#define HEAD "HTTP/1.1 200 OK\r\n\r\n"

static struct io_uring ring;
static NC_ring_buffers *buffers;
static size_t at_start;
static unsigned stale_calls;

static void stale(void *data)
{
	ck_assert_ptr_eq(data, &ring);
	stale_calls++;
}

static void open_registering_cache(uint64_t flags)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 64 * MIB,
				      .flags = NC_CACHE_NO_THREAD | NC_CACHE_NO_HUGE | flags);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
}

/* Returns false if io_uring is unavailable, or nothing can be registered here. */
static bool begin(void)
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
static void end(void)
{
	if (buffers)
		ck_assert_int_eq(NC_ring_buffers_close(buffers), 0);
	buffers = NULL;
	await_pinned(at_start);
	close_cache();
	io_uring_queue_exit(&ring);
}

static NC_send_op *open_op(int fd, const struct NC_range *range, unsigned flags)
{
	struct NC_send message = NC_SEND_INIT(.header = HEAD, .header_length = sizeof(HEAD) - 1,
					      .ranges = range, .range_count = 1, .flags = flags);
	NC_send_op *op = NC_send_op_open(NULL, fd, &message, 0);

	ck_assert_ptr_nonnull(op);
	return op;
}

/* Prepares a step of that many submissions. */
static void prepare_step(NC_send_op *op, int steps)
{
	ck_assert_int_eq(NC_send_op_steps(op, buffers), steps);
	for (int i = 0; i < steps; i++)
		ck_assert_int_eq(NC_prep_send(io_uring_get_sqe(&ring), op), 0);
}

/* Waits for a completion and returns the progress. */
static int next(NC_send_op *op)
{
	struct io_uring_cqe *cqe;
	int progress;

	ck_assert_int_ge(io_uring_submit_and_wait(&ring, 1), 0);
	ck_assert_int_eq(io_uring_peek_cqe(&ring, &cqe), 0);
	progress = NC_send_op_complete(op, cqe);
	io_uring_cqe_seen(&ring, cqe);
	return progress;
}

static void finish(NC_send_op *op, int progress)
{
	while (progress == NC_PROGRESS_SENT || progress == NC_PROGRESS_WAIT)
		progress = next(op);
	ck_assert_int_eq(progress, NC_PROGRESS_DONE);
	ck_assert_int_eq(NC_send_op_close(op), 0);
}

static void expect_message(int fd, uint64_t seed, size_t at, size_t length)
{
	expect_text(fd, HEAD);
	expect_pattern(fd, seed, at, length);
}

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
			ck_assert_int_eq(NC_send_op_steps(op, buffers), 2);
			prepare(&sqe[0], op);
			ck_assert_uint_eq(sqe[0].len, sizeof(HEAD) - 1 - (i == 0 ? 3 : 0));
			prepare(&sqe[1], op);
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
	ck_assert_int_eq(NC_send_op_steps(op, buffers), 2);
	prepare(&sqe[0], op);
	prepare(&sqe[1], op);
	ck_assert_int_eq(completed(op, -EAGAIN, 0), NC_PROGRESS_NEXT);
	FAILS(completed(op, 1000, 0), EIO);
	ck_assert_int_eq(NC_send_op_close(op), 0);
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
	struct NC_range range = {.length = 100 * KIB};
	pthread_t thread;
	NC_send_op *op;
	int pair[2];

	if (!begin())
		return;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
	/* A segment of its own. */
	range.id = insert_as(NULL, 1, 6 * MIB, 0, NC_KIND_APPENDED);
	op = open_op(pair[0], &range, 0);
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
	struct NC_range range = {.length = 100 * KIB};
	NC_send_op *op;
	int pair[2];

	if (!begin())
		return;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 1 << 20, 1 << 20);
	range.id = insert_as(NULL, 1, 6 * MIB, 0, NC_KIND_APPENDED);
	op = open_op(pair[0], &range, 0);
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

/* The buffers are closed while the kernel has the bytes, and then the segment. */
START_TEST(test_closed_in_flight)
{
	const uint32_t more = IORING_CQE_F_MORE, notif = IORING_CQE_F_NOTIF;
	struct NC_range range = {.length = 100 * KIB};
	struct io_uring_sqe sqe;
	NC_send_op *op;
	int pair[2];

	if (!begin())
		return;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
	range.id = insert_as(NULL, 1, 6 * MIB, 0, NC_KIND_APPENDED);
	op = open_op(pair[0], &range, 0);
	ck_assert_int_eq(NC_send_op_steps(op, buffers), 2);
	prepare(&sqe, op);
	prepare(&sqe, op);
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
	struct NC_range range = {.length = 100 * KIB};
	struct io_uring_sqe sqe;
	NC_send_op *op;
	int pair[2];

	if (!begin())
		return;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
	range.id = insert_as(NULL, 1, 100 * KIB, 0, NC_KIND_APPENDED);
	op = open_op(pair[0], &range, 0);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(NC_send_op_steps(op, buffers), 2);
	FAILS(NC_ring_buffers_close(buffers), EBUSY);
	ck_assert_int_eq(NC_send_op_close(op), 0);
	op = open_op(pair[0], &range, 0);
	ck_assert_int_eq(NC_send_op_steps(op, buffers), 2);
	prepare(&sqe, op);
	prepare(&sqe, op);
	ck_assert_int_eq(NC_send_op_abandon(op), 0);
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
	tcase_add_test(tcase, test_header_fails);
	tcase_add_test(tcase, test_one_step);
	tcase_add_test(tcase, test_other_thread);
	tcase_add_test(tcase, test_destroyed_in_flight);
	tcase_add_test(tcase, test_closed_in_flight);
	tcase_add_test(tcase, test_given_up);
	tcase_add_test(tcase, test_errors);
}

RUN_SUITE("ring-buffers", fill)
