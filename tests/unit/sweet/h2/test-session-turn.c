/* SPDX-License-Identifier: MIT */
/*
 * test-session-turn.c - unit tests of HTTP/2 sessions: requests that come at once are started in
 * several turns of the loop, with each kind of loop, so that other clients have theirs between.
 */
#include <glib.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "conn/connection-base.h"
#include "core/server.h"
#include "event/loop.h"
#include "h2/h2-thread.h"

#define STREAMS_MAX 256

#include "loop-fixture.h"
#include "session-fixture.h"
#include "session-responder.h"
#include "suite.h"

#define REQUESTS 100u	     /* the most that the server permits */
#define TURN_MOST (64u + 8u) /* SESSION_STARTS_MAX and _EACH */

static unsigned stream_of_request(unsigned number)
{
	return 2 * number + 1;
}

static bool all_started(void)
{
	for (unsigned i = 0; i < REQUESTS; i++)
		if (!exchanges[stream_of_request(i)].started)
			return false;
	return true;
}

static bool all_ended(void)
{
	for (unsigned i = 0; i < REQUESTS; i++)
		if (!heard[stream_of_request(i)].ended)
			return false;
	return true;
}

/* The most requests that one turn has started. */
static unsigned most_of_a_turn(void)
{
	unsigned most = 0;

	for (unsigned i = 0; i < REQUESTS; i++) {
		unsigned same = 0;

		for (unsigned j = 0; j < REQUESTS; j++)
			same += exchanges[stream_of_request(i)].turn ==
				exchanges[stream_of_request(j)].turn;
		most = MAX(most, same);
	}
	return most;
}

/* Sends all requests in one segment, for a path of session-responder.h. */
static void ask_at_once(const char *path)
{
	permit(0);
	gathered = g_byte_array_new();
	for (unsigned i = 0; i < REQUESTS; i++)
		request(stream_of_request(i), path, false);
	say_gathered();
}

START_TEST(test_requests_that_wait)
{
	begin(_i);
	ask_at_once("/w");
	AWAIT(all_started());
	SEEN(most_of_a_turn() <= TURN_MOST);
	for (unsigned i = 0; i < REQUESTS; i++)
		call(&runner, be_done, &exchanges[stream_of_request(i)]);
	HEAR(all_ended());
	end();
}
END_TEST

START_TEST(test_requests_that_are_answered)
{
	begin(_i);
	ask_at_once("/s");
	HEAR(all_ended());
	SEEN(all_started() && most_of_a_turn() <= TURN_MOST);
	end();
}
END_TEST

#define SESSIONS 10u

static int clients[SESSIONS];

/* Each session sends its part of the requests; on the loop's thread, so that all come in one turn. */
static void ask_from_all(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < SESSIONS; i++) {
		client = clients[i];
		gathered = g_byte_array_new();
		for (unsigned k = 0; k < REQUESTS / SESSIONS; k++)
			request(stream_of_request(i * REQUESTS / SESSIONS + k), "/w", false);
		say_gathered();
	}
}

static void begin_sessions(int kind)
{
	begin(kind);
	for (unsigned i = 0; i < SESSIONS; i++) {
		if (i)
			connect_client();
		clients[i] = client;
		hear_all();
	}
}

/* All their requests have been started. */
static void end_sessions(void)
{
	for (unsigned i = 0; i < REQUESTS; i++)
		call(&runner, be_done, &exchanges[stream_of_request(i)]);
	for (unsigned i = 0; i + 1 < SESSIONS; i++)
		close(clients[i]);
	end();
}

/* The bound is one of all sessions, however many there are. */
START_TEST(test_requests_of_many_sessions)
{
	begin_sessions(_i);
	call(&runner, ask_from_all, NULL);
	AWAIT(all_started());
	SEEN(most_of_a_turn() <= TURN_MOST);
	end_sessions();
}
END_TEST

static void give_no_time(void *argument)
{
	(void)argument;
	thread.h2->session_turn_ns = 0;
}

/*
 * When sessions have used up their time, one with new requests and one that has had a part of them
 * still make progress in each turn.
 */
START_TEST(test_time_of_a_turn)
{
	begin_sessions(_i);
	call(&runner, give_no_time, NULL);
	call(&runner, ask_from_all, NULL);
	AWAIT(all_started());
	/* SESSION_STARTS_EACH of both */
	SEEN(most_of_a_turn() <= 2 * 8);
	end_sessions();
}
END_TEST

#define VALUE 5000u /* bytes of a field: less than a head may have */

static size_t saved;
static unsigned pieces;
static struct loop_hook watcher;

static bool look_at_saved(struct loop_hook *hook)
{
	const struct connection *connection = first_connection();
	size_t now = connection ? connection->input_length : 0;

	(void)hook;
	if (now && now < saved)
		EVENT(pieces++);
	saved = now;
	return false;
}

static void watch_saved(void *argument)
{
	give_no_time(argument);
	watcher.before_sleep = look_at_saved;
	loop_hook_add(runner.loop, &watcher);
}

/* A long head is not decoded in one turn, if sessions have used up their time. */
START_TEST(test_long_head)
{
	static char block[64 + VALUE];
	size_t length = write_head(block, "/s", false);

	begin(_i);
	hear_all();
	saved = pieces = 0;
	call(&runner, watch_saved, NULL);
	/* A literal without an index (RFC 7541, section 6.2.2); its length has a prefix of 7 bits. */
	block[length++] = 0;
	block[length++] = 1;
	block[length++] = 'x';
	block[length++] = 127;
	block[length++] = (char)(((VALUE - 127) & 127) | 128);
	block[length++] = (VALUE - 127) >> 7;
	memset(block + length, 'a', VALUE);
	permit(0);
	say_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1, block,
		  length + VALUE);
	HEAR(heard[1].ended);
	SEEN(pieces >= VALUE / 1024);
	end();
}
END_TEST

/* What waits for its turn goes with its session. */
START_TEST(test_end_of_a_turn)
{
	begin(_i);
	ask_at_once("/w");
	AWAIT(exchanges[stream_of_request(0)].started);
	close(client);
	AWAIT(exchanges[stream_of_request(0)].gone);
	settle(&runner);
	for (unsigned i = 0; i < REQUESTS; i++)
		if (exchanges[stream_of_request(i)].started)
			call(&runner, be_done, &exchanges[stream_of_request(i)]);
	connect_client();
	request(1, "/s", false);
	HEAR(heard[1].ended);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	int kind = first_kind();

	tcase_add_loop_test(tcase, test_requests_that_wait, kind, KINDS);
	tcase_add_loop_test(tcase, test_requests_that_are_answered, kind, KINDS);
	tcase_add_loop_test(tcase, test_requests_of_many_sessions, kind, KINDS);
	tcase_add_loop_test(tcase, test_time_of_a_turn, kind, KINDS);
	tcase_add_loop_test(tcase, test_long_head, kind, KINDS);
	tcase_add_loop_test(tcase, test_end_of_a_turn, kind, KINDS);
}

RUN_SUITE("session-turn", fill)
