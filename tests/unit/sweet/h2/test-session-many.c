/* SPDX-License-Identifier: MIT */
/*
 * test-session-many.c - unit tests of HTTP/2 sessions: streams that end at once, in whatever way, end
 * in several turns of the loop, with each kind of loop, and are counted until then.
 */
#include <glib.h>
#include <nabc.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "base/container.h"
#include "base/list.h"
#include "config/configuration.h"
#include "conn/conn-thread.h"
#include "conn/connection-base.h"
#include "conn/connection.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "event/loop.h"
#include "h2/h2-thread.h"
#include "h2/session-internal.h"

#define STREAMS_MAX 256

#include "loop-fixture.h"
#include "session-fixture.h"
#include "session-responder.h"
#include "suite.h"

#define REQUESTS 100u /* the most that the server permits */
#define EACH 63u      /* of two sessions */
/* A session has its part of a turn when its bytes come, and when its hook is called. */
#define TURN_MOST (SESSION_ENDS_MAX + SESSION_ENDS_EACH)

static unsigned stream_of_request(unsigned number)
{
	return 2 * number + 1;
}

static bool all_started(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!exchanges[stream_of_request(i)].started)
			return false;
	return true;
}

static bool all_gone(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!exchanges[stream_of_request(i)].gone)
			return false;
	return true;
}

/* The most requests that lost their client in one turn; all of them had a counted one then. */
static unsigned most_of_a_turn(unsigned count)
{
	unsigned most = 0;

	for (unsigned i = 0; i < count; i++) {
		const struct exchange *exchange = &exchanges[stream_of_request(i)];
		unsigned same = 0;

		for (unsigned j = 0; j < count; j++)
			same += exchange->gone_turn == exchanges[stream_of_request(j)].gone_turn;
		most = MAX(most, same);
		ck_assert_uint_ge(exchange->open, 1);
	}
	return most;
}

static void ask_many(unsigned first, unsigned count, const char *path)
{
	gathered = g_byte_array_new();
	for (unsigned i = first; i < first + count; i++)
		request(stream_of_request(i), path, false);
	say_gathered();
}

static void end_exchanges(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		call(&runner, be_done, &exchanges[stream_of_request(i)]);
}

/* Asserts that all have ended in several turns, and that nothing of the session is left. */
static void check_ends(unsigned count, unsigned most)
{
	AWAIT(all_gone(count));
	SEEN(most_of_a_turn(count) <= most);
	settle(&runner);
	SEEN(thread.h2->streams == 0 && list_is_empty(&thread.h2->sessions));
	end_exchanges(count);
}

START_TEST(test_end_by_client)
{
	begin(_i);
	ask_many(0, REQUESTS, "/w");
	AWAIT(all_started(REQUESTS));
	close(client);
	check_ends(REQUESTS, TURN_MOST);
	SEEN(thread.counters->open == 0 && !first_connection());
	connect_client();
	end();
}
END_TEST

/* The server ends the session, and waits for the client's end while the streams end. */
START_TEST(test_end_by_error)
{
	begin(_i);
	for (unsigned linger = 0; linger < 2; linger++) {
		EVENT(config.sockets.linger = linger);
		ask_many(0, REQUESTS, "/w");
		AWAIT(all_started(REQUESTS));
		/* Of a stream that does not exist. */
		say_number(NGHTTP2_RST_STREAM, 251, NGHTTP2_CANCEL);
		ck_assert(hears_end());
		check_ends(REQUESTS, TURN_MOST);
		SEEN(thread.counters->open == linger);
		close(client);
		connect_client();
	}
	end();
}
END_TEST

static void close_every_session(void *argument)
{
	(void)argument;
	list_each (struct carrier, at, &thread.conn->connections, node)
		connection_close(&at->connection);
}

/* The bound is one of all sessions. */
START_TEST(test_sessions_that_end_together)
{
	int first;

	begin(_i);
	first = client;
	connect_client();
	ask_many(0, EACH, "/w");
	G_STATIC_ASSERT(2 * (2 * EACH - 1) + 1 < STREAMS_MAX);
	AWAIT(all_started(EACH));
	{
		int second = client;

		client = first;
		ask_many(EACH, EACH, "/w");
		client = second;
	}
	AWAIT(all_started(2 * EACH));
	call(&runner, close_every_session, NULL);
	check_ends(2 * EACH, SESSION_ENDS_MAX + 2 * SESSION_ENDS_EACH);
	SEEN(thread.counters->open == 0);
	close(first);
	end();
}
END_TEST

/* A client resets them; or a window that is too large makes the server do it. */
START_TEST(test_resets)
{
	begin(_i);
	for (unsigned by_server = 0; by_server < 2; by_server++) {
		ask_many(0, REQUESTS, "/w");
		AWAIT(all_started(REQUESTS));
		gathered = g_byte_array_new();
		for (unsigned i = 0; i < REQUESTS; i++)
			say_number(by_server ? NGHTTP2_WINDOW_UPDATE : NGHTTP2_RST_STREAM,
				   stream_of_request(i), by_server ? INT32_MAX : NGHTTP2_CANCEL);
		say_gathered();
		/* Its bytes come, it has its turn, and what it sends has ended more. */
		check_ends(REQUESTS, TURN_MOST + SESSION_ENDS_EACH);
		/* The session continues. */
		request(stream_of_request(REQUESTS), "/s", false);
		hear_all();
		ck_assert_uint_eq(heard[stream_of_request(REQUESTS)].heads, 1);
		close(client);
		connect_client();
	}
	end();
}
END_TEST

/* --- settings ------------------------------------------------------------------------------ */

#define SETTINGS 300u
#define SETTINGS_MOST 24u /* with this many streams */

/* Looks at the session's frames in each turn. */
static struct watcher {
	struct loop_hook hook;
	unsigned before, most;
} watcher;

static bool look_at_frames(struct loop_hook *hook)
{
	struct watcher *at = container_of(hook, struct watcher, hook);
	const struct session *session =
		first_connection() ? first_connection()->carrier->session : NULL;
	unsigned now = session ? session->useless : 0;

	EVENT(at->most = MAX(at->most, now > at->before ? now - at->before : 0); at->before = now);
	return false;
}

static void watch(void *argument)
{
	(void)argument;
	watcher = (struct watcher){.hook.before_sleep = look_at_frames};
	loop_hook_add(thread.loop, &watcher.hook);
}

/* Each changes the windows of all streams. */
START_TEST(test_settings)
{
	static const unsigned char setting[] = {0, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0, 0, 0,
						0};

	begin(_i);
	ask_many(0, REQUESTS, "/w");
	AWAIT(all_started(REQUESTS));
	settle(&runner);
	call(&runner, watch, NULL);
	gathered = g_byte_array_new();
	for (unsigned i = 0; i < SETTINGS; i++)
		say_frame(NGHTTP2_SETTINGS, 0, 0, setting, sizeof(setting));
	say_gathered();
	hear_all();
	SEEN(watcher.before >= SETTINGS && watcher.most <= SETTINGS_MOST);
	close(client);
	check_ends(REQUESTS, TURN_MOST);
	connect_client();
	end();
}
END_TEST

/* --- between the end of a session and that of a stream --------------------------------------- */

static const char *const paths[] = {"/w", "/l", "/p", "/u", "/s"};
#define BODY_EACH 32u /* requests that have one: the session has a window */

static void answer_after_end(void *argument)
{
	(void)argument;
	connection_close(&list_first(&thread.conn->connections, struct carrier, node)->connection);
	for (unsigned i = 0; i < REQUESTS; i++) {
		struct exchange *exchange = &exchanges[stream_of_request(i)];

		if (exchange->kind == 'b' && !exchange->gone && exchange->has)
			ask_again(exchange);
		else if (exchange->kind == 'w' && !exchange->gone)
			be_done(exchange);
	}
}

static bool all_finished(void)
{
	for (unsigned i = 0; i < REQUESTS; i++)
		if (exchanges[stream_of_request(i)].started &&
		    !exchanges[stream_of_request(i)].finished)
			return false;
	return true;
}

static void end_without_turns(void *argument)
{
	answer_after_end(argument);
	connection_close_all(&thread);
}

/* Responders continue without a client to send to; the server may end before the streams do. */
START_TEST(test_between)
{
	begin(_i);
	make_unit();
	for (unsigned at_once = 0; at_once < 2; at_once++) {
		/*
		 * Bodies come last: Linux ignores what arrives beyond a receive window, and its
		 * acknowledgements with it (since 6.17), so that two sides that have filled each
		 * other's buffers wait until one of them reads; and this client never does.
		 */
		gathered = g_byte_array_new();
		for (unsigned i = 0; i < REQUESTS; i++) {
			bool body = i % BODY_EACH == 1;
			const char *path = paths[i % G_N_ELEMENTS(paths)];

			request(stream_of_request(i), body ? "/b" : path, body);
		}
		say_gathered();
		for (unsigned i = 1; i < REQUESTS; i += BODY_EACH)
			say_content(stream_of_request(i), 0, WINDOW + 1000, false);
		AWAIT(all_started(REQUESTS) && exchanges[stream_of_request(1)].has);
		settle(&runner);
		call(&runner, at_once ? end_without_turns : answer_after_end, NULL);
		AWAIT(all_finished());
		settle(&runner);
		SEEN(thread.counters->open == 0 && thread.h2->streams == 0);
		close(client);
		connect_client();
	}
	ck_assert_int_eq(NC_destroy(NULL, unit), 0);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	int kind = first_kind();

	tcase_add_loop_test(tcase, test_end_by_client, kind, KINDS);
	tcase_add_loop_test(tcase, test_end_by_error, kind, KINDS);
	tcase_add_loop_test(tcase, test_sessions_that_end_together, kind, KINDS);
	tcase_add_loop_test(tcase, test_resets, kind, KINDS);
	tcase_add_loop_test(tcase, test_settings, kind, KINDS);
	tcase_add_loop_test(tcase, test_between, kind, KINDS);
}

RUN_SUITE("session-many", fill)
