/* SPDX-License-Identifier: MIT */
/*
 * test-async-end.c - unit tests of async.c and its two backends through the calls of
 * nabc-async.h: sends that do not complete, because the peer is gone, they are
 * cancelled or the ring is closed.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nabc-async.h>
#include <nabc.h>

#include "async-fixture.h"
#include "async-mechanism.h"
#include "nabc-fixture.h"
#include "suite.h"

static void send_range(int fd, size_t id, size_t length, uintptr_t data)
{
	struct NC_range range = {.id = id, .length = length};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);

	ck_assert_int_eq(NC_sender_send(ring, fd, &message, (void *)data), 0);
}

/* A client that disconnects in the middle does not affect the others. */
START_TEST(test_peer_gone)
{
	int gone[2], good[2];
	unsigned failed = 0, fine = 0;
	size_t id;

	if (!open_ring(_i, 8 * MIB, 0))
		return;
	tcp_pair_between(gone, "127.0.0.1", "127.0.0.1", 4608, 4608);
	tcp_pair(good);
	id = insert_as(NULL, 1, MIB, 0, _i ? NC_KIND_RECYCLED : NC_KIND_APPENDED);
	for (uintptr_t i = 0; i < 3; i++)
		send_range(gone[0], id, MIB, i);
	ck_assert_int_ge(NC_sender_submit(ring), 0);
	expect_pattern(gone[1], 1, 0, 10);
	close(gone[1]);
	for (uintptr_t i = 0; i < 3; i++)
		send_range(good[0], id, 1000, 10 + i);
	ck_assert_int_ge(NC_sender_submit(ring), 0);
	while (failed + fine < 6) {
		struct NC_completion done = next_completion();

		if (done.sock_fd == good[0]) {
			ck_assert_int_eq(done.error, 0);
			fine++;
			continue;
		}
		ck_assert(done.error == EPIPE || done.error == ECONNRESET);
		ck_assert_uint_eq((uintptr_t)done.data, failed);
		ck_assert_uint_lt(done.sent, MIB);
		ck_assert_uint_eq(done.sent > 0, failed == 0);
		failed++;
	}
	ck_assert_uint_eq(fine, 3);
	ck_assert_uint_eq(holds_of(id), 0);
	for (unsigned i = 0; i < 3; i++)
		expect_pattern(good[1], 1, 0, 1000);
	close(gone[0]);
	close_pair(good);
	close_ring();
}
END_TEST

/* While io_uring sends, and while it waits for a socket to which pages are spliced. */
START_TEST(test_cancel)
{
	struct NC_completion done;
	int full[2], other[2];
	size_t id;

	if (!open_ring(_i % 2, 8 * MIB, 0))
		return;
	tcp_pair_between(full, "127.0.0.1", "127.0.0.1", 4608, 4608);
	tcp_pair(other);
	if (_i >= 2)
		set_nonblocking(full[0]);
	id = insert_as(NULL, 1, MIB, 0, _i >= 2 ? NC_KIND_APPENDED : NC_KIND_RECYCLED);
	ck_assert_int_eq(NC_sender_cancel(ring, full[0]), 0);
	ck_assert_int_eq(NC_sender_cancel(ring, -1), 0);
	for (uintptr_t i = 0; i < 3; i++)
		send_range(full[0], id, MIB, i);
	/* Not submitted, then in flight. */
	ck_assert_int_eq(NC_sender_cancel(ring, full[0]), 3);
	await(NC_sender_fd(ring), POLLIN);
	for (uintptr_t i = 0; i < 3; i++) {
		done = next_completion();
		ck_assert_int_eq(done.error, ECANCELED);
		ck_assert_uint_eq(done.sent, 0);
		ck_assert_uint_eq((uintptr_t)done.data, i);
	}
	for (uintptr_t i = 0; i < 3; i++)
		send_range(full[0], id, MIB, i);
	ck_assert_int_ge(NC_sender_submit(ring), 0);
	await(full[1], POLLIN);
	ck_assert_int_eq(NC_sender_reap(ring, &done, sizeof(done), 1), 0);
	ck_assert_int_eq(NC_sender_cancel(ring, full[0]), 3);
	send_range(full[0], id, 10, 3);
	send_range(other[0], id, 10, 4);
	ck_assert_int_ge(NC_sender_submit(ring), 0);
	/*
	 * Later messages are sent; bytes that were sent of the cancelled ones stay with the peer.
	 */
	for (unsigned i = 0, cancelled = 0; i < 5; i++) {
		done = next_completion();
		if ((uintptr_t)done.data >= 3) {
			ck_assert_int_eq(done.error, 0);
			ck_assert_uint_eq(done.sent, 10);
			ck_assert(done.sock_fd == other[0] || cancelled == 3);
			continue;
		}
		ck_assert_int_eq(done.error, ECANCELED);
		ck_assert_uint_eq((uintptr_t)done.data, cancelled);
		ck_assert_uint_lt(done.sent, MIB);
		ck_assert_uint_eq(done.sent > 0, cancelled == 0);
		cancelled++;
		if (cancelled == 1)
			expect_pattern(full[1], 1, 0, done.sent);
	}
	expect_pattern(full[1], 1, 0, 10);
	ck_assert_uint_eq(holds_of(id), 0);
	close_pair(full);
	close_pair(other);
	close_ring();
}
END_TEST

/* A full Unix socket. */
START_TEST(test_cancel_unix)
{
	struct NC_send message = NC_SEND_INIT(.header = "x", .header_length = 1);
	struct NC_completion done;
	static char much[64 << 10];
	int pair[2];

	if (!open_ring(_i, MIB, 0))
		return;
	/* No data is in flight here, so a full socket stays full. */
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	set_nonblocking(pair[0]);
	for (size_t step = sizeof(much); step; step /= 2)
		while (send(pair[0], much, step, 0) > 0)
			;
	ck_assert_int_eq(NC_sender_send(ring, pair[0], &message, NULL), 0);
	ck_assert_int_ge(NC_sender_submit(ring), 0);
	ck_assert_int_eq(NC_sender_cancel(ring, pair[0]), 1);
	done = next_completion();
	ck_assert_int_eq(done.error, ECANCELED);
	ck_assert_uint_eq(done.sent, 0);
	close_pair(pair);
	close_ring();
}
END_TEST

/* Closing ends pending sends, releases all units, and changes no byte. */
START_TEST(test_close)
{
	unsigned descriptors = open_descriptors();
	int pair[2];
	size_t id, have = 0;
	char *got;

	if (!open_ring(_i, 4 * MIB, 0))
		return;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 64 << 10, 4608);
	id = insert_as(NULL, 1, 512 * KIB, 0, NC_KIND_RECYCLED);
	for (uintptr_t i = 0; i < 5; i++)
		send_range(pair[0], id, 512 * KIB, i);
	ck_assert_int_ge(NC_sender_submit(ring), 0);
	for (uintptr_t i = 0; i < 5; i++)
		send_range(pair[0], id, 512 * KIB, i);
	await(pair[1], POLLIN);
	ck_assert_int_eq(NC_sender_close(ring), 0);
	ck_assert_uint_eq(holds_of(id), 0);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	for (unsigned i = 0; i < 8; i++) {
		size_t other = insert_as(NULL, 100 + i, 512 * KIB, 0, NC_KIND_RECYCLED);

		ck_assert_int_eq(NC_destroy(NULL, other), 0);
	}
	shutdown(pair[0], SHUT_WR);
	got = must_alloc(MIB);
	for (;;) {
		ssize_t more = read(pair[1], got + have, MIB - have);

		ck_assert_int_ge(more, 0);
		if (more == 0)
			break;
		have += (size_t)more;
	}
	ck_assert_uint_gt(have, 0);
	ck_assert_uint_lt(have, 512 * KIB);
	ck_assert_uint_eq(pattern_match(got, 1, 0, have), have);
	free(got);
	close_pair(pair);
	close_cache();
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/* A message that waits to be reaped holds nothing. */
START_TEST(test_unreaped)
{
	int pair[2];
	size_t id;

	if (!open_ring(EPOLL, MIB, 0))
		return;
	tcp_pair(pair);
	id = insert(1, 1000);
	send_range(pair[0], id, 1000, 0);
	send_range(pair[0], id, 1000, 1);
	ck_assert_int_eq(NC_sender_submit(ring), 2);
	ck_assert_uint_eq(holds_of(id), 0);
	ck_assert(readable(NC_sender_fd(ring)));
	ck_assert_uint_eq((uintptr_t)next_completion().data, 0);
	/* One is left, and the descriptor stays readable. */
	ck_assert(readable(NC_sender_fd(ring)));
	ck_assert_uint_eq((uintptr_t)next_completion().data, 1);
	close_pair(pair);
	close_ring();
}
END_TEST

/* The descriptor still reports completions that one reap found and left. */
START_TEST(test_left_over)
{
	struct NC_send message = NC_SEND_INIT(.header = "x", .header_length = 1);
	struct NC_completion done;
	int pairs[8][2];

	if (!open_ring(URING, MIB, 0))
		return;
	for (unsigned i = 0; i < 8; i++) {
		tcp_pair(pairs[i]);
		ck_assert_int_eq(NC_sender_send(ring, pairs[i][0], &message, NULL), 0);
	}
	ck_assert_int_eq(NC_sender_submit(ring), 0);
	for (unsigned i = 0; i < 8; i++)
		expect_text(pairs[i][1], "x");
	for (unsigned i = 0; i < 8; i++) {
		await(NC_sender_fd(ring), POLLIN);
		ck_assert_int_eq(NC_sender_reap(ring, &done, sizeof(done), 1), 1);
		close_pair(pairs[i]);
	}
	close_ring();
}
END_TEST

/* On a blocking socket io_uring itself waits for space: one submission sends all. */
START_TEST(test_kernel_waits)
{
	struct NC_completion done;
	int pair[2];
	size_t id;

	if (!open_ring(URING, 8 * MIB, 0))
		return;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4608, 4608);
	id = insert_as(NULL, 1, MIB, 0, NC_KIND_RECYCLED);
	send_range(pair[0], id, MIB, 0);
	ck_assert_int_eq(NC_sender_submit(ring), 0);
	expect_pattern(pair[1], 1, 0, MIB);
	done = next_completion();
	ck_assert_int_eq(done.error, 0);
	ck_assert_uint_eq(done.sent, MIB);
	ck_assert_uint_eq(statistics().by_copy.sends, 1);
	close_pair(pair);
	close_ring();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_peer_gone, 0, MECHANISMS);
	tcase_add_loop_test(tcase, test_cancel, 0, 2 * MECHANISMS);
	tcase_add_loop_test(tcase, test_cancel_unix, 0, MECHANISMS);
	tcase_add_loop_test(tcase, test_close, 0, MECHANISMS);
	tcase_add_test(tcase, test_unreaped);
	tcase_add_test(tcase, test_left_over);
	tcase_add_test(tcase, test_kernel_waits);
}

RUN_SUITE("async-end", fill)
