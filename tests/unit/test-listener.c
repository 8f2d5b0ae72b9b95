/* SPDX-License-Identifier: MIT */
/*
 * test-listener.c - unit tests of listener.c: what a listening socket gives
 * becomes connections, and nobody is lost when it is retired.  Every test is
 * run with each kind of loop.
 */
#include <connection.h>
#include <endpoint.h>
#include <listener.h>

#include "loop-fixture.h"

#define WAITING 20 /* clients in a queue */

static struct runner runner;
static struct server server;
static struct listener listener;
static struct listen_address address;
static unsigned retired;
/* Connections take their limits from it. */
static struct config config = {.limits = {.header_ms = 30000, .keep_alive_ms = 30000}};
static struct generation generation = {.config = &config, .users = 1};

static void on_retired(struct listener *one)
{
	ck_assert_ptr_eq(one, &listener);
	ck_assert_int_eq(one->fd, -1);
	EVENT(retired++);
}

static void begin(void *argument)
{
	if (listener_start(&listener, &server, *(int *)argument, false))
		ck_abort_msg("listener_start");
}

static void retire(void *argument)
{
	listener_retire(&listener, *(bool *)argument, on_retired);
	/* Once is enough. */
	listener_retire(&listener, *(bool *)argument, on_retired);
	if (retired)
		ck_abort_msg("told before the call returned");
}

static void end(void *argument)
{
	(void)argument;
	listener_close(&listener);
	listener_close(&listener);
	connection_close_all(&server);
}

/* Opens everything; the socket that listens. */
static int open_all(int number)
{
	int fd;

	runner_start(&runner, kind_of(number));
	server = (struct server){.loop = runner.loop, .log.fd = -1, .generation = &generation};
	ck_assert(address_parse("127.0.0.1:0", &address));
	fd = endpoint_bind(&address, false);
	ck_assert_int_ge(fd, 0);
	address.length = sizeof(address.address);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address.address, &address.length), 0);
	return fd;
}

static int visit(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address.address, address.length), 0);
	return fd;
}

static unsigned connections(void)
{
	return (unsigned)atomic_load(&server.counters.connections);
}

/* Whether a client's connection is there: a server's own reset would be seen. */
static bool is_open(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

START_TEST(test_retire_waits_for_the_queue)
{
	int fd = open_all(_i), clients[WAITING];
	bool leave = false;

	/* All in the queue before anybody accepts; or while somebody does. */
	for (unsigned i = 0; i < WAITING / 2; i++)
		clients[i] = visit();
	call(&runner, begin, &fd);
	for (unsigned i = WAITING / 2; i < WAITING; i++)
		clients[i] = visit();
	call(&runner, retire, &leave);
	AWAIT(retired == 1);
	settle(&runner);
	ck_assert_uint_eq(connections(), WAITING);
	for (unsigned i = 0; i < WAITING; i++)
		ck_assert(is_open(clients[i]));
	SEEN(retired == 1);
	/* Nobody listens any more. */
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_lt(connect(fd, (struct sockaddr *)&address.address, address.length), 0);
	ck_assert_int_eq(errno, ECONNREFUSED);
	close(fd);
	call(&runner, end, NULL);
	for (unsigned i = 0; i < WAITING; i++)
		close(clients[i]);
	runner_stop(&runner);
}
END_TEST

static void begin_and_retire(void *argument)
{
	bool leave = false;

	begin(argument);
	retire(&leave);
}

/* Retired before the loop has accepted anybody. */
START_TEST(test_retire_at_once)
{
	int fd = open_all(_i), clients[WAITING];

	for (unsigned i = 0; i < WAITING; i++)
		clients[i] = visit();
	call(&runner, begin_and_retire, &fd);
	AWAIT(retired == 1);
	settle(&runner);
	ck_assert_uint_eq(connections(), WAITING);
	for (unsigned i = 0; i < WAITING; i++)
		ck_assert(is_open(clients[i]));
	call(&runner, end, NULL);
	for (unsigned i = 0; i < WAITING; i++)
		close(clients[i]);
	runner_stop(&runner);
}
END_TEST

/* Another has the same socket: who comes later is left to it. */
START_TEST(test_retire_leaves_the_queue)
{
	int fd = open_all(_i), other = dup(fd), client, guest;
	bool leave = true;

	call(&runner, begin, &fd);
	call(&runner, retire, &leave);
	AWAIT(retired == 1);
	client = visit();
	settle(&runner);
	ck_assert_uint_eq(connections(), 0);
	await(other, POLLIN);
	guest = accept4(other, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(guest, 0);
	close(guest);
	close(other);
	close(client);
	call(&runner, end, NULL);
	runner_stop(&runner);
}
END_TEST

START_TEST(test_close)
{
	int fd = open_all(_i), client;

	call(&runner, begin, &fd);
	client = visit();
	settle(&runner);
	call(&runner, end, NULL);
	settle(&runner);
	ck_assert_uint_eq(connections(), 1);
	SEEN(retired == 0);
	close(client);
	runner_stop(&runner);
}
END_TEST

static void closed_while_stopping(void *argument)
{
	retire(argument);
	listener_close(&listener);
}

/* After the close nobody is called back. */
START_TEST(test_close_while_retiring)
{
	int fd = open_all(_i);
	bool leave = false;

	call(&runner, begin, &fd);
	call(&runner, closed_while_stopping, &leave);
	settle(&runner);
	SEEN(retired == 0);
	call(&runner, end, NULL);
	runner_stop(&runner);
}
END_TEST

static void fill(TCase *tcase)
{
	int first = first_kind();

	tcase_add_loop_test(tcase, test_retire_waits_for_the_queue, first, KINDS);
	tcase_add_loop_test(tcase, test_retire_at_once, first, KINDS);
	tcase_add_loop_test(tcase, test_retire_leaves_the_queue, first, KINDS);
	tcase_add_loop_test(tcase, test_close, first, KINDS);
	tcase_add_loop_test(tcase, test_close_while_retiring, first, KINDS);
}

RUN_SUITE("listener", fill)
