/* SPDX-License-Identifier: MIT */
/*
 * test-mode.c - unit tests of mode.c: by what a process finds out who started it, and what it
 * leaves to the programs that it starts.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "mode.h"
#include "suite.h"

static bool settle(const char *text)
{
	if (text)
		setenv("NABC_WORKER_FD", text, 1);
	else
		unsetenv("NABC_WORKER_FD");
	fcgi_mode_settle();
	return fcgi_is_worker;
}

static bool settle_with(int fd)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", fd);
	return settle(text);
}

START_TEST(test_descriptor)
{
	int pair[2], stream[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, stream), 0);
	ck_assert(settle_with(pair[0]));
	ck_assert(!settle_with(stream[0]));
	ck_assert(!settle_with(STDERR_FILENO));
	ck_assert(!settle_with(9999));
	ck_assert(!settle(NULL));
	ck_assert(!settle(""));
	ck_assert(!settle("3x"));
	ck_assert(!settle("-1"));
	ck_assert(!settle("99999999999999999999"));
	close_pair(stream);
	close_pair(pair);
}
END_TEST

/* A manager of FastCGI programs that is a worker itself: its programs are no workers. */
START_TEST(test_listener)
{
	const struct sockaddr any = {.sa_family = AF_UNIX};
	int pair[2], listener = socket(AF_UNIX, SOCK_STREAM, 0);

	ck_assert_int_eq(bind(listener, &any, sizeof(any.sa_family)), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	ck_assert_int_eq(dup2(listener, 0), 0);
	ck_assert(settle_with(pair[0]));
	ck_assert_int_eq(listen(0, 1), 0);
	ck_assert(!settle_with(pair[0]));
	close(listener);
	close_pair(pair);
}
END_TEST

static const struct {
	const char *before, *after;
} preloads[] = {
	{"/usr/lib/nabc/libnabc-fcgi.so", NULL},
	{"libnabc-fcgi.so:/lib/other.so", "/lib/other.so"},
	{"/a.so /x/libnabc-fcgi.so  /b.so", "/a.so:/b.so"},
	{"/a.so", "/a.so"},
	{"", NULL},
};

START_TEST(test_environment)
{
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	ck_assert(settle_with(pair[0]));
	clearenv();
	setenv("LD_PRELOAD", preloads[_i].before, 1);
	ck_assert_int_eq(fcgi_socket, pair[0]);
	setenv("NABC_WORKER_FD", "3", 1);
	fcgi_mode_clear();
	ck_assert_ptr_null(getenv("NABC_WORKER_FD"));
	ck_assert_pstr_eq(getenv("LD_PRELOAD"), preloads[_i].after);
	close_pair(pair);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_descriptor);
	tcase_add_test(tcase, test_listener);
	tcase_add_loop_test(tcase, test_environment, 0, sizeof(preloads) / sizeof(preloads[0]));
}

RUN_SUITE("fcgi-mode", fill)
