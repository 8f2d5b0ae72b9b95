/* SPDX-License-Identifier: MIT */
/*
 * test-socket.c - unit tests of socket.c: what the library queries of sockets and of
 * the process before it sends.
 */
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/socket.h"

#include "suite.h"

static unsigned unsent_limit(int socket)
{
	unsigned value = 1;
	socklen_t length = sizeof(value);

	ck_assert_int_eq(getsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, &length), 0);
	return value;
}

START_TEST(test_bound_unsent)
{
	int pair[2];

	tcp_pair(pair);
	nc_socket_bound_unsent(pair[0], 100000);
	ck_assert_uint_eq(unsent_limit(pair[0]), 100000);
	ck_assert_uint_eq(unsent_limit(pair[1]), 0);
	/* A value that the program has set stays. */
	nc_socket_bound_unsent(pair[0], 5);
	ck_assert_uint_eq(unsent_limit(pair[0]), 100000);
	nc_socket_unbound_unsent(pair[0], 5);
	ck_assert_uint_eq(unsent_limit(pair[0]), 100000);
	nc_socket_unbound_unsent(pair[0], 100000);
	ck_assert_uint_eq(unsent_limit(pair[0]), 0);
	nc_socket_bound_unsent(pair[1], SIZE_MAX);
	ck_assert_uint_eq(unsent_limit(pair[1]), INT_MAX);
	close_pair(pair);
}
END_TEST

START_TEST(test_waits)
{
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	nc_socket_bound_unsent(pair[0], 1); /* not TCP: no effect */
	nc_socket_unbound_unsent(pair[0], 1);
	ck_assert(nc_socket_waits(pair[0]));
	set_nonblocking(pair[0]);
	ck_assert(!nc_socket_waits(pair[0]));
	ck_assert(nc_socket_waits(pair[1]));
	close_pair(pair);
	ck_assert(!nc_socket_waits(-1));
}
END_TEST

START_TEST(test_has_room)
{
	char bytes[4096] = "";
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	set_nonblocking(pair[0]);
	ck_assert(nc_socket_has_room(pair[0]));
	while (send(pair[0], bytes, sizeof(bytes), 0) > 0)
		;
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert(!nc_socket_has_room(pair[0]));
	/* A waiting thread gets an error as it gets space. */
	close(pair[1]);
	ck_assert(nc_socket_has_room(pair[0]));
	close(pair[0]);
}
END_TEST

static void catch (int number)
{
	(void)number;
}

START_TEST(test_sigpipe)
{
	signal(SIGPIPE, SIG_DFL);
	ck_assert(!nc_socket_sigpipe_ignored());
	signal(SIGPIPE, catch);
	ck_assert(!nc_socket_sigpipe_ignored());
	signal(SIGPIPE, SIG_IGN);
	ck_assert(nc_socket_sigpipe_ignored());
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_bound_unsent);
	tcase_add_test(tcase, test_waits);
	tcase_add_test(tcase, test_has_room);
	tcase_add_test(tcase, test_sigpipe);
}

RUN_SUITE("socket", fill)
