/* SPDX-License-Identifier: MIT */
/*
 * test-cork.c - unit tests of cork.c: which corks the library has set, that it lifts
 * no other, and that held back bytes can be sent.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/cork.h"

#include "suite.h"

static struct nc_corks corks;

static int option(int socket, int name)
{
	int value = -1;
	socklen_t length = sizeof(value);

	ck_assert_int_eq(getsockopt(socket, IPPROTO_TCP, name, &value, &length), 0);
	return value;
}

static void set_option(int socket, int name, int value)
{
	ck_assert_int_eq(setsockopt(socket, IPPROTO_TCP, name, &value, sizeof(value)), 0);
}

START_TEST(test_set_and_lift)
{
	int pair[2];

	tcp_pair(pair);
	ck_assert(!nc_cork_is_set(&corks, pair[0]));
	ck_assert(nc_cork_set(&corks, pair[0]));
	ck_assert(nc_cork_is_set(&corks, pair[0]));
	ck_assert(!nc_cork_is_set(&corks, pair[1]));
	ck_assert_int_eq(option(pair[0], TCP_CORK), 1);
	/* Setting it again succeeds. */
	ck_assert(nc_cork_set(&corks, pair[0]));
	ck_assert_int_eq(send(pair[0], "held", 4, 0), 4);
	nc_cork_lift(&corks, pair[0]);
	ck_assert(!nc_cork_is_set(&corks, pair[0]));
	ck_assert_int_eq(option(pair[0], TCP_CORK), 0);
	await(pair[1], POLLIN);
	close_pair(pair);
}
END_TEST

START_TEST(test_cork_of_the_program)
{
	int pair[2];

	tcp_pair(pair);
	set_option(pair[0], TCP_CORK, 1);
	ck_assert(nc_cork_set(&corks, pair[0]));
	ck_assert(!nc_cork_is_set(&corks, pair[0]));
	nc_cork_lift(&corks, pair[0]);
	ck_assert_int_eq(option(pair[0], TCP_CORK), 1);
	close_pair(pair);
}
END_TEST

/* The number of a socket that was closed uncorked may belong to another socket now. */
START_TEST(test_reused_number)
{
	int pair[2], other[2];

	tcp_pair(pair);
	ck_assert(nc_cork_set(&corks, pair[0]));
	tcp_pair(other);
	ck_assert_int_eq(dup2(other[0], pair[0]), pair[0]);
	ck_assert_int_eq(option(pair[0], TCP_CORK), 0);
	ck_assert(nc_cork_set(&corks, pair[0]));
	ck_assert_int_eq(option(pair[0], TCP_CORK), 1);
	close_pair(pair);
	close_pair(other);
}
END_TEST

START_TEST(test_forget)
{
	int pair[2];

	tcp_pair(pair);
	ck_assert(nc_cork_set(&corks, pair[0]));
	ck_assert(nc_cork_set(&corks, pair[1]));
	nc_cork_forget(&corks, pair[0]);
	ck_assert(!nc_cork_is_set(&corks, pair[0]));
	ck_assert(nc_cork_is_set(&corks, pair[1]));
	nc_cork_lift(&corks, pair[0]);
	ck_assert_int_eq(option(pair[0], TCP_CORK), 1);
	nc_cork_forget(&corks, pair[0]);
	close_pair(pair);
}
END_TEST

START_TEST(test_no_tcp_socket)
{
	static const int numbers[] = {-1, INT32_MIN, NC_CORK_WORDS * 64, INT32_MAX};
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert(!nc_cork_set(&corks, pair[0]));
	ck_assert(!nc_cork_is_set(&corks, pair[0]));
	nc_cork_push(pair[0]);
	close_pair(pair);
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		ck_assert(!nc_cork_set(&corks, numbers[i]));
		ck_assert(!nc_cork_is_set(&corks, numbers[i]));
		nc_cork_forget(&corks, numbers[i]);
		nc_cork_lift(&corks, numbers[i]);
	}
}
END_TEST

/* The segment leaves at once, and both options are unchanged. */
START_TEST(test_push)
{
	int pair[2];
	char got[4];

	tcp_pair(pair);
	set_option(pair[0], TCP_NODELAY, _i);
	ck_assert(nc_cork_set(&corks, pair[0]));
	ck_assert_int_eq(send(pair[0], "held", 4, 0), 4);
	nc_cork_push(pair[0]);
	read_exactly(pair[1], got, 4);
	ck_assert_mem_eq(got, "held", 4);
	ck_assert_int_eq(option(pair[0], TCP_NODELAY), _i);
	ck_assert_int_eq(option(pair[0], TCP_CORK), 1);
	close_pair(pair);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_set_and_lift);
	tcase_add_test(tcase, test_cork_of_the_program);
	tcase_add_test(tcase, test_reused_number);
	tcase_add_test(tcase, test_forget);
	tcase_add_test(tcase, test_no_tcp_socket);
	tcase_add_loop_test(tcase, test_push, 0, 2);
}

RUN_SUITE("cork", fill)
