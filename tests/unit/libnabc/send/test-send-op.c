/* SPDX-License-Identifier: MIT */
/*
 * test-send-op.c - unit tests of operation.c: sends prepared on the caller's
 * io_uring.  In most tests the caller plays the kernel itself, so that every
 * order of completions can be had; the rest use a real ring.  Each test owns
 * its cache.
 */
#include <limits.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/uio.h>

#include "send/send-op.h"

#include "async-fixture.h"
#include "unit-holds.h"

/* A completion as the kernel would give it. */
static int completed(NC_send_op *operation, int32_t result, uint32_t flags)
{
	struct io_uring_cqe cqe = {.res = result, .flags = flags};

	return NC_send_op_complete(operation, &cqe);
}

/* Does what a submission says, by a plain call; the result as of the kernel. */
static int32_t perform(const struct io_uring_sqe *sqe, size_t at_most)
{
	const struct msghdr *header = (const struct msghdr *)(uintptr_t)sqe->addr;
	struct iovec iov[64];
	struct msghdr part = {.msg_iov = iov};
	ssize_t sent;

	ck_assert(sqe->opcode == IORING_OP_SENDMSG || sqe->opcode == IORING_OP_SENDMSG_ZC);
	ck_assert_uint_le(header->msg_iovlen, 64);
	ck_assert(sqe->msg_flags & MSG_NOSIGNAL);
	for (size_t i = 0; i < header->msg_iovlen && at_most; i++) {
		iov[i] = header->msg_iov[i];
		if (iov[i].iov_len > at_most)
			iov[i].iov_len = at_most;
		at_most -= iov[i].iov_len;
		part.msg_iovlen++;
	}
	sent = sendmsg(sqe->fd, &part, MSG_NOSIGNAL | MSG_DONTWAIT);
	return sent < 0 ? -errno : (int32_t)sent;
}

static size_t planned(const struct io_uring_sqe *sqe)
{
	const struct msghdr *header = (const struct msghdr *)(uintptr_t)sqe->addr;
	size_t length = 0;

	for (size_t i = 0; i < header->msg_iovlen; i++)
		length += header->msg_iov[i].iov_len;
	return length;
}

static void prepare(struct io_uring_sqe *sqe, NC_send_op *operation)
{
	memset(sqe, 0xaa, sizeof(*sqe));
	sqe->user_data = 4711;
	ck_assert_int_eq(NC_prep_send(sqe, operation), 0);
	ck_assert_uint_eq(sqe->user_data, 4711);
}

/* Header and body in one submission; the header is free once it is open. */
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
	ck_assert_uint_eq(holds_of(range.id), 1);
	memset(head, 'x', 4);
	range = (struct NC_range){.id = range.id};
	message = (struct NC_send)NC_SEND_INIT();
	prepare(&sqe, operation);
	ck_assert_uint_eq(sqe.opcode, IORING_OP_SENDMSG);
	ck_assert_uint_eq(sqe.flags, 0);
	ck_assert(sqe.msg_flags & MSG_WAITALL);
	ck_assert(!(sqe.msg_flags & (MSG_MORE | MSG_DONTWAIT)));
	ck_assert_int_eq(completed(operation, perform(&sqe, SIZE_MAX), 0), NC_PROGRESS_DONE);
	ck_assert_uint_eq(NC_send_op_sent(operation), 1004);
	/* Held to the close. */
	ck_assert_uint_eq(holds_of(range.id), 1);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	ck_assert_uint_eq(holds_of(range.id), 0);
	expect_text(pair[1], "head");
	expect_pattern(pair[1], 1, 5, 1000);
	ck_assert_uint_eq(statistics().by_copy.bytes, 1000);
	close_pair(pair);
	close_cache();
}
END_TEST

/* Every length of step, over more pieces than iovecs go. */
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
		ranges[i] = (struct NC_range){.id = insert_kind(i, 1000, 64, NC_KIND_RECYCLED),
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
	/* The last completion ends the stream, and no earlier one. */
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
	/* A registered file: marked, and nothing is asked of its number. */
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

/* The socket is told what NC_send() tells it, and the next message lifts its cork. */
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
	/* Corked when its turn comes, and not before. */
	message.flags = NC_SEND_MORE;
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	ck_assert_int_eq(option(pair[0], TCP_CORK), 0);
	prepare(&sqe, operation);
	ck_assert_int_eq(option(pair[0], TCP_CORK), 1);
	ck_assert_int_eq(completed(operation, perform(&sqe, SIZE_MAX), 0), NC_PROGRESS_DONE);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	ck_assert_int_eq(option(pair[0], TCP_CORK), 1);
	/* A large one goes in one go: what waits unsent is not bounded. */
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

/* What an operator fixed, and what was learnt, is kept to; the table shows it. */
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
	range.id = insert_kind(1, range.length, 0, NC_KIND_RECYCLED);
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
	/* Without a ring in the cache nothing is tried. */
	for (unsigned i = 0; i < 4 && strcmp(statistics().uring, "used") == 0; i++) {
		operation = NC_send_op_open(cache, pair[0], &message, 0);
		prepare(&sqe, operation);
		if (i == 0)
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
		if (i == 3)
			ck_assert_uint_ge(copies, 1);
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

/* What a socket says: full, interrupted, broken; and a submission that was cancelled. */
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
	/* Nothing sent of something cannot go on for ever. */
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	prepare(&sqe, operation);
	FAILS(completed(operation, 0, 0), EIO);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	ck_assert_uint_eq(holds_of(range.id), 0);
	close_pair(pair);
	close_cache();
}
END_TEST

/* Two answers to each zero-copy send, in every order that there is. */
START_TEST(test_notifications)
{
	struct NC_range range = {.length = 128 * KIB};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	const uint32_t more = IORING_CQE_F_MORE, notif = IORING_CQE_F_NOTIF;
	const int32_t copied = (int32_t)(1u << 31);
	NC_send_op *operation;
	struct io_uring_sqe sqe;
	int pair[2];

	open_cache(MIB);
	tcp_pair(pair);
	range.id = insert_kind(1, range.length, 0, NC_KIND_RECYCLED);
#define OPEN()                                                                                     \
	do {                                                                                       \
		operation = NC_send_op_open(cache, pair[0], &message, 0);                          \
		operation->zerocopy = true;                                                        \
		prepare(&sqe, operation);                                                          \
		ck_assert_uint_eq(sqe.opcode, IORING_OP_SENDMSG_ZC);                               \
	} while (0)
#define CLOSED() ck_assert_int_eq(NC_send_op_close(operation), 0)
	OPEN();
	ck_assert_int_eq(completed(operation, 128 * KIB, more), NC_PROGRESS_SENT);
	FAILS(NC_send_op_close(operation), EBUSY);
	FAILS(NC_prep_send(&sqe, operation), EINVAL);
	ck_assert_uint_eq(holds_of(range.id), 1);
	ck_assert_int_eq(completed(operation, 0, notif), NC_PROGRESS_DONE);
	FAILS(completed(operation, 0, notif), EINVAL);
	CLOSED();
	ck_assert_uint_eq(statistics().zerocopy_copied, 0);
	ck_assert_uint_eq(statistics().by_zerocopy.sends, 1);
	/* A notification while the next step is under way; what is small is copied. */
	OPEN();
	ck_assert_int_eq(completed(operation, 80 * KIB, more), NC_PROGRESS_AGAIN);
	prepare(&sqe, operation);
	ck_assert_uint_eq(sqe.opcode, IORING_OP_SENDMSG);
	ck_assert_int_eq(completed(operation, copied, notif), NC_PROGRESS_WAIT);
	ck_assert_int_eq(completed(operation, 48 * KIB, 0), NC_PROGRESS_DONE);
	CLOSED();
	ck_assert_uint_eq(statistics().zerocopy_copied, 1);
	/* Between two steps, and last of all. */
	OPEN();
	ck_assert_int_eq(completed(operation, 10, more), NC_PROGRESS_AGAIN);
	ck_assert_int_eq(completed(operation, 0, notif), NC_PROGRESS_WAIT);
	prepare(&sqe, operation);
	ck_assert_int_eq(completed(operation, 10, more), NC_PROGRESS_AGAIN);
	prepare(&sqe, operation);
	ck_assert_int_eq(completed(operation, 128 * KIB - 20, more), NC_PROGRESS_SENT);
	ck_assert_int_eq(completed(operation, 0, notif), NC_PROGRESS_WAIT);
	ck_assert_int_eq(completed(operation, 0, notif), NC_PROGRESS_DONE);
	CLOSED();
	/* A failure is told when the kernel needs the memory no more. */
	OPEN();
	ck_assert_int_eq(completed(operation, 10, more), NC_PROGRESS_AGAIN);
	prepare(&sqe, operation);
	ck_assert_int_eq(completed(operation, -ECONNRESET, more), NC_PROGRESS_WAIT);
	FAILS(NC_send_op_close(operation), EBUSY);
	ck_assert_int_eq(completed(operation, 0, notif), NC_PROGRESS_WAIT);
	FAILS(completed(operation, 0, notif), ECONNRESET);
	CLOSED();
	/* What is said against zero-copy alone leaves the copy. */
	for (unsigned i = 0; i < 5; i++) {
		static const int why[] = {EINVAL, EOPNOTSUPP, ENOMEM, ENOBUFS, EACCES};

		OPEN();
		ck_assert_int_eq(completed(operation, -why[i], i % 2 ? more : 0),
				 NC_PROGRESS_AGAIN);
		prepare(&sqe, operation);
		ck_assert_uint_eq(sqe.opcode, IORING_OP_SENDMSG);
		if (i % 2)
			ck_assert_int_eq(completed(operation, 0, notif), NC_PROGRESS_WAIT);
		ck_assert_int_eq(completed(operation, 128 * KIB, 0), NC_PROGRESS_DONE);
		CLOSED();
	}
	ck_assert_uint_eq(holds_of(range.id), 0);
#undef OPEN
#undef CLOSED
	close_pair(pair);
	close_cache();
}
END_TEST

/* The caller's ring is gone: what it may still read or refer to stays as it is. */
START_TEST(test_abandon)
{
	struct NC_range ranges[2] = {{.length = 100 * KIB}, {.length = 100 * KIB}};
	struct NC_send message = NC_SEND_INIT(.ranges = ranges, .range_count = 2);
	NC_send_op *operation;
	struct io_uring_sqe sqe;
	int pair[2];

	open_cache(4 * MIB);
	tcp_pair(pair);
	ranges[0].id = insert_kind(1, 100 * KIB, 0, NC_KIND_RECYCLED);
	ranges[1].id = insert_kind(2, 100 * KIB, 0, NC_KIND_APPENDED);
	/* Nothing under way: as good as closed. */
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	ck_assert_int_eq(NC_send_op_abandon(operation), 0);
	ck_assert_uint_eq(holds_of(ranges[0].id), 0);
	/* A notification to come: what can be written again is kept. */
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	operation->zerocopy = true;
	prepare(&sqe, operation);
	ck_assert_int_eq(completed(operation, 200 * KIB, IORING_CQE_F_MORE), NC_PROGRESS_SENT);
	FAILS(NC_cache_close(cache), EBUSY);
	ck_assert_int_eq(NC_send_op_abandon(operation), 0);
	ck_assert_uint_eq(holds_of(ranges[0].id), 1);
	ck_assert_uint_eq(holds_of(ranges[1].id), 0);
	/* A submission: all is. */
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	prepare(&sqe, operation);
	ck_assert_int_eq(NC_send_op_abandon(operation), 0);
	ck_assert_uint_eq(holds_of(ranges[0].id), 2);
	ck_assert_uint_eq(holds_of(ranges[1].id), 1);
	close_pair(pair);
	/* To the end of the cache, which it does not hinder. */
	close_cache();
}
END_TEST

START_TEST(test_bad_input)
{
	struct NC_hold held;
	struct NC_range range = {.length = 100};
	struct NC_send message = NC_SEND_INIT(.header = "h", .ranges = &range, .range_count = 1);
	struct io_uring_cqe cqe = {0};
	NC_send_op *operation;
	struct io_uring_sqe sqe;
	int pair[2];

	setenv("NABC_CACHE", "/nonexistent/socket", 1);
	NULL_FAILS(NC_send_op_open(NULL, 0, &message, 0), ENOENT);
	open_cache(MIB);
	tcp_pair(pair);
	range.id = insert(1, 100);
	NULL_FAILS(NC_send_op_open((NC_cache *)&range, pair[0], &message, 0), EINVAL);
	NULL_FAILS(NC_send_op_open(cache, pair[0], NULL, 0), EINVAL);
	NULL_FAILS(NC_send_op_open(cache, pair[0], &message, 4), EINVAL);
#define REFUSED(field, value, error)                                                               \
	do {                                                                                       \
		struct NC_send good = message;                                                     \
		message.field = (value);                                                           \
		NULL_FAILS(NC_send_op_open(cache, pair[0], &message, 0), error);                   \
		message = good;                                                                    \
	} while (0)
	REFUSED(range_count, NC_RANGES_MAX + 1, EINVAL);
	REFUSED(range_count, UINT32_MAX, EINVAL);
	REFUSED(ranges, NULL, EINVAL);
	REFUSED(flags, 0x20, EINVAL);
	REFUSED(skip, 101, EINVAL);
	REFUSED(header_length, SIZE_MAX, ERANGE);
	REFUSED(header_length, SSIZE_MAX, ERANGE);
	message.header = NULL;
	REFUSED(header_length, 1, EINVAL);
#undef REFUSED
	message.flags = NC_SEND_CLOSE;
	NULL_FAILS(NC_send_op_open(cache, 0, &message, NC_SEND_OP_FIXED_FILE), EINVAL);
	message.flags = 0;
	range.offset = 1;
	NULL_FAILS(NC_send_op_open(cache, pair[0], &message, 0), ERANGE);
	range.offset = SIZE_MAX;
	NULL_FAILS(NC_send_op_open(cache, pair[0], &message, 0), ERANGE);
	range.offset = 0;
	range.id++;
	NULL_FAILS(NC_send_op_open(cache, pair[0], &message, 0), ENOENT);
	range.id--;
	ck_assert_uint_eq(holds_of(range.id), 0);
	FAILS(NC_prep_send(&sqe, NULL), EINVAL);
	FAILS(NC_send_op_complete(NULL, &cqe), EINVAL);
	FAILS(NC_send_op_close(NULL), EINVAL);
	FAILS(NC_send_op_abandon(NULL), EINVAL);
	ck_assert_uint_eq(NC_send_op_sent(NULL), 0);
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	FAILS(NC_prep_send(NULL, operation), EINVAL);
	FAILS(NC_send_op_complete(operation, NULL), EINVAL);
	/* Completions of something else: not submitted, no notification due, too much. */
	FAILS(completed(operation, 10, 0), EINVAL);
	FAILS(completed(operation, 0, IORING_CQE_F_NOTIF), EINVAL);
	prepare(&sqe, operation);
	FAILS(NC_prep_send(&sqe, operation), EINVAL);
	FAILS(completed(operation, 101, 0), EINVAL);
	FAILS(completed(operation, INT32_MAX, 0), EINVAL);
	FAILS(NC_send_op_close(operation), EBUSY);
	FAILS(NC_cache_close(cache), EBUSY);
	ck_assert_int_eq(completed(operation, 100, 0), NC_PROGRESS_DONE);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	/* Held is what makes destroyed units good. */
	ck_assert_int_eq(hold_id(NULL, range.id), 0);
	ck_assert_int_eq(NC_destroy(NULL, range.id), 0);
	NULL_FAILS(NC_send_op_open(cache, pair[0], &message, 0), ENOENT);
	use_holds(&message, &held);
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	ck_assert_ptr_nonnull(operation);
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	/* The operation's own hold keeps the bytes. */
	prepare(&sqe, operation);
	ck_assert_int_eq(completed(operation, perform(&sqe, SIZE_MAX), 0), NC_PROGRESS_DONE);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	expect_pattern(pair[1], 1, 0, 100);
	NULL_FAILS(NC_send_op_open(cache, pair[0], &message, 0), EINVAL);
	close_pair(pair);
	close_cache();
}
END_TEST

/* --- a real ring ------------------------------------------------------------- */

static struct io_uring ring;

/* Drives an operation to its end; the submissions that it took. */
static unsigned drive(NC_send_op *operation, unsigned *notifications)
{
	int progress = NC_PROGRESS_AGAIN;
	unsigned steps = 0;

	for (*notifications = 0; progress != NC_PROGRESS_DONE;) {
		struct io_uring_cqe *cqe;

		ck_assert_int_ge(progress, 0);
		ck_assert_int_ne(progress, NC_PROGRESS_FULL);
		if (progress == NC_PROGRESS_AGAIN) {
			struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

			ck_assert_int_eq(NC_prep_send(sqe, operation), 0);
			io_uring_sqe_set_data(sqe, operation);
			ck_assert_int_eq(io_uring_submit(&ring), 1);
			steps++;
		}
		ck_assert_int_eq(io_uring_wait_cqe(&ring, &cqe), 0);
		ck_assert_ptr_eq(io_uring_cqe_get_data(cqe), operation);
		*notifications += !!(cqe->flags & IORING_CQE_F_NOTIF);
		progress = NC_send_op_complete(operation, cqe);
		io_uring_cqe_seen(&ring, cqe);
	}
	return steps;
}

struct reader {
	int fd;
	size_t length;
	pthread_t thread;
};

static void *read_pattern(void *context)
{
	struct reader *reader = context;

	expect_text(reader->fd, "head");
	expect_pattern(reader->fd, 1, 0, reader->length);
	return NULL;
}

static void check_real(enum NC_kind kind, const char *to, int small)
{
	struct NC_range range = {.length = 300 * KIB};
	struct NC_send message = NC_SEND_INIT(.header = "head", .header_length = 4,
					      .ranges = &range, .range_count = 1);
	struct reader reader = {.length = range.length};
	unsigned notifications;
	NC_send_op *operation;
	int pair[2];

	ck_assert_int_eq(io_uring_queue_init(8, &ring, 0), 0);
	open_cache(4 * MIB);
	range.id = insert_kind(1, range.length, 0, kind);
	tcp_pair_between(pair, "127.0.0.1", to, small, small);
	reader.fd = pair[1];
	ck_assert_int_eq(pthread_create(&reader.thread, NULL, read_pattern, &reader), 0);
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	ck_assert_int_eq(NC_destroy(NULL, range.id), 0);
	(void)drive(operation, &notifications);
	ck_assert_uint_eq(NC_send_op_sent(operation), range.length + 4);
	ck_assert_int_eq(NC_send_op_close(operation), 0);
	pthread_join(reader.thread, NULL);
	if (strcmp(to, "127.0.0.1") == 0) {
		ck_assert_uint_eq(notifications, 0);
	} else if (strcmp(statistics().uring, "used") == 0) {
		/* Tried, and learnt that it is copied there. */
		ck_assert_uint_ge(notifications, 1);
		ck_assert_uint_ge(statistics().by_zerocopy.sends, 1);
		ck_assert_uint_ge(statistics().zerocopy_copied, 1);
	}
	close_pair(pair);
	close_cache();
	io_uring_queue_exit(&ring);
}

START_TEST(test_real_ring)
{
	if (!may_use_uring())
		return;
	check_real(NC_KIND_RECYCLED, "127.0.0.1", 0);
	check_real(NC_KIND_APPENDED, "127.0.0.1", 4608);
	check_real(NC_KIND_RECYCLED, "127.0.0.2", 0);
	check_real(NC_KIND_RECYCLED, "127.0.0.2", 4608);
}
END_TEST

/* Two messages linked, on a registered file: in order, two submissions in all. */
START_TEST(test_linked)
{
	struct NC_range range = {.length = 50 * KIB};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	NC_send_op *operations[2];
	int pair[2];

	if (!may_use_uring())
		return;
	ck_assert_int_eq(io_uring_queue_init(8, &ring, 0), 0);
	open_cache(4 * MIB);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4608, 4608);
	ck_assert_int_eq(io_uring_register_files(&ring, pair, 1), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

		range.id = insert_kind(i + 1, range.length, 0, NC_KIND_RECYCLED);
		operations[i] = NC_send_op_open(cache, 0, &message, NC_SEND_OP_FIXED_FILE);
		ck_assert_int_eq(NC_prep_send(sqe, operations[i]), 0);
		io_uring_sqe_set_data(sqe, operations[i]);
		if (i == 0)
			sqe->flags |= IOSQE_IO_LINK;
	}
	ck_assert_int_eq(io_uring_submit(&ring), 2);
	expect_pattern(pair[1], 1, 0, range.length);
	expect_pattern(pair[1], 2, 0, range.length);
	for (unsigned i = 0; i < 2; i++) {
		struct io_uring_cqe *cqe;

		ck_assert_int_eq(io_uring_wait_cqe(&ring, &cqe), 0);
		ck_assert_ptr_eq(io_uring_cqe_get_data(cqe), operations[i]);
		ck_assert_int_eq(NC_send_op_complete(operations[i], cqe), NC_PROGRESS_DONE);
		io_uring_cqe_seen(&ring, cqe);
		ck_assert_int_eq(NC_send_op_close(operations[i]), 0);
	}
	io_uring_queue_exit(&ring);
	close_pair(pair);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_one_step);
	tcase_add_loop_test(tcase, test_steps, 0, 6);
	tcase_add_test(tcase, test_options);
	tcase_add_test(tcase, test_socket_options);
	tcase_add_test(tcase, test_routes);
	tcase_add_test(tcase, test_empty);
	tcase_add_test(tcase, test_results);
	tcase_add_test(tcase, test_notifications);
	tcase_add_test(tcase, test_abandon);
	tcase_add_test(tcase, test_bad_input);
	tcase_add_test(tcase, test_real_ring);
	tcase_add_test(tcase, test_linked);
}

RUN_SUITE("operation", fill)
