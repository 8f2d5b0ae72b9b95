/* SPDX-License-Identifier: MIT */
/* test-transmit-cork.c - unit tests of transmit.c: which messages are sent corked. */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "os/cork.h"
#include "send/transmit.h"

#include "suite.h"
#include "transmit-fixture.h"

static int corked(int fd)
{
	socklen_t length = sizeof(int);
	int on = -1;

	ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, &length), 0);
	return on;
}

/*
 * If a socket does not accept a message at once, no cork holds it back: a program gets
 * no event for corked unsent bytes until the system has waited for 200 ms.
 */
START_TEST(test_short_is_not_corked)
{
	static char bytes[MIB];
	struct NC_send message =
		NC_SEND_INIT(.header = bytes, .header_length = sizeof(bytes),
			     .flags = (_i ? NC_SEND_MORE : NC_SEND_CLOSE) | NC_SEND_DONTWAIT);
	const int room = 16384;
	int pair[2];

	open_cache(2 * MIB, NC_CACHE_NO_URING);
	tcp_pair(pair);
	ck_assert_int_eq(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	while (message.skip < sizeof(bytes)) {
		ssize_t sent = nc_transmit_send(&transmit, pair[0], &message), got;

		if (sent > 0)
			message.skip += (size_t)sent;
		else
			ck_assert_int_eq(sent, -EAGAIN);
		if (message.skip < sizeof(bytes))
			ck_assert_int_eq(corked(pair[0]), 0);
		do
			got = recv(pair[1], bytes, sizeof(bytes), MSG_DONTWAIT);
		while (got > 0);
	}
	if (_i)
		ck_assert_int_eq(corked(pair[0]), 1);
	close_pair(pair);
	close_cache();
}
END_TEST

START_TEST(test_cork)
{
	static char bytes[5000];
	struct NC_send more =
		NC_SEND_INIT(.header = bytes, .header_length = 5000, .flags = NC_SEND_MORE);
	struct NC_send last = NC_SEND_INIT(.header = bytes, .header_length = 10), empty = {0};
	const int on = 1;
	int pair[2], local[2];

	open_cache(MIB, NC_CACHE_NO_URING);
	tcp_pair(pair);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &more), 5000);
	ck_assert_int_eq(corked(pair[0]), 1);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &more), 5000);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &last), 10);
	ck_assert_int_eq(corked(pair[0]), 0);
	/* An empty message ends a stream as well. */
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &more), 5000);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &empty), 0);
	ck_assert_int_eq(corked(pair[0]), 0);
	/* A cork of the program is not changed. */
	ck_assert_int_eq(setsockopt(pair[0], IPPROTO_TCP, TCP_CORK, &on, sizeof(on)), 0);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &more), 5000);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &last), 10);
	ck_assert_int_eq(corked(pair[0]), 1);
	/* A message within one segment needs none, and small messages make no extra system call. */
	more.header_length = 500;
	close_pair(pair);
	tcp_pair(pair);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &more), 500);
	ck_assert_int_eq(corked(pair[0]), 0);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &last), 10);
	/* A descriptor number that another socket had. */
	more.header_length = 5000;
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &more), 5000);
	close_pair(pair);
	tcp_pair(local);
	ck_assert_int_eq(local[0], pair[0]);
	ck_assert(nc_cork_is_set(&transmit.corks, local[0]));
	ck_assert_int_eq(nc_transmit_send(&transmit, local[0], &more), 5000);
	ck_assert_int_eq(corked(local[0]), 1);
	more.flags = NC_SEND_CLOSE;
	ck_assert_int_eq(nc_transmit_send(&transmit, local[0], &more), 5000);
	ck_assert(!nc_cork_is_set(&transmit.corks, local[0]));
	close_pair(local);
	/* Not TCP: no cork and no error; the same with numbers out of range. */
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, local), 0);
	more.flags = NC_SEND_MORE;
	ck_assert_int_eq(nc_transmit_send(&transmit, local[0], &more), 5000);
	ck_assert(!nc_cork_is_set(&transmit.corks, local[0]));
	ck_assert(!nc_cork_set(&transmit.corks, -1));
	ck_assert(!nc_cork_set(&transmit.corks, (int)(NC_CORK_WORDS * 64)));
	ck_assert(!nc_cork_is_set(&transmit.corks, -1));
	nc_cork_lift(&transmit.corks, -1);
	nc_cork_forget(&transmit.corks, INT32_MAX);
	close_pair(local);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_cork);
	tcase_add_loop_test(tcase, test_short_is_not_corked, 0, 2);
}

RUN_SUITE("transmit-wire-cork", fill)
