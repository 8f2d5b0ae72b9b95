/* SPDX-License-Identifier: MIT */
/*
 * test-session.c - unit tests of HTTP/2 sessions: streams that end, move and are cut off at exact
 * moments.  Every test is run with each kind of loop.
 */
#include <glib.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <nabc.h>

#include "conn/connection-base.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "event/thread-pool.h"
#include "files/spool.h"
#include "h2/session-internal.h"

#include "loop-fixture.h"
#include "session-fixture.h"
#include "session-responder.h"
#include "suite.h"

/* The client resets a stream of which memory is in the message in flight. */
START_TEST(test_reset_in_flight)
{
	begin(_i);
	permit(0);
	for (unsigned stream = 1; stream < 9; stream += 2) {
		request(stream, "/l", false);
		permit(stream);
	}
	await_full();
	say_number(NGHTTP2_RST_STREAM, 1, NGHTTP2_CANCEL);
	AWAIT(exchanges[1].finished);
	say_number(NGHTTP2_RST_STREAM, 5, NGHTTP2_CANCEL);
	AWAIT(exchanges[5].finished);
	HEAR(heard[3].ended && heard[7].ended);
	ck_assert(!heard[1].ended && !heard[5].ended);
	ck_assert_uint_eq(heard[3].content, LARGE);
	ck_assert_uint_eq(heard[7].content, LARGE);
	/* The session continues. */
	request(9, "/p", false);
	permit(9);
	HEAR(heard[9].ended);
	ck_assert_uint_eq(heard[9].content, PIECES * PIECE);
	end();
}
END_TEST

/*
 * A head without end while a message is in flight: its response is in the next one, and only then is
 * the stream reset, unless its head has ended by then.
 */
static void refuse_in_flight(int kind, bool ends)
{
	/* A field of the dynamic table without a name, of 3,000 bytes, and references to it. */
	static unsigned char block[16000] = {0x82, 0x86, 0x84, 0x01, 1,	   't',
					     0x40, 1,	 'a',  0x7f, 0xb9, 0x16};
	const size_t field = 12 + 3000;

	memset(block + 12, 'x', 3000);
	memset(block + field, 0xbe, sizeof(block) - field);
	begin(kind);
	permit(0);
	request(1, "/l", false);
	permit(1);
	await_full();
	heard[3].refused = true;
	say_frame(NGHTTP2_HEADERS, 0, 3, block, sizeof(block));
	if (ends) {
		say_frame(NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 3, NULL, 0);
		say_content(3, 0, 1000, true);
	}
	HEAR(heard[3].ended && (ends || heard[3].reset != UNCUT));
	ck_assert_uint_eq(heard[3].heads, 1);
	ck_assert_uint_gt(heard[3].content, 0);
	HEAR(heard[1].ended);
	ck_assert_uint_eq(heard[1].content, LARGE);
	/* The rest of the head is decoded, and the session continues. */
	if (!ends)
		say_frame(NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 3, NULL, 0);
	request(5, "/p", false);
	permit(5);
	HEAR(heard[5].ended);
	ck_assert_uint_eq(heard[3].reset, ends ? UNCUT : NGHTTP2_NO_ERROR);
	end();
}

START_TEST(test_head_without_end_in_flight)
{
	refuse_in_flight(_i, false);
}
END_TEST

START_TEST(test_head_that_ends_in_flight)
{
	refuse_in_flight(_i, true);
}
END_TEST

/*
 * Content that is not needed comes while a message is in flight, and the response's end waits: the
 * stream is reset after that.
 */
START_TEST(test_content_of_ended_in_flight)
{
	begin(_i);
	permit(0);
	request(3, "/e", true);
	permit(3);
	HEAR(heard[3].content == PIECE);
	AWAIT(exchanges[3].waits);
	request(5, "/l", false);
	permit(5);
	await_full();
	call(&runner, end_now, &exchanges[3]);
	AWAIT(exchanges[3].finished);
	say_content(3, 0, SESSION_STREAM_WINDOW, false);
	HEAR(heard[3].reset != UNCUT);
	ck_assert(heard[3].ended);
	ck_assert_uint_eq(heard[3].reset, NGHTTP2_NO_ERROR);
	HEAR(heard[5].ended);
	end();
}
END_TEST

enum moving { NO_WINDOW, SMALL_WINDOW, FULL_SOCKET, MOVINGS };

static void set_no_window(void)
{
	static const unsigned char setting[] = {0, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0, 0, 0,
						0};

	say_frame(NGHTTP2_SETTINGS, 0, 0, setting, sizeof(setting));
}

static void move(enum moving how)
{
	make_unit();
	if (how == NO_WINDOW)
		set_no_window();
	if (how == FULL_SOCKET)
		permit(0);
	request(1, "/u", false);
	if (how == FULL_SOCKET)
		permit(1);
	AWAIT(exchanges[1].finished);
	ck_assert_uint_eq(thread.counters->slow_spooled, how + 1);
	ck_assert_int_eq(NC_destroy(NULL, unit), 0);
	if (how != FULL_SOCKET) {
		permit(0);
		permit(1);
	}
	HEAR(heard[1].ended);
	ck_assert_uint_eq(heard[1].content, LARGE);
}

/* A response leaves its unit while it waits, with frames of it in flight, or without any. */
START_TEST(test_moved)
{
	struct spools_options options = {.folder = "/var/tmp",
					 .most = 64 << 20,
					 .memory = true,
					 .user = (uid_t)-1,
					 .group = (gid_t)-1};
	char *why = NULL;

	begin(_i);
	server.thread_pool = thread_pool_open(1, 1);
	server.spools = spools_open(&options, &why);
	ck_assert_msg(server.spools, "%s", why);
	spools_start(server.spools, server.thread_pool);
	server.held_most = 0;
	for (enum moving how = NO_WINDOW; how < MOVINGS; how++) {
		move(how);
		close(client);
		connect_client();
	}
	ck_assert_uint_eq(thread.counters->slow_reset, 0);
	end();
}
END_TEST

/* A response that ends before its end: the client sees that, and whose fault it is. */
START_TEST(test_cut_off)
{
	begin(_i);
	request(1, "/c", false);
	HEAR(heard[1].reset != UNCUT);
	ck_assert_uint_eq(heard[1].content, 2 * PIECE);
	ck_assert(heard[1].heads == 1 && !heard[1].ended);
	permit(0);
	request(3, "/r", false);
	HEAR(heard[3].reset != UNCUT);
	ck_assert_uint_eq(heard[3].content, 2 * PIECE);
	ck_assert_uint_eq(heard[3].reset, NGHTTP2_CANCEL);
	request(5, "/p", false);
	permit(5);
	HEAR(heard[5].ended);
	ck_assert_uint_eq(heard[5].content, PIECES * PIECE);
	end();
}
END_TEST

static void request_at_once(const char *path)
{
	gathered = g_byte_array_new();
	permit(0);
	for (unsigned stream = 1; stream < STREAMS_MAX; stream += 2) {
		request(stream, path, false);
		permit(stream);
	}
	say_gathered();
}

/* Requests that come together wait for the responses to those before them. */
START_TEST(test_many_at_once)
{
	begin(_i);
	request_at_once("/s");
	for (unsigned stream = 1; stream < STREAMS_MAX; stream += 2) {
		HEAR(heard[stream].ended);
		ck_assert_uint_eq(heard[stream].content, PIECE);
	}
	end();
}
END_TEST

/* But not for a client that does not read, which may reset them. */
START_TEST(test_many_without_reading)
{
	const unsigned last = STREAMS_MAX - 1;

	begin(_i);
	request_at_once("/l");
	AWAIT(exchanges[last].started);
	say_number(NGHTTP2_RST_STREAM, last, NGHTTP2_CANCEL);
	AWAIT(exchanges[last].finished);
	SEEN(!exchanges[last - 2].finished);
	HEAR(heard[1].ended);
	ck_assert_uint_eq(heard[1].content, LARGE);
	end();
}
END_TEST

static void count_queue(void *count)
{
	*(size_t *)count = nghttp2_session_get_outbound_queue_size(
		first_connection()->carrier->session->http2);
}

/* Its frames wait for it, too, once there is much that it has not read; then they are processed. */
START_TEST(test_pings_without_reading)
{
	const unsigned pings = 1500;
	size_t queued;

	begin(_i);
	request_at_once("/l");
	await_full();
	gathered = g_byte_array_new();
	for (unsigned i = 0; i < pings; i++)
		say_frame(NGHTTP2_PING, 0, 0, "12345678", 8);
	say_gathered();
	do {
		settle(&runner);
		call(&runner, count_queue, &queued);
	} while (queued <= SESSION_QUEUE_MAX);
	for (unsigned i = 0; i < 4; i++)
		settle(&runner);
	call(&runner, count_queue, &queued);
	/* Some frames are processed together. */
	ck_assert_uint_le(queued, SESSION_QUEUE_MAX + 16);
	for (unsigned i = 0; i < pings; i++) {
		ponged = false;
		HEAR(ponged);
	}
	HEAR(heard[1].ended);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	int kind = first_kind();

	tcase_add_loop_test(tcase, test_reset_in_flight, kind, KINDS);
	tcase_add_loop_test(tcase, test_head_without_end_in_flight, kind, KINDS);
	tcase_add_loop_test(tcase, test_head_that_ends_in_flight, kind, KINDS);
	tcase_add_loop_test(tcase, test_content_of_ended_in_flight, kind, KINDS);
	tcase_add_loop_test(tcase, test_moved, kind, KINDS);
	tcase_add_loop_test(tcase, test_cut_off, kind, KINDS);
	tcase_add_loop_test(tcase, test_many_at_once, kind, KINDS);
	tcase_add_loop_test(tcase, test_many_without_reading, kind, KINDS);
	tcase_add_loop_test(tcase, test_pings_without_reading, kind, KINDS);
}

RUN_SUITE("session", fill)
