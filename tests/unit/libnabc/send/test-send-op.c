/* SPDX-License-Identifier: MIT */
/*
 * test-send-op.c - unit tests of operation.c: sends prepared on the caller's io_uring,
 * step by step.  The test itself plays the kernel.  Each test owns its cache.
 */
#include <errno.h>
#include <liburing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nabc-async.h>
#include <nabc.h>

#include "async-fixture.h"
#include "nabc-fixture.h"
#include "send-op-fixture.h"
#include "suite.h"

static size_t planned(const struct io_uring_sqe *sqe)
{
	struct iovec whole;
	const struct msghdr header = pieces_of(sqe, &whole);
	size_t length = 0;

	for (size_t i = 0; i < header.msg_iovlen; i++)
		length += header.msg_iov[i].iov_len;
	return length;
}

/* Header and body in one submission; the caller may reuse the header after opening. */
START_TEST(test_one_step)
{
	char head[] = "head";
	struct NC_range range = {.offset = 5, .length = 1000};
	struct NC_send message = NC_SEND_INIT(.header = head, .header_length = 4, .ranges = &range,
					      .range_count = 1);
	NC_send_op *operation;
	struct io_uring_sqe sqe;
	int pair[2];

	open_cache(MIB);
	tcp_pair(pair);
	range.id = insert(1, 2000);
	operation = NC_send_op_open(NULL, pair[0], &message, 0);
	ck_assert_ptr_nonnull(operation);
	/* It has the bytes, so that it need not hold the unit. */
	ck_assert_uint_eq(holds_of(range.id), 0);
	ck_assert_int_eq(NC_destroy(NULL, range.id), 0);
	memset(head, 'x', 4);
	range = (struct NC_range){.id = range.id};
	message = (struct NC_send)NC_SEND_INIT();
	prepare(&sqe, operation);
	/* Small, so in one piece. */
	ck_assert_uint_eq(sqe.opcode, IORING_OP_SEND);
	ck_assert_uint_eq(sqe.flags, 0);
	ck_assert(sqe.msg_flags & MSG_WAITALL);
	ck_assert(!(sqe.msg_flags & (MSG_MORE | MSG_DONTWAIT)));
	ck_assert_int_eq(completed(operation, perform(&sqe, SIZE_MAX), 0), NC_PROGRESS_DONE);
	ck_assert_uint_eq(NC_send_op_sent(operation), 1004);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	expect_text(pair[1], "head");
	expect_pattern(pair[1], 1, 5, 1000);
	ck_assert_uint_eq(statistics().by_copy.bytes, 1000);
	close_pair(pair);
	close_cache();
}
END_TEST

/*
 * Texts between ranges, small ones in one piece of memory and large ones in several; the caller
 * may reuse them after opening.  A limit ends the operation; the next one continues.
 */
START_TEST(test_texts)
{
	static const size_t sizes[] = {100, 30000}, limits[] = {0, 2, 4, 5, 130, 40000, SIZE_MAX};
	const size_t size = sizes[_i];
	const size_t total = 4 + 3 + size + 5 + size + 3;
	char *wanted = must_alloc(total), *got = must_alloc(total);
	struct NC_range ranges[2] = {{.length = size}, {.length = size}};
	int pair[2];

	open_cache(MIB);
	ranges[0].id = insert(1, size);
	ranges[1].id = insert(2, size);
	memcpy(wanted, "head<a>", 7);
	pattern_fill(wanted + 7, 1, 0, size);
	memcpy(wanted + 7 + size, "<b>b!", 5);
	pattern_fill(wanted + 12 + size, 2, 0, size);
	memcpy(wanted + total - 3, "end", 3);
	for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		size_t done = 0;
		char end;

		tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 1 << 20, 1 << 20);
		while (done < total) {
			char first[] = "<a>", second[] = "<b>", third[] = "b!", last[] = "end";
			struct NC_text texts[] = {
				{first, 3, 0}, {second, 3, 1}, {third, 2, 1}, {last, 3, 2}};
			struct NC_send message =
				NC_SEND_INIT(.header = "head", .header_length = 4, .ranges = ranges,
					     .range_count = 2, .texts = texts, .text_count = 4,
					     .skip = done, .limit = limits[i],
					     .flags = NC_SEND_CLOSE);
			size_t left = total - done, step = i % 2 ? SIZE_MAX : 12345;
			NC_send_op *operation = NC_send_op_open(NULL, pair[0], &message, 0);
			struct io_uring_sqe sqe;

			ck_assert_ptr_nonnull(operation);
			memset(first, 'x', 3);
			memset(second, 'x', 3);
			memset(third, 'x', 2);
			memset(last, 'x', 3);
			memset(texts, 0, sizeof(texts));
			do {
				prepare(&sqe, operation);
				/* More follows what the limit ends, and the FIN the rest. */
				ck_assert(sqe.msg_flags & MSG_MORE);
			} while (completed(operation, perform(&sqe, step), 0) == NC_PROGRESS_AGAIN);
			if (limits[i] && limits[i] < left)
				left = limits[i];
			ck_assert_uint_eq(NC_send_op_sent(operation), left);
			ck_assert_int_eq(NC_send_op_close(operation), 0);
			done += left;
			if (done < total)
				ck_assert_int_eq(send(pair[0], "", 0, 0), 0);
		}
		read_exactly(pair[1], got, total);
		ck_assert(memcmp(got, wanted, total) == 0);
		ck_assert_int_eq(read(pair[1], &end, 1), 0);
		ck_assert_int_eq(send(pair[0], "x", 1, MSG_NOSIGNAL), -1);
		close_pair(pair);
	}
	ck_assert_uint_eq(statistics().by_copy.bytes,
			  2 * size * sizeof(limits) / sizeof(limits[0]));
	free(wanted);
	free(got);
	close_cache();
}
END_TEST

/* Messages of all sizes by one operation, one after the other, also after errors. */
START_TEST(test_reopen)
{
	static const size_t lengths[] = {10, 5000, 300 * KIB, 100, 0, 40000, 4092, 4093};
	struct NC_range range = {0};
	struct NC_send message = NC_SEND_INIT(.header = "head", .header_length = 4,
					      .ranges = &range, .range_count = 1);
	struct NC_send wrong = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	NC_send_op *operation;
	struct io_uring_sqe sqe;
	int pair[2];

	open_cache(4 * MIB);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 1 << 20, 1 << 20);
	range.id = insert(1, 300 * KIB);
	operation = NC_send_op_open(NULL, pair[0], &message, 0);
	ck_assert_ptr_nonnull(operation);
	prepare(&sqe, operation);
	FAILS(NC_send_op_reopen(operation, pair[0], &message, 0), EBUSY);
	ck_assert_int_eq(completed(operation, perform(&sqe, SIZE_MAX), 0), NC_PROGRESS_DONE);
	expect_text(pair[1], "head");
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		range.length = lengths[i];
		ck_assert_int_eq(NC_send_op_reopen(operation, pair[0], &message, 0), 0);
		ck_assert_uint_eq(holds_of(range.id), lengths[i] > 4092);
		prepare(&sqe, operation);
		ck_assert_uint_eq(sqe.opcode,
				  lengths[i] <= 4092 ? IORING_OP_SEND : IORING_OP_SENDMSG);
		ck_assert_int_eq(completed(operation, perform(&sqe, SIZE_MAX), 0),
				 NC_PROGRESS_DONE);
		ck_assert_uint_eq(NC_send_op_sent(operation), 4 + lengths[i]);
		ck_assert_uint_eq(holds_of(range.id), 0);
		expect_text(pair[1], "head");
		expect_pattern(pair[1], 1, 0, lengths[i]);
	}
	/* What fails leaves an operation without a message. */
	range.length = 300 * KIB + 1;
	FAILS(NC_send_op_reopen(operation, pair[0], &wrong, 0), ERANGE);
	FAILS(NC_prep_send(&sqe, operation), EINVAL);
	FAILS(NC_send_op_reopen(operation, pair[0], NULL, 0), EINVAL);
	FAILS(NC_send_op_reopen(operation, pair[0], &message, 1u << 31), EINVAL);
	FAILS(NC_send_op_reopen(NULL, pair[0], &message, 0), EINVAL);
	range.length = 1;
	ck_assert_int_eq(NC_send_op_reopen(operation, pair[0], &message, 0), 0);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	ck_assert_uint_eq(holds_of(range.id), 0);
	close_pair(pair);
	close_cache();
}
END_TEST

/* Every length of a step, over more pieces than an iovec array holds. */
START_TEST(test_steps)
{
	static const size_t steps[] = {1, 3, 333, 1447, 4096, SIZE_MAX};
	struct NC_range ranges[NC_RANGES_MAX];
	size_t length = 200, total = 3 + length * NC_RANGES_MAX, skip = (size_t)_i % 3 * 100;
	struct NC_send message = NC_SEND_INIT(.header = "abc", .header_length = 3, .ranges = ranges,
					      .range_count = NC_RANGES_MAX, .skip = skip);
	int progress = NC_PROGRESS_AGAIN, pair[2];
	NC_send_op *operation;
	char *got = must_alloc(total);

	open_cache(4 * MIB);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 1 << 20, 1 << 20);
	for (unsigned i = 0; i < NC_RANGES_MAX; i++)
		ranges[i] = (struct NC_range){.id = insert_as(NULL, i, 1000, 64, NC_KIND_RECYCLED),
					      .offset = i * 3,
					      .length = length};
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	ck_assert_ptr_nonnull(operation);
	for (size_t done = skip; done < total;) {
		struct io_uring_sqe sqe;
		int32_t sent;

		ck_assert_int_eq(progress, NC_PROGRESS_AGAIN);
		ck_assert_uint_eq(NC_send_op_sent(operation), done - skip);
		prepare(&sqe, operation);
		ck_assert_uint_eq(!!(sqe.msg_flags & MSG_MORE), done + planned(&sqe) < total);
		sent = perform(&sqe, steps[_i]);
		ck_assert_int_gt(sent, 0);
		progress = completed(operation, sent, 0);
		done += (size_t)sent;
	}
	ck_assert_int_eq(progress, NC_PROGRESS_DONE);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	read_exactly(pair[1], got + skip, total - skip);
	if (skip == 0)
		ck_assert_mem_eq(got, "abc", 3);
	for (size_t at = skip > 3 ? skip : 3; at < total; at++) {
		size_t i = (at - 3) / length;

		expect((unsigned char)got[at] == pattern_at(i, i * 3 + (at - 3) % length));
	}
	free(got);
	close_pair(pair);
	close_cache();
}
END_TEST

START_TEST(test_options)
{
	struct NC_range range = {.length = 100};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	NC_send_op *operation;
	struct io_uring_sqe sqe;
	int pair[2];

	open_cache(MIB);
	tcp_pair(pair);
	range.id = insert(1, 100);
	message.flags = NC_SEND_MORE | NC_SEND_DONTWAIT;
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	prepare(&sqe, operation);
	ck_assert(sqe.msg_flags & MSG_MORE && sqe.msg_flags & MSG_DONTWAIT);
	ck_assert_int_eq(completed(operation, perform(&sqe, SIZE_MAX), 0), NC_PROGRESS_DONE);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	expect_pattern(pair[1], 1, 0, 100);
	/* Only the last completion ends the stream. */
	message.flags = NC_SEND_CLOSE;
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	prepare(&sqe, operation);
	ck_assert(sqe.msg_flags & MSG_MORE);
	ck_assert_int_eq(completed(operation, perform(&sqe, 60), 0), NC_PROGRESS_AGAIN);
	prepare(&sqe, operation);
	ck_assert_int_eq(completed(operation, perform(&sqe, SIZE_MAX), 0), NC_PROGRESS_DONE);
	expect_pattern(pair[1], 1, 0, 100);
	expect_end(pair[1]);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	/* A registered file: marked, and its number is not used as a descriptor. */
	message.flags = 0;
	operation = NC_send_op_open(cache, 3, &message, NC_SEND_OP_FIXED_FILE);
	prepare(&sqe, operation);
	ck_assert_uint_eq(sqe.flags, IOSQE_FIXED_FILE);
	ck_assert_int_eq(sqe.fd, 3);
	FAILS(completed(operation, -ECANCELED, 0), ECANCELED);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	close_pair(pair);
	close_cache();
}
END_TEST

static int option(int fd, int name)
{
	socklen_t length = sizeof(int);
	int value;

	ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, name, &value, &length), 0);
	return value;
}

/* The socket gets the same options as from NC_send(), and the next message lifts its cork. */
START_TEST(test_socket_options)
{
	struct NC_range range = {.length = 3000};
	struct NC_send message =
		NC_SEND_INIT(.ranges = &range, .range_count = 1, .flags = NC_SEND_MORE);
	NC_send_op *operation;
	struct io_uring_sqe sqe;
	int pair[2];

	open_cache(4 * MIB);
	tcp_pair(pair);
	range.id = insert(1, 256 * KIB);
	ck_assert_int_eq(NC_send(NULL, pair[0], &message), 3000);
	ck_assert_int_eq(option(pair[0], TCP_CORK), 1);
	message.flags = 0;
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	prepare(&sqe, operation);
	ck_assert_int_eq(completed(operation, perform(&sqe, 1000), 0), NC_PROGRESS_AGAIN);
	ck_assert_int_eq(option(pair[0], TCP_CORK), 1);
	prepare(&sqe, operation);
	ck_assert_int_eq(completed(operation, perform(&sqe, SIZE_MAX), 0), NC_PROGRESS_DONE);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	ck_assert_int_eq(option(pair[0], TCP_CORK), 0);
	expect_pattern(pair[1], 1, 0, 3000);
	expect_pattern(pair[1], 1, 0, 3000);
	/* Corked when the message is sent, and not before. */
	message.flags = NC_SEND_MORE;
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	ck_assert_int_eq(option(pair[0], TCP_CORK), 0);
	prepare(&sqe, operation);
	ck_assert_int_eq(option(pair[0], TCP_CORK), 1);
	ck_assert_int_eq(completed(operation, perform(&sqe, SIZE_MAX), 0), NC_PROGRESS_DONE);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	ck_assert_int_eq(option(pair[0], TCP_CORK), 1);
	/* A large copied message is sent at once: its unsent bytes are not bounded. */
	message.flags = 0;
	range.length = 256 * KIB;
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	prepare(&sqe, operation);
	ck_assert_int_ne(option(pair[0], TCP_NOTSENT_LOWAT), 16 << 10);
	FAILS(completed(operation, -ECANCELED, 0), ECANCELED);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	close_pair(pair);
	close_cache();
}
END_TEST

/* Fixed and learnt methods are used; the table shows them. */
START_TEST(test_routes)
{
	struct NC_range range = {.length = 128 * KIB};
	struct NC_send message =
		NC_SEND_INIT(.header = "head", .header_length = 4, .ranges = &range);
	struct NC_route routes[4];
	NC_send_op *operation;
	struct io_uring_sqe sqe;
	unsigned copies = 0;
	int pair[2];

	open_cache(4 * MIB);
	message.range_count = 1;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.2", 1 << 20, 1 << 20);
	range.id = insert_as(NULL, 1, range.length, 0, NC_KIND_RECYCLED);
	ck_assert_int_eq(NC_route_set(cache, "*", NC_METHOD_COPY), 0);
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	prepare(&sqe, operation);
	ck_assert_uint_eq(sqe.opcode, IORING_OP_SENDMSG);
	ck_assert_int_eq(completed(operation, 128 * KIB + 4, 0), NC_PROGRESS_DONE);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	ck_assert_int_eq(NC_routes(cache, routes, sizeof(*routes), 4), 1);
	ck_assert_uint_eq(routes[0].by_copy.sends, 1);
	ck_assert_uint_eq(routes[0].by_copy.bytes, 128 * KIB);
	ck_assert_int_eq(NC_route_set(cache, "*", NC_ROUTE_LEARN), 0);
	/* Without a ring in the cache, zero-copy is not tried. */
	for (unsigned i = 0; i < 7 && strcmp(statistics().uring, "used") == 0; i++) {
		operation = NC_send_op_open(cache, pair[0], &message, 0);
		prepare(&sqe, operation);
		/* Four in a row are believed. */
		if (i < 4)
			ck_assert_uint_eq(sqe.opcode, IORING_OP_SENDMSG_ZC);
		if (sqe.opcode == IORING_OP_SENDMSG) {
			copies++;
			ck_assert_int_eq(completed(operation, 128 * KIB + 4, 0), NC_PROGRESS_DONE);
		} else {
			ck_assert_int_eq(completed(operation, 128 * KIB + 4, IORING_CQE_F_MORE),
					 NC_PROGRESS_SENT);
			ck_assert_int_eq(
				completed(operation, (int32_t)(1u << 31), IORING_CQE_F_NOTIF),
				NC_PROGRESS_DONE);
		}
		ck_assert_int_eq(NC_send_op_close(operation), 0);
		if (i == 6)
			ck_assert_uint_ge(copies, 1);
	}
	close_pair(pair);
	close_cache();
}
END_TEST

/* An operation only for messages that are best sent by zero-copy and need not be measured. */
START_TEST(test_settled)
{
	struct NC_range range = {.length = 128 * KIB};
	struct NC_send message =
		NC_SEND_INIT(.header = "head", .header_length = 4, .ranges = &range);
	NC_send_op *operation;
	struct io_uring_sqe sqe;
	int pair[2];

	open_cache(4 * MIB);
	message.range_count = 1;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.2", 1 << 20, 1 << 20);
	range.id = insert_as(NULL, 1, range.length, 0, NC_KIND_RECYCLED);
#define REFUSED(with, error)                                                                       \
	do {                                                                                       \
		ck_assert_ptr_null(                                                                \
			NC_send_op_open(cache, pair[0], &message, NC_SEND_OP_ZEROCOPY | (with)));  \
		ck_assert_int_eq(errno, error);                                                    \
		ck_assert_uint_eq(holds_of(range.id), 0);                                          \
	} while (0)
	/* Nothing is known about the route. */
	REFUSED(0, EAGAIN);
	REFUSED(NC_SEND_OP_FIXED_FILE, EINVAL);
	ck_assert_int_eq(NC_route_set(cache, "*", NC_METHOD_SPLICE), 0);
	REFUSED(0, EAGAIN);
	if (NC_route_set(cache, "*", NC_METHOD_ZEROCOPY) == 0) {
		message.flags = NC_SEND_COPY;
		REFUSED(0, EAGAIN);
		message.flags = 0;
		range.length = 1000;
		REFUSED(0, EAGAIN);
		range.length = 128 * KIB;
		operation = NC_send_op_open(cache, pair[0], &message, NC_SEND_OP_ZEROCOPY);
		ck_assert_ptr_nonnull(operation);
		prepare(&sqe, operation);
		ck_assert_uint_eq(sqe.opcode, IORING_OP_SENDMSG_ZC);
		ck_assert_int_eq(completed(operation, 128 * KIB + 4, IORING_CQE_F_MORE),
				 NC_PROGRESS_SENT);
		ck_assert_int_eq(completed(operation, 0, IORING_CQE_F_NOTIF), NC_PROGRESS_DONE);
		/* In the same memory: refused, then another message. */
		message.flags = NC_SEND_COPY;
		FAILS(NC_send_op_reopen(operation, pair[0], &message, NC_SEND_OP_ZEROCOPY), EAGAIN);
		ck_assert_uint_eq(holds_of(range.id), 0);
		ck_assert_int_eq(NC_send_op_reopen(operation, pair[0], &message, 0), 0);
		prepare(&sqe, operation);
		ck_assert_uint_eq(sqe.opcode, IORING_OP_SENDMSG);
		/* Kernel TLS would refuse it. */
		ck_assert(!(sqe.msg_flags & MSG_WAITALL));
		ck_assert_int_eq(completed(operation, 128 * KIB + 4, 0), NC_PROGRESS_DONE);
		ck_assert_int_eq(NC_send_op_close(operation), 0);
	}
	close_pair(pair);
	close_cache();
}
END_TEST

/* An empty message completes like any other; CLOSE still ends the stream. */
START_TEST(test_empty)
{
	struct NC_send message = NC_SEND_INIT(.flags = NC_SEND_CLOSE);
	NC_send_op *operation;
	struct io_uring_sqe sqe;
	int pair[2];

	open_cache(MIB);
	tcp_pair(pair);
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	prepare(&sqe, operation);
	ck_assert_uint_eq(sqe.opcode, IORING_OP_NOP);
	ck_assert_int_eq(completed(operation, 0, 0), NC_PROGRESS_DONE);
	FAILS(NC_prep_send(&sqe, operation), EINVAL);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	expect_end(pair[1]);
	close_pair(pair);
	close_cache();
}
END_TEST

/* Results of a socket: full, interrupted, broken; and a cancelled submission. */
START_TEST(test_results)
{
	struct NC_range range = {.length = 100};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	static const int ends[] = {EPIPE, ECONNRESET, ECANCELED, EBADF, EINVAL};
	NC_send_op *operation;
	struct io_uring_sqe sqe;
	int pair[2];

	open_cache(MIB);
	tcp_pair(pair);
	range.id = insert(1, 100);
	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		operation = NC_send_op_open(cache, pair[0], &message, 0);
		prepare(&sqe, operation);
		ck_assert_int_eq(completed(operation, -EAGAIN, 0), NC_PROGRESS_FULL);
		prepare(&sqe, operation);
		ck_assert_int_eq(completed(operation, -EINTR, 0), NC_PROGRESS_AGAIN);
		prepare(&sqe, operation);
		ck_assert_int_eq(completed(operation, 40, 0), NC_PROGRESS_AGAIN);
		prepare(&sqe, operation);
		FAILS(completed(operation, -ends[i], 0), ends[i]);
		ck_assert_uint_eq(NC_send_op_sent(operation), 40);
		FAILS(NC_prep_send(&sqe, operation), EINVAL);
		ck_assert_int_eq(NC_send_op_close(operation), 0);
	}
	/* A send that sends nothing must not repeat forever. */
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	prepare(&sqe, operation);
	FAILS(completed(operation, 0, 0), EIO);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	ck_assert_uint_eq(holds_of(range.id), 0);
	close_pair(pair);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_one_step);
	tcase_add_loop_test(tcase, test_texts, 0, 2);
	tcase_add_test(tcase, test_reopen);
	tcase_add_loop_test(tcase, test_steps, 0, 6);
	tcase_add_test(tcase, test_options);
	tcase_add_test(tcase, test_socket_options);
	tcase_add_test(tcase, test_routes);
	tcase_add_test(tcase, test_settled);
	tcase_add_test(tcase, test_empty);
	tcase_add_test(tcase, test_results);
}

RUN_SUITE("operation", fill)
