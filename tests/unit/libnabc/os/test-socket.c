/* SPDX-License-Identifier: MIT */
/*
 * test-socket.c - unit tests of socket.c: what the library queries of sockets and of
 * the process before it sends.
 */
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
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

static atomic_bool over;

/* Signals the thread that it gets, as often as it can. */
static void *disturb(void *thread)
{
	while (!atomic_load(&over))
		ck_assert_int_eq(pthread_kill(*(pthread_t *)thread, SIGUSR1), 0);
	return NULL;
}

/* Nobody reads meanwhile, so that there is no room after fewer bytes. */
START_TEST(test_sendfile_full)
{
	static const struct sigaction caught = {.sa_handler = catch, .sa_flags = SA_RESTART};
	const size_t length = 1 << 20;
	char *got = must_alloc(length);
	int pair[2], file = memfd_create("socket", MFD_CLOEXEC), size = (int)length / 4;
	pthread_t self = pthread_self(), thread;

	ck_assert_int_eq(ftruncate(file, (off_t)length), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
			 0);
	ck_assert_int_eq(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	ck_assert_int_eq(sigaction(SIGUSR1, &caught, NULL), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, disturb, &self), 0);
	for (unsigned round = 0; round < 1000; round++) {
		off_t from = 0;
		ssize_t sent = nc_socket_sendfile(pair[0], file, &from, length);

		ck_assert_int_gt(sent, 0);
		ck_assert_int_eq(from, sent);
		ck_assert_int_lt(sent, length);
		ck_assert_int_eq(nc_socket_sendfile(pair[0], file, &from, 1), -1);
		ck_assert_int_eq(errno, EAGAIN);
		while (sent > 0)
			sent -= read(pair[1], got, length);
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	free(got);
	close(file);
	close_pair(pair);
}
END_TEST

/* What was sent before an error counts; the next call reports the error. */
START_TEST(test_sendfile_end)
{
	int pair[2], file = memfd_create("socket", MFD_CLOEXEC);
	off_t from = 3;

	signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(ftruncate(file, 10), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
			 0);
	ck_assert_int_eq(nc_socket_sendfile(pair[0], file, &from, 100), 7);
	ck_assert_int_eq(from, 10);
	ck_assert_int_eq(nc_socket_sendfile(pair[0], file, &from, 100), 0);
	close(pair[1]);
	from = 0;
	ck_assert_int_eq(nc_socket_sendfile(pair[0], file, &from, 100), -1);
	ck_assert_int_eq(errno, EPIPE);
	close(pair[0]);
	close(file);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_sendfile_full);
	tcase_add_test(tcase, test_sendfile_end);
	tcase_add_test(tcase, test_bound_unsent);
	tcase_add_test(tcase, test_waits);
	tcase_add_test(tcase, test_has_room);
	tcase_add_test(tcase, test_sigpipe);
}

RUN_SUITE("socket", fill)
