/* SPDX-License-Identifier: MIT */
/*
 * test-connection-body.c - unit tests of connection-body.c: bodies in pieces to
 * the responder of connection-fixture.h.  Every test is run with each kind of
 * loop; the test itself is the client.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/list.h"
#include "config/configuration.h"
#include "conn/conn-thread.h"
#include "conn/connection-base.h"
#include "core/server.h"
#include "http/body.h"

#include "connection-fixture.h"
#include "loop-fixture.h"
#include "suite.h"

static const struct upload uploads[] = {
	{.length = 1},
	{.length = WINDOW - 1},
	{.length = WINDOW},
	{.length = WINDOW + 1},
	{.length = 4 * WINDOW},
	{.length = 5 * WINDOW - 1},
	{.length = 1, .chunk = 1},
	{.length = WINDOW - 1, .chunk = 3000},
	{.length = WINDOW + 1, .chunk = WINDOW + 1},
	{.length = 5 * WINDOW - 1, .chunk = 70000},
	{.length = 3 * WINDOW + 7, .chunk = WINDOW},
};

#define UPLOADS (int)(sizeof(uploads) / sizeof(uploads[0]))

static char bytes[WINDOW]; /* to send */

/* Resets the state of the previous request; sets how to handle the next one. */
static void forget(enum manner manner)
{
	EVENT(responder.manner = manner; responder.content = 0;
	      responder.pieces = responder.more = responder.finished = 0; responder.over = false);
}

static void check_pieces(size_t length)
{
	SEEN(responder.content == length);
	SEEN(responder.pieces == (length + WINDOW - 1) / WINDOW);
	SEEN(responder.more == responder.pieces - 1);
	for (unsigned i = 0; i + 1 < responder.pieces; i++)
		ck_assert_uint_eq(responder.sizes[i], WINDOW);
}

/* Each followed by another request, all on one connection. */
START_TEST(test_pieces)
{
	begin(_i, ASKS_AT_ONCE);
	for (int i = 0; i < 2 * UPLOADS; i++) {
		struct upload one = uploads[i / 2];

		forget(i % 2 ? ASKS_AT_ONCE : WAITS);
		one.behind = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
		start_upload(&one);
		for (unsigned piece = 1; i % 2 == 0 && piece * WINDOW < one.length; piece++) {
			AWAIT(responder.pieces == piece);
			call(&runner, ask, NULL);
		}
		ck_assert_int_eq(hear(), 200);
		ck_assert_int_eq(hear(), 200);
		pthread_join(one.thread, NULL);
		SEEN(responder.over && responder.finished == 1);
		check_pieces(one.length);
	}
	end();
}
END_TEST

/* A body that exactly fills its windows may end after the last of them. */
START_TEST(test_empty_last_piece)
{
	struct upload one = {.length = 2 * WINDOW, .chunk = WINDOW};

	begin(_i, ASKS_AT_ONCE);
	start_upload(&one);
	ck_assert_int_eq(hear(), 200);
	pthread_join(one.thread, NULL);
	SEEN(responder.over);
	SEEN(responder.pieces == 3);
	SEEN(responder.sizes[2] == 0);
	SEEN(responder.content == one.length);
	end();
}
END_TEST

/* While the responder has a piece, the server reads hardly more than that. */
START_TEST(test_client_waits)
{
	static const char head[] = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5242880\r\n\r\n";
	static char data[5242880];
	const struct connection *connection;
	struct pollfd wait = {.events = POLLOUT};
	size_t sent = 0;

	begin(_i, WAITS);
	say_text(head);
	pattern_fill(data, 1, 0, sizeof(data));
	set_nonblocking(client);
	wait.fd = client;
	/* Until the socket accepts no more although the server had its turns. */
	for (unsigned i = 0; i < 3;) {
		ssize_t now = send(client, data + sent, 64 * KIB, MSG_NOSIGNAL);

		if (now > 0) {
			sent += (size_t)now;
			i = 0;
			ck_assert_uint_lt(sent, sizeof(data) - 64 * KIB);
		} else if (poll(&wait, 1, 100) == 0) {
			i++;
		}
		settle(&runner);
	}
	SEEN(responder.pieces == 1);
	ck_assert_uint_le(server.bodies.used, WINDOW);
	connection = &list_first(&thread.conn->connections, struct carrier, node)->connection;
	ck_assert_uint_le(connection->input_length, 2 * WINDOW);
	ck_assert(connection->paused);
	EVENT(responder.manner = ASKS_AT_ONCE);
	call(&runner, ask, NULL);
	ck_assert_int_eq(fcntl(client, F_SETFL, 0), 0);
	say(data + sent, sizeof(data) - sent);
	ck_assert_int_eq(hear(), 200);
	SEEN(responder.content == sizeof(data));
	end();
}
END_TEST

/* A responder that needs no more; the rest is small, or large. */
START_TEST(test_early_answer)
{
	struct upload one = {.length = WINDOW + 1000,
			     .behind = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"};

	begin(_i, ANSWERS);
	start_upload(&one);
	ck_assert_int_eq(hear(), 200);
	ck_assert_int_eq(hear(), 200);
	pthread_join(one.thread, NULL);
	SEEN(responder.pieces == 1);
	/* Of unknown length: up to a limit. */
	one = (struct upload){.length = 3 * WINDOW, .chunk = 1000};
	forget(ANSWERS);
	start_upload(&one);
	ck_assert_int_eq(hear(), 200);
	pthread_join(one.thread, NULL);
	SEEN(responder.pieces == 1);
	say_text("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	ck_assert_int_eq(hear(), 200);
	/* More than the server drops. */
	say_text("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
	forget(ANSWERS);
	pattern_fill(bytes, 1, 0, WINDOW);
	say(bytes, WINDOW);
	ck_assert_int_eq(hear(), 200);
	ck_assert(hears_end());
	end();
}
END_TEST

/* It responds while the next piece is in flight, as with a worker that dies. */
START_TEST(test_answer_meanwhile)
{
	begin(_i, WAITS);
	say_text("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n");
	pattern_fill(bytes, 1, 0, WINDOW);
	say(bytes, WINDOW);
	AWAIT(responder.pieces == 1);
	call(&runner, ask, NULL);
	say("x", 1);
	settle(&runner);
	call(&runner, be_done, "soon");
	ck_assert_int_eq(hear(), 200);
	AWAIT(responder.finished == 1);
	SEEN(responder.pieces == 1);
	/* The rest is dropped. */
	say(bytes, 300000 - WINDOW - 1);
	say_text("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	ck_assert_int_eq(hear(), 200);
	end();
}
END_TEST

/* The client disconnects while a piece is in flight, and while the responder has one. */
START_TEST(test_client_goes)
{
	static const struct linger reset = {.l_onoff = 1};

	begin(_i, WAITS);
	for (unsigned i = 0; i < 4; i++) {
		forget(responder.manner);
		say_text("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n");
		pattern_fill(bytes, 1, 0, WINDOW);
		say(bytes, WINDOW);
		AWAIT(responder.pieces == 1);
		if (i < 2)
			call(&runner, ask, NULL);
		say("x", 1);
		if (i % 2)
			ck_assert_int_eq(
				setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)),
				0);
		close(client);
		if (i >= 2) {
			settle(&runner);
			SEEN(responder.finished == 0);
			call(&runner, ask, NULL);
		}
		AWAIT(responder.finished == 1);
		SEEN(responder.pieces == 1);
		connect_client();
	}
	end();
}
END_TEST

static void be_impatient(void *argument)
{
	(void)argument;
	config.limits.body_ms = 20;
}

static void allow(void *most)
{
	server.bodies.most = *(uint64_t *)most;
}

static void take_whole(void *whole)
{
	responder.window = *(bool *)whole ? BODY_WHOLE : WINDOW;
}

/* Resets the state of the previous request. */
static void forget_request(void *argument)
{
	(void)argument;
	responder.content = responder.pieces = responder.more = responder.finished = 0;
	responder.over = false;
}

/* Clients that send a wrong length or framing, or are too slow. */
START_TEST(test_refused)
{
	static const struct {
		const char *head, *behind;
		int status;
	} cases[] = {
		{"Content-Length: 300001\r\n\r\n", "", 413},
		{"Transfer-Encoding: chunked\r\n\r\n40000\r\n", "\r\n100000\r\n", 413},
		{"Transfer-Encoding: chunked\r\n\r\n40000\r\n", "5\r\n", 400},
		{"Transfer-Encoding: chunked\r\n\r\n40000\r\n", "\r\n5;", 431},
		{"Content-Length: 300000\r\n\r\n", "x", 408},
	};

	begin(_i, ASKS_AT_ONCE);
	EVENT(responder.limit = 300000);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		forget(responder.manner);
		if (cases[i].status == 408)
			call(&runner, be_impatient, NULL);
		say_text("POST / HTTP/1.1\r\nHost: a\r\n");
		say_text(cases[i].head);
		if (i > 0) {
			pattern_fill(bytes, 1, 0, WINDOW);
			say(bytes, WINDOW);
			say_text(cases[i].behind);
		}
		if (cases[i].status == 413 && i > 0)
			say(bytes, 300001 - WINDOW);
		for (unsigned j = 0; cases[i].status == 431 && j < 5000; j++)
			say("y", 1);
		ck_assert_int_eq(hear(), cases[i].status);
		ck_assert(hears_end());
		/* A client that is too slow may be so before its first piece has come. */
		SEEN(responder.finished == 1 &&
		     (responder.pieces == (i > 0) || cases[i].status == 408));
		close(client);
		connect_client();
	}
	end();
}
END_TEST

/* A client that waits for 100 Continue gets it once. */
START_TEST(test_continue)
{
	begin(_i, ASKS_AT_ONCE);
	say_text("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
		 "Content-Length: 600000\r\n\r\n");
	ck_assert_int_eq(hear(), 100);
	for (size_t at = 0; at < 600000; at += 100000) {
		char data[100000];

		pattern_fill(data, 1, at, sizeof(data));
		say(data, sizeof(data));
	}
	ck_assert_int_eq(hear(), 200);
	check_pieces(600000);
	end();
}
END_TEST

/* Neither memory nor space in the cache: that client gets an error, at once or in the middle. */
START_TEST(test_no_room)
{
	begin(_i, WAITS);
	call(&runner, allow, &(uint64_t){100000});
	call(&runner, take_whole, &(bool){true});
	pattern_fill(bytes, 1, 0, WINDOW);
	say_text("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n");
	say(bytes, WINDOW);
	ck_assert_int_eq(hear(), 503);
	ck_assert(hears_end());
	close(client);
	SEEN(responder.finished == 1 && responder.pieces == 0);
	/* A body in pieces arrives in smaller ones. */
	call(&runner, take_whole, &(bool){false});
	connect_client();
	say_text("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 120000\r\n\r\n");
	say(bytes, 120000);
	AWAIT(responder.pieces == 1);
	SEEN(responder.sizes[0] <= 100000);
	call(&runner, ask, NULL);
	AWAIT(responder.pieces == 2 && responder.over);
	ck_assert_int_eq(hear(), 200);
	close(client);
	call(&runner, forget_request, NULL);
	/* A body that has begun needs no more memory than it has. */
	connect_client();
	call(&runner, allow, &(uint64_t){WINDOW});
	say_text("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 600000\r\n\r\n");
	say(bytes, WINDOW);
	AWAIT(responder.pieces == 1);
	call(&runner, allow, &(uint64_t){0});
	call(&runner, ask, NULL);
	pattern_fill(bytes, 1, WINDOW, WINDOW);
	say(bytes, WINDOW);
	AWAIT(responder.pieces == 2);
	call(&runner, be_done, "well");
	ck_assert_int_eq(hear(), 200);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	int kind = first_kind();

	tcase_add_loop_test(tcase, test_pieces, kind, KINDS);
	tcase_add_loop_test(tcase, test_empty_last_piece, kind, KINDS);
	tcase_add_loop_test(tcase, test_client_waits, kind, KINDS);
	tcase_add_loop_test(tcase, test_early_answer, kind, KINDS);
	tcase_add_loop_test(tcase, test_answer_meanwhile, kind, KINDS);
	tcase_add_loop_test(tcase, test_client_goes, kind, KINDS);
	tcase_add_loop_test(tcase, test_refused, kind, KINDS);
	tcase_add_loop_test(tcase, test_continue, kind, KINDS);
	tcase_add_loop_test(tcase, test_no_room, kind, KINDS);
}

RUN_SUITE("connection-body", fill)
