/* SPDX-License-Identifier: MIT */
/*
 * test-connection-many.c - unit tests of many connections for which something happens at once, in
 * several turns of their loop: the server drains, so that idle ones close, and sessions of HTTP/2 say
 * goodbye; or memory is short, so that responses leave their units, and slow ones are reset.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <glib.h>
#include <nabc.h>
#include <nghttp2/nghttp2.h>

#include "base/list.h"
#include "config/configuration.h"
#include "conn/conn-thread.h"
#include "conn/connection-base.h"
#include "conn/connection.h"
#include "core/server.h"
#include "core/site.h"
#include "core/thread-counters.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "event/piece.h"
#include "h2/h2-thread.h"
#include "h2/session-internal.h"
#include "h2/session.h"
#include "handler/route.h"
#include "pressure/slow.h"

#include "conn-fixture.h"
#include "loop-fixture.h"
#include "route-seam.h"
#include "suite.h"
#include "thread-fixture.h"

#define CLIENTS 200u
#define TURN_MOST 64u
#define LARGE ((size_t)4 << 20) /* bytes of a response: more than sockets have */

static struct runner runner;
static struct thread thread;
static struct server server;
static struct config config;
static struct site site;
static struct config_ref generation;
static int clients[CLIENTS];

static size_t unit; /* of all responses; 0: they have no body */

enum respond route(struct transaction *transaction)
{
	struct NC_range range = {.id = unit, .length = LARGE};

	transaction->response.bodiless = !unit;
	transaction->response.status = unit ? 200 : 204;
	if (unit && piece_hold_range(&transaction->piece, range) == 0)
		transaction->response.length = LARGE;
	return RESPOND_NOW;
}

/* What becomes less in a turn of the loop: until its end, or by the work of its sessions. */
static struct {
	struct loop_hook before, after; /* those of the sessions */
	unsigned connections, sessions, most;
	bool of_sessions;
} watcher;

static void note(unsigned before, unsigned now)
{
	if (now < before)
		EVENT(watcher.most = MAX(watcher.most, before - now));
}

static unsigned waking_sessions(void)
{
	unsigned count = 0;

	list_each (const struct session, session, &thread.h2->sessions, waking)
		count++;
	return count;
}

static bool look_before(struct loop_hook *hook)
{
	unsigned now = (unsigned)thread.counters->open;

	(void)hook;
	if (!watcher.of_sessions)
		note(watcher.connections, now);
	EVENT(watcher.connections = now);
	watcher.sessions = waking_sessions();
	return false;
}

static bool look_after(struct loop_hook *hook)
{
	(void)hook;
	if (watcher.of_sessions)
		note(watcher.sessions, waking_sessions());
	return false;
}

/* Hooks that are added last are called first. */
static void start(void *argument)
{
	(void)argument;
	watcher.before.before_sleep = look_before;
	watcher.after.before_sleep = look_after;
	loop_hook_add(thread.loop, &watcher.after);
	open_conn(&thread);
	loop_hook_add(thread.loop, &watcher.before);
}

static void take_over(void *argument)
{
	connection_open(&thread, *(int *)argument, false, false);
}

static void say(int client, const void *bytes, size_t length)
{
	ck_assert_int_eq(send(client, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
}

/* Each client says that, and hears something. */
static void begin(int number, const void *bytes, size_t length)
{
	char heard[4096];

	runner_start(&runner, kind_of(number));
	config = (struct config){.http2 = HTTP2_CLEAR, .limits = long_limits(100)};
	site = (struct site){.config = &config, .number = 1};
	generation = (struct config_ref){.site = &site, .config = &config, .users = 1};
	server = (struct server){.held_most = 64 << 20,
				 .unsent_most = 64 << 20,
				 .threads = 1,
				 .per_thread = {&thread}};
	thread = make_thread(
		(struct thread){.loop = runner.loop, .config_ref = &generation, .server = &server});
	call(&runner, start, NULL);
	for (unsigned i = 0; i < CLIENTS; i++) {
		int pair[2];

		tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 0, 0);
		set_nonblocking(pair[1]);
		clients[i] = pair[0];
		call(&runner, take_over, &pair[1]);
		say(clients[i], bytes, length);
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		ck_assert_int_gt(read(clients[i], heard, sizeof(heard)), 0);
	settle(&runner);
	SEEN(thread.counters->open == CLIENTS);
	EVENT(watcher.most = 0);
}

static void drain(void *argument)
{
	(void)argument;
	connection_drain(&thread);
}

/* All clients hear the end of their connections. */
static void check_ends(void)
{
	char heard[4096];

	for (unsigned i = 0; i < CLIENTS; i++) {
		while (read(clients[i], heard, sizeof(heard)) > 0)
			;
		close(clients[i]);
	}
}

static void close_all(void *argument)
{
	(void)argument;
	connection_close_all(&thread);
}

static void end(void)
{
	call(&runner, close_all, NULL);
	ck_assert_uint_eq(thread.counters->open, 0);
	runner_stop(&runner);
	close_conn(&thread);
	ck_assert_uint_eq(generation.users, 1);
}

static const char request[] = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";

START_TEST(test_idle)
{
	begin(_i, request, strlen(request));
	call(&runner, drain, NULL);
	check_ends();
	AWAIT(watcher.connections == 0);
	SEEN(watcher.most <= TURN_MOST);
	end();
}
END_TEST

static void say_and_drain(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < CLIENTS; i += 2)
		say(clients[i], request, strlen(request));
	connection_drain(&thread);
}

/* A request that came before gets its response. */
START_TEST(test_last_requests)
{
	char heard[4096] = "";

	begin(_i, request, strlen(request));
	call(&runner, say_and_drain, NULL);
	for (unsigned i = 0; i < CLIENTS; i += 2) {
		ssize_t got = read(clients[i], heard, sizeof(heard) - 1);

		ck_assert_int_gt(got, 0);
		heard[got] = '\0';
		ck_assert_msg(strstr(heard, "204") && strstr(heard, "Connection: close"), "%s",
			      heard);
	}
	check_ends();
	AWAIT(watcher.connections == 0);
	end();
}
END_TEST

START_TEST(test_sessions)
{
	static const unsigned char settings[SESSION_FRAME_HEAD] = {0, 0, 0, NGHTTP2_SETTINGS};
	static const unsigned char acknowledged[SESSION_FRAME_HEAD] = {0, 0, 0, NGHTTP2_SETTINGS,
								       NGHTTP2_FLAG_ACK};
	GByteArray *hello = g_byte_array_new();

	g_byte_array_append(hello, (const guint8 *)SESSION_PREFACE, strlen(SESSION_PREFACE));
	g_byte_array_append(hello, settings, sizeof(settings));
	g_byte_array_append(hello, acknowledged, sizeof(acknowledged));
	watcher.of_sessions = true;
	begin(_i, hello->data, hello->len);
	g_byte_array_unref(hello);
	call(&runner, drain, NULL);
	settle(&runner);
	SEEN(watcher.most > 0 && watcher.most <= TURN_MOST);
	call(&runner, close_all, NULL);
	check_ends();
	end();
}
END_TEST

static void make_unit(void)
{
	NC_handle handle;

	ck_assert_int_eq(NC_alloc(&handle, LARGE, 0), 0);
	ck_assert_int_eq(NC_insert(&handle), 0);
	unit = NC_cache_id(&handle);
	ck_assert_int_eq(NC_free(&handle), 0);
}

static unsigned slow(void)
{
	unsigned count = 0;

	list_each (const struct carrier, carrier, &thread.conn->connections, node)
		count += carrier->connection.slow.id != 0;
	return count;
}

static void count_slow(void *argument)
{
	*(unsigned *)argument = slow();
}

static void shed(void *argument)
{
	(void)argument;
	server.held_most = 0;
	thread_shed(&thread);
}

/* There is no spool: they are reset. */
START_TEST(test_units)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 4 * LARGE);
	NC_cache *cache = NC_cache_open(&options);
	unsigned count = 0;

	ck_assert_ptr_nonnull(cache);
	make_unit();
	begin(_i, request, strlen(request));
	while (count < CLIENTS) {
		call(&runner, count_slow, &count);
		settle(&runner);
	}
	EVENT(watcher.most = 0);
	call(&runner, shed, NULL);
	AWAIT(watcher.connections == 0);
	SEEN(watcher.most <= TURN_MOST);
	ck_assert_uint_eq(thread.counters->slow_reset, CLIENTS);
	check_ends();
	end();
	ck_assert_int_eq(NC_destroy(NULL, unit), 0);
	ck_assert_int_eq(NC_cache_close(cache), 0);
	unit = 0;
}
END_TEST

static void fill(TCase *tcase)
{
	int kind = first_kind();

	tcase_add_loop_test(tcase, test_idle, kind, KINDS);
	tcase_add_loop_test(tcase, test_last_requests, kind, KINDS);
	tcase_add_loop_test(tcase, test_sessions, kind, KINDS);
	tcase_add_loop_test(tcase, test_units, kind, KINDS);
}

RUN_SUITE("connection-many", fill)
