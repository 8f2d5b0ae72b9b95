/* SPDX-License-Identifier: MIT */
/*
 * test-disposal.c - unit tests of disposal.c: what closes at once, what blocks, and how much of
 * that one process may leave.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "membership/disposal.h"
#include "os/identity.h"
#include "os/peer.h"

#include "process-fixture.h"
#include "suite.h"

#define MANY 9 /* one more than a process may leave */

static const struct nc_disposal_origin here = {.pid = 100, .uid = 1},
				       there = {.pid = 200, .uid = 2};

/* Returns the only descriptor of a connection whose close waits for its peer, a minute at most. */
static int lingering(int *peer)
{
	static const char bytes[1 << 16];
	const struct linger minute = {.l_onoff = 1, .l_linger = 60};
	int pair[2];

	tcp_pair(pair);
	*peer = pair[1];
	ck_assert_int_eq(setsockopt(pair[0], SOL_SOCKET, SO_LINGER, &minute, sizeof(minute)), 0);
	while (send(pair[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	ck_assert_int_eq(errno, EAGAIN);
	return pair[0];
}

static struct nc_disposal *begin(void)
{
	struct nc_disposal *disposal = nc_disposal_open();

	ck_assert_ptr_nonnull(disposal);
	return disposal;
}

static unsigned pending(struct nc_disposal *disposal, unsigned own)
{
	unsigned of_user, all = nc_disposal_pending(disposal, here.uid, &of_user);

	ck_assert_uint_eq(of_user, own);
	return all;
}

/* Memory and pidfds need no thread. */
START_TEST(test_quick)
{
	unsigned descriptors = open_descriptors();
	struct nc_disposal *disposal = begin();
	int fds[2] = {memfd_create("m", MFD_CLOEXEC | MFD_ALLOW_SEALING),
		      nc_identity_open(getpid())};

	ck_assert_int_ge(fds[0], 0);
	ck_assert_int_eq(nc_disposal_take(disposal, here, fds, fds[1] < 0 ? 1 : 2), 0);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	ck_assert_int_eq(nc_disposal_take(disposal, here, NULL, 0), 0);
	ck_assert_uint_eq(pending(disposal, 0), 0);
	nc_disposal_close(disposal);
}
END_TEST

/* The caller continues; the peer's end lets the threads end. */
START_TEST(test_lingering)
{
	unsigned descriptors = open_descriptors();
	struct nc_disposal *disposal = begin();
	int peers[MANY + 1], fd;

	for (unsigned i = 0; i < MANY; i++) {
		fd = lingering(&peers[i]);
		ck_assert_int_eq(nc_disposal_take(disposal, here, &fd, 1),
				 i < MANY - 1 ? 0 : -EBUSY);
	}
	/* Another process is not affected. */
	fd = lingering(&peers[MANY]);
	ck_assert_int_eq(nc_disposal_take(disposal, there, &fd, 1), 0);
	ck_assert_uint_eq(pending(disposal, MANY), MANY + 1);
	for (unsigned i = 0; i <= MANY; i++)
		close(peers[i]);
	nc_disposal_close(disposal);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/* The messages that wait in a connection have some. */
START_TEST(test_socket)
{
	unsigned descriptors = open_descriptors();
	struct nc_disposal *disposal = begin();
	int pair[2], peers[2];

	ck_assert_int_eq(nc_peer_pair(pair), 0);
	ck_assert_int_eq(nc_peer_ask_sender(pair[1]), 0);
	for (unsigned i = 0; i < 2; i++) {
		int fd = lingering(&peers[i]);

		ck_assert_int_eq(nc_peer_send(pair[0], "m", i, &fd, 1), 0);
		close(fd);
	}
	nc_disposal_take_socket(disposal, here, pair[1]);
	ck_assert_uint_eq(pending(disposal, 2), 2);
	close(pair[0]);
	close(peers[0]);
	close(peers[1]);
	nc_disposal_close(disposal);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/* Its end does not wait for what blocks longer. */
START_TEST(test_end)
{
	struct nc_disposal *disposal = begin();
	int peer, fd = lingering(&peer);

	ck_assert_int_eq(nc_disposal_take(disposal, here, &fd, 1), 0);
	nc_disposal_close(disposal);
	close(peer);
	nc_disposal_close(NULL);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_quick);
	tcase_add_test(tcase, test_lingering);
	tcase_add_test(tcase, test_socket);
	tcase_add_test(tcase, test_end);
}

RUN_SUITE("disposal", fill)
