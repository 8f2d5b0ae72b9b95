/* SPDX-License-Identifier: MIT */
/*
 * test-send-op-end.c - unit tests of operation.c: notifications, sends that are
 * abandoned, bad input, and sends on a real ring.
 */
#include <errno.h>
#include <liburing.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <malloc.h>
#include <nabc-async.h>
#include <nabc.h>

#include "send/send-op.h"

#include "async-fixture.h"
#include "nabc-fixture.h"
#include "send-op-fixture.h"
#include "suite.h"
#include "unit-holds.h"

/* Two completions of each zero-copy send, in every possible order. */
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
	range.id = insert_as(NULL, 1, range.length, 0, NC_KIND_RECYCLED);
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
	/* A notification during the next step; small parts are copied. */
	OPEN();
	ck_assert_int_eq(completed(operation, 100 * KIB, more), NC_PROGRESS_AGAIN);
	prepare(&sqe, operation);
	ck_assert_uint_eq(sqe.opcode, IORING_OP_SENDMSG);
	ck_assert_int_eq(completed(operation, copied, notif), NC_PROGRESS_WAIT);
	ck_assert_int_eq(completed(operation, 28 * KIB, 0), NC_PROGRESS_DONE);
	CLOSED();
	ck_assert_uint_eq(statistics().zerocopy_copied, 1);
	/* Between two steps, and at the end. */
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
	/* A failure is reported when the kernel no longer needs the memory. */
	OPEN();
	ck_assert_int_eq(completed(operation, 10, more), NC_PROGRESS_AGAIN);
	prepare(&sqe, operation);
	ck_assert_int_eq(completed(operation, -ECONNRESET, more), NC_PROGRESS_WAIT);
	FAILS(NC_send_op_close(operation), EBUSY);
	ck_assert_int_eq(completed(operation, 0, notif), NC_PROGRESS_WAIT);
	FAILS(completed(operation, 0, notif), ECONNRESET);
	CLOSED();
	/* An error of zero-copy falls back to copy. */
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
	ck_assert_uint_eq(statistics().zerocopy_memory, 2);
	ck_assert_uint_eq(statistics().zerocopy_refused, 3);
	ck_assert_uint_eq(holds_of(range.id), 0);
#undef OPEN
#undef CLOSED
	close_pair(pair);
	close_cache();
}
END_TEST

/* The caller's ring is closed: memory that it may still read stays unchanged. */
START_TEST(test_abandon)
{
	struct NC_range ranges[2] = {{.length = 100 * KIB}, {.length = 100 * KIB}};
	struct NC_send message = NC_SEND_INIT(.ranges = ranges, .range_count = 2);
	NC_send_op *operation;
	struct io_uring_sqe sqe;
	int pair[2];

	open_cache(4 * MIB);
	tcp_pair(pair);
	ranges[0].id = insert_as(NULL, 1, 100 * KIB, 0, NC_KIND_RECYCLED);
	ranges[1].id = insert_as(NULL, 2, 100 * KIB, 0, NC_KIND_APPENDED);
	/* Nothing in flight: the same as closed. */
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	ck_assert_int_eq(NC_send_op_abandon(operation), 0);
	ck_assert_uint_eq(holds_of(ranges[0].id), 0);
	/* A pending notification: recycled memory is kept. */
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	operation->zerocopy = true;
	prepare(&sqe, operation);
	ck_assert_int_eq(completed(operation, 200 * KIB, IORING_CQE_F_MORE), NC_PROGRESS_SENT);
	FAILS(NC_cache_close(cache), EBUSY);
	ck_assert_int_eq(NC_send_op_abandon(operation), 0);
	ck_assert_uint_eq(holds_of(ranges[0].id), 1);
	ck_assert_uint_eq(holds_of(ranges[1].id), 0);
	/* A pending submission: all is kept. */
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	prepare(&sqe, operation);
	ck_assert_int_eq(NC_send_op_abandon(operation), 0);
	ck_assert_uint_eq(holds_of(ranges[0].id), 2);
	ck_assert_uint_eq(holds_of(ranges[1].id), 1);
	close_pair(pair);
	/* Until the cache is closed, which is not prevented. */
	close_cache();
}
END_TEST

/* Abandoned in the middle of a message that needed more memory than the first one. */
static void abandon_grown(void)
{
	static const char header[60000];
	struct NC_send message = NC_SEND_INIT(.header = header, .header_length = 10);
	NC_send_op *operation;
	struct io_uring_sqe sqe;
	int pair[2];

	open_cache(4 * MIB);
	tcp_pair(pair);
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	ck_assert_ptr_nonnull(operation);
	message.header_length = sizeof(header);
	ck_assert_int_eq(NC_send_op_reopen(operation, pair[0], &message, 0), 0);
	prepare(&sqe, operation);
	ck_assert_int_eq(NC_send_op_abandon(operation), 0);
	close_pair(pair);
	close_cache();
}

START_TEST(test_abandoned_memory)
{
	size_t before;

	abandon_grown();
	before = mallinfo2().uordblks;
	for (unsigned i = 0; i < 20; i++)
		abandon_grown();
	/* What the library keeps for the process does not count. */
	ck_assert_uint_lt(mallinfo2().uordblks, before + 60000);
}
END_TEST

START_TEST(test_bad_input)
{
	struct NC_range range = {.length = 100};
	struct NC_send message = NC_SEND_INIT(.header = "h", .ranges = &range, .range_count = 1);
	struct io_uring_cqe cqe = {0};
	struct io_uring_sqe sqe;
	int pair[2];

	setenv("NABC_CACHE", "/nonexistent/socket", 1);
	NULL_FAILS(NC_send_op_open(NULL, 0, &message, 0), ENOENT);
	open_cache(MIB);
	tcp_pair(pair);
	range.id = insert(1, 100);
	NULL_FAILS(NC_send_op_open((NC_cache *)&range, pair[0], &message, 0), EINVAL);
	NULL_FAILS(NC_send_op_open(cache, pair[0], NULL, 0), EINVAL);
	NULL_FAILS(NC_send_op_open(cache, pair[0], &message, 8), EINVAL);
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
	close_pair(pair);
	close_cache();
}
END_TEST

START_TEST(test_bad_completions)
{
	struct NC_hold held;
	struct NC_range range = {.length = 100};
	struct NC_send message = NC_SEND_INIT(.header = NULL, .ranges = &range, .range_count = 1);
	NC_send_op *operation;
	struct io_uring_sqe sqe;
	int pair[2];

	open_cache(MIB);
	tcp_pair(pair);
	range.id = insert(1, 100);
	operation = NC_send_op_open(cache, pair[0], &message, 0);
	FAILS(NC_prep_send(NULL, operation), EINVAL);
	FAILS(NC_send_op_complete(operation, NULL), EINVAL);
	/* Wrong completions: not submitted, no notification due, too many bytes. */
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
	/* A hold makes destroyed units usable. */
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

/* Drives an operation to its end; returns the number of submissions. */
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
	range.id = insert_as(NULL, 1, range.length, 0, kind);
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
		/* Zero-copy was tried, and the route learnt that the kernel copies. */
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

/* Two linked messages on a registered file: in order, with two submissions in all. */
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

		range.id = insert_as(NULL, i + 1, range.length, 0, NC_KIND_RECYCLED);
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

static _Atomic bool opened;

struct one_send {
	struct NC_range range;
	int socket;
};

static void *open_and_close(void *context)
{
	const struct one_send *one = context;
	struct NC_send message = NC_SEND_INIT(.ranges = &one->range, .range_count = 1);
	NC_send_op *operation = NC_send_op_open(cache, one->socket, &message, 0);

	/* Orders nothing: the count of operations alone must. */
	atomic_store_explicit(&opened, true, memory_order_relaxed);
	return operation && NC_send_op_close(operation) == 0 ? NULL : context;
}

/* Who can close the cache has seen all that other threads did with it: TSan looks. */
START_TEST(test_cache_closed_after_another_thread)
{
	for (unsigned i = 0; i < scaled(50); i++) {
		struct one_send one = {.range = {.length = 100}};
		pthread_t thread;
		void *failed;
		int pair[2];

		open_cache(MIB);
		tcp_pair(pair);
		one.socket = pair[0];
		one.range.id = insert_as(NULL, 1, one.range.length, 0, NC_KIND_RECYCLED);
		atomic_store(&opened, false);
		ck_assert_int_eq(pthread_create(&thread, NULL, open_and_close, &one), 0);
		while (!atomic_load_explicit(&opened, memory_order_relaxed))
			sched_yield();
		while (NC_cache_close(cache) < 0)
			ck_assert_int_eq(errno, EBUSY);
		pthread_join(thread, &failed);
		ck_assert_ptr_null(failed);
		close_pair(pair);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_notifications);
	tcase_add_test(tcase, test_abandon);
	tcase_add_test(tcase, test_abandoned_memory);
	tcase_add_test(tcase, test_bad_input);
	tcase_add_test(tcase, test_bad_completions);
	tcase_add_test(tcase, test_real_ring);
	tcase_add_test(tcase, test_linked);
	tcase_add_test(tcase, test_cache_closed_after_another_thread);
}

RUN_SUITE("operation-end", fill)
