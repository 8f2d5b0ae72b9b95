/* SPDX-License-Identifier: MIT */
/*
 * test-listener.c - unit tests of listener.c: accepted sockets become connections, and
 * no client is lost when the listener is retired.  Every test is run with each kind of
 * loop.
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/timer.h"
#include "config/configuration.h"
#include "conn/connection.h"
#include "conn/listener.h"
#include "core/server.h"
#include "core/site.h"
#include "core/thread-counters.h"
#include "event/loop.h"
#include "process/endpoint.h"

#include "conn-fixture.h"
#include "loop-fixture.h"
#include "process-fixture.h"
#include "suite.h"
#include "thread-fixture.h"

#define WAITING 20 /* clients in a queue */

static struct runner runner;
static struct thread thread;
static struct listener listener;
static struct listen_address address;
static unsigned retired;
/* Connections take their limits from it. */
static struct config config = {.limits = {.header_ms = 30000, .keep_alive_ms = 30000}};
static struct site site = {.config = &config, .number = 1};
static struct config_ref generation = {.site = &site, .config = &config, .users = 1};

static void on_retired(struct listener *one)
{
	ck_assert_ptr_eq(one, &listener);
	ck_assert_int_eq(one->fd, -1);
	EVENT(retired++);
}

static void begin(void *argument)
{
	if (listener_start(&listener, &thread, *(int *)argument, false))
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
	connection_close_all(&thread);
}

static void start(void *argument)
{
	(void)argument;
	open_conn(&thread);
}

/* Opens everything; returns the listening socket. */
static int open_all(int number)
{
	int fd;

	runner_start(&runner, kind_of(number));
	thread = make_thread((struct thread){.loop = runner.loop, .config_ref = &generation});
	ck_assert(address_parse("127.0.0.1:0", &address));
	call(&runner, start, NULL);
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
	return (unsigned)atomic_load(&thread.counters->connections);
}

/* Returns whether a client's connection is open: a reset by the server would be noticed. */
static bool is_open(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

START_TEST(test_retire_waits_for_the_queue)
{
	int fd = open_all(_i), clients[WAITING];
	bool leave = false;

	/* All are in the queue before the first accept; or some arrive meanwhile. */
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
	/* The socket no longer listens. */
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_lt(connect(fd, (struct sockaddr *)&address.address, address.length), 0);
	ck_assert_int_eq(errno, ECONNREFUSED);
	close(fd);
	call(&runner, end, NULL);
	for (unsigned i = 0; i < WAITING; i++)
		close(clients[i]);
	runner_stop(&runner);
	close_conn(&thread);
}
END_TEST

static void begin_and_retire(void *argument)
{
	bool leave = false;

	begin(argument);
	retire(&leave);
}

/* Retired before the loop has accepted any client. */
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
	close_conn(&thread);
}
END_TEST

/* Another listener has the same socket: later clients are left to it. */
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
	close_conn(&thread);
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
	close_conn(&thread);
}
END_TEST

static void closed_while_stopping(void *argument)
{
	retire(argument);
	listener_close(&listener);
}

/* After the close no callback is called. */
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
	close_conn(&thread);
}
END_TEST

/* --- descriptors run out ------------------------------------------------------------- */

#define LIMIT 128      /* maximum of descriptors of the process here */
#define LOOK_MS 300    /* during which a loop is watched */
#define TURNS_MAX 100u /* in that time; a loop that spins makes thousands */

static struct loop_hook hook;
static struct timer look;
static _Atomic unsigned turns; /* read while the loop runs */
static unsigned looks;
static struct rlimit before; /* of descriptors */

static bool count_turn(struct loop_hook *one)
{
	(void)one;
	turns++;
	return false;
}

static void looked(struct timer *timer)
{
	(void)timer;
	EVENT(looks++);
}

static void begin_look(void *argument)
{
	turns = 0;
	hook.before_sleep = count_turn;
	if (argument)
		loop_hook_add(runner.loop, &hook);
	loop_timer_start(runner.loop, &look, LOOK_MS, looked);
}

/* Without free descriptors: the loop sleeps, whatever clients wait. */
static void check_rest(bool first)
{
	unsigned before = looks;

	call(&runner, begin_look, first ? &hook : NULL);
	AWAIT(looks == before + 1);
	ck_assert_uint_le(turns, TURNS_MAX);
}

/* What another thread does between two calls of the listener. */
static void lose_reserve(void *argument)
{
	(void)argument;
	close(listener.reserve);
	listener.reserve = -1;
	hogs[hog_count++] = dup(STDIN_FILENO);
}

static void visit_by(int fd)
{
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address.address, address.length), 0);
}

static void await_turned_away(int fd)
{
	char byte;

	await(fd, POLLIN);
	ck_assert_int_le(recv(fd, &byte, 1, 0), 0);
	/* The listener reopens its reserve before another thread can take that descriptor. */
	settle(&runner);
	close(fd);
}

/* From now on; an accept of io_uring keeps the limit from its start. */
static void limit_descriptors(void)
{
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	hog_descriptors(LIMIT, 0);
	free_descriptors();
}

START_TEST(test_out_of_descriptors)
{
	int fd, clients[4];

	if (skip_without_limits("listener: no descriptors"))
		return;
	limit_descriptors();
	fd = open_all(_i);
	call(&runner, begin, &fd);
	for (unsigned i = 0; i < 4; i++)
		clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* Clients are rejected one by one, and no loop spins for the next. */
	hog_descriptors(LIMIT, 0);
	visit_by(clients[0]);
	await_turned_away(clients[0]);
	hog_descriptors(LIMIT, 0);
	check_rest(true);
	visit_by(clients[1]);
	await_turned_away(clients[1]);
	hog_descriptors(LIMIT, 0);
	/* Another thread has the reserve: new clients have to wait. */
	call(&runner, lose_reserve, NULL);
	visit_by(clients[2]);
	check_rest(false);
	ck_assert(is_open(clients[2]));
	ck_assert_uint_eq(connections(), 0);
	/* Until a descriptor is free, which becomes the reserve again. */
	close(hogs[--hog_count]);
	await_turned_away(clients[2]);
	close(hogs[--hog_count]);
	close(hogs[--hog_count]);
	visit_by(clients[3]);
	while (connections() == 0)
		settle(&runner);
	ck_assert(is_open(clients[3]));
	close(clients[3]);
	free_descriptors();
	call(&runner, end, NULL);
	runner_stop(&runner);
	close_conn(&thread);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
}
END_TEST

/* In the middle of that. */
START_TEST(test_retire_out_of_descriptors)
{
	bool leave = true;
	int fd, client;

	if (skip_without_limits("listener: retired without descriptors"))
		return;
	limit_descriptors();
	fd = open_all(_i);
	call(&runner, begin, &fd);
	client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	hog_descriptors(LIMIT, 0);
	call(&runner, lose_reserve, NULL);
	visit_by(client);
	check_rest(true);
	call(&runner, retire, &leave);
	AWAIT(retired == 1);
	/* A remaining timer would be noticed now. */
	check_rest(false);
	free_descriptors();
	close(client);
	runner_stop(&runner);
	close_conn(&thread);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
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
	tcase_add_loop_test(tcase, test_out_of_descriptors, first, KINDS);
	tcase_add_loop_test(tcase, test_retire_out_of_descriptors, first, KINDS);
}

RUN_SUITE("listener", fill)
