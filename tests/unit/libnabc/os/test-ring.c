/* SPDX-License-Identifier: MIT */
/*
 * test-ring.c - unit tests of ring.c: an unusable ring reports why; a usable one
 * sends, and reports the release of each send's memory exactly once.  Without io_uring
 * the latter is skipped, with one line.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <nabc.h>

#include "os/ring.h"

#include "ring-fixture.h"
#include "suite.h"

static struct {
	unsigned calls;
	uint64_t token;
} told;

static void sent(void *context, uint64_t token, bool copied)
{
	(void)copied;
	ck_assert_ptr_eq(context, &told);
	told.calls++;
	told.token = token;
}

START_TEST(test_refused)
{
	unsigned descriptors = open_descriptors();

	nc_ring_init(&ring, false);
	ck_assert(!ring.usable);
	ck_assert_str_eq(ring.why, "not used: disabled by the program");
	ck_assert_int_eq(nc_ring_fd(&ring), -1);
	ck_assert(!nc_ring_waits(&ring));
	ck_assert_uint_eq(nc_ring_reap(&ring, sent, &told), 0);
	nc_ring_fini(&ring);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

START_TEST(test_send)
{
	static char bytes[64 << 10], got[sizeof(bytes)];
	bool notify = false;
	int pair[2];
	ssize_t taken;

	if (!open_ring())
		return;
	ck_assert_int_ge(nc_ring_fd(&ring), 0);
	pattern_fill(bytes, 3, 0, sizeof(bytes));
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 1 << 20, 1 << 20);
	taken = nc_ring_send(&ring, pair[0],
			     &(struct nc_ring_piece){.data = bytes, .length = sizeof(bytes)}, 77,
			     &notify, sent, &told);
	ck_assert_int_eq(taken, sizeof(bytes));
	ck_assert(notify);
	read_exactly(pair[1], got, sizeof(got));
	ck_assert_uint_eq(pattern_match(got, 3, 0, sizeof(got)), sizeof(got));
	/* At once, or when it arrives. */
	while (nc_ring_waits(&ring)) {
		ck_assert_uint_eq(told.calls, 0);
		await(nc_ring_fd(&ring), POLLIN);
		(void)nc_ring_reap(&ring, sent, &told);
	}
	ck_assert_uint_eq(told.calls, 1);
	ck_assert_uint_eq(told.token, 77);
	ck_assert_uint_eq(nc_ring_reap(&ring, sent, &told), 0);
	close_pair(pair);
	nc_ring_fini(&ring);
}
END_TEST

/* A failed send has nothing in flight. */
START_TEST(test_failed_send)
{
	char byte = 0;
	const struct nc_ring_piece piece = {.data = &byte, .length = 1};
	bool notify = true;
	int pair[2];

	if (!open_ring())
		return;
	tcp_pair(pair);
	ck_assert_int_eq(shutdown(pair[0], SHUT_WR), 0);
	ck_assert_int_eq(nc_ring_send(&ring, pair[0], &piece, 5, &notify, sent, &told), -EPIPE);
	ck_assert(!notify);
	notify = true;
	ck_assert_int_eq(nc_ring_send(&ring, -1, &piece, 6, &notify, sent, &told), -EBADF);
	ck_assert(!notify);
	ck_assert(!nc_ring_waits(&ring));
	ck_assert_uint_eq(told.calls, 0);
	close_pair(pair);
	nc_ring_fini(&ring);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_send);
	tcase_add_test(tcase, test_failed_send);
}

RUN_SUITE("ring", fill)
