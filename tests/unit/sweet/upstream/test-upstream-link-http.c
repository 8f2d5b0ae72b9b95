/* SPDX-License-Identifier: MIT */
/*
 * test-upstream-link-http.c - unit tests of upstream-link.c with messages of HTTP: the framing of
 * bodies, and bytes of another protocol.  Tests are run with each kind of loop.
 */
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/slice.h"
#include "upstream/http-message.h"
#include "upstream/upstream-link.h"

#include "loop-fixture.h"
#include "suite.h"
#include "upstream-link-fixture.h"

#define HEAD "POST / HTTP/1.1\r\n"
#define GET "GET / HTTP/1.1\r\n"

/* Reads a text that must come next. */
static void take_text(int peer, const char *text)
{
	size_t length = strlen(text);
	char *got = must_alloc(length);

	read_exactly(peer, got, length);
	ck_assert_mem_eq(got, text, length);
	free(got);
}

static void take_bytes(int peer, uint64_t seed, size_t from, size_t length)
{
	char *content = must_alloc(length);

	read_exactly(peer, content, length);
	ck_assert_uint_eq(pattern_match(content, seed, from, length), length);
	free(content);
}

static void ask_http(struct client *client, uint64_t length, size_t first)
{
	const struct http_message_body body = {
		.any = true, .length = length, .first = body_of(0, first), .more = first < length};

	ck_assert_int_eq(http_message_make(&client->message, SLICE(HEAD), &body), 0);
	call(&runner, request, client);
	ck_assert_int_eq(client->error, 0);
}

/* A body of known length has no marks between its pieces, or at its end. */
START_TEST(test_known_length)
{
	struct client client;

	begin(&client, _i);
	connect_to(&client);
	ask_http(&client, 100000, 70000);
	take_text(client.peer, HEAD "Content-Length: 100000\r\n\r\n");
	take_bytes(client.peer, 0, 0, 70000);
	AWAIT(client.drained == 1);
	client.piece = body_of(1, 30000);
	call(&runner, go_on, &client);
	take_bytes(client.peer, 1, 0, 30000);
	settle(&runner);
	SEEN(client.broke == 1 && client.drained == 1);
	call(&runner, rest_long, &client);
	ck_assert(is_alive(&client));
	end(&client);
}
END_TEST

/* The last piece may be empty. */
START_TEST(test_chunks)
{
	struct client client;

	begin(&client, _i);
	connect_to(&client);
	ask_http(&client, HTTP_MESSAGE_UNKNOWN, 70000);
	take_text(client.peer, HEAD "Transfer-Encoding: chunked\r\n\r\nfff8\r\n");
	take_bytes(client.peer, 0, 0, RECORD);
	take_text(client.peer, "\r\n1178\r\n");
	take_bytes(client.peer, 0, RECORD, 70000 - RECORD);
	AWAIT(client.drained == 1);
	client.piece = (struct NC_range){0};
	call(&runner, go_on, &client);
	take_text(client.peer, "\r\n0\r\n\r\n");
	settle(&runner);
	call(&runner, rest_long, &client);
	end(&client);
}
END_TEST

static void look_whether_it_may_rest(void *argument)
{
	struct client *client = argument;

	client->error = upstream_link_may_rest(client->link);
}

/* The last piece is with the system, as the link sees it, and then its send fails. */
START_TEST(test_broken_at_its_last_piece)
{
	struct client client;
	int little = 1;

	begin(&client, _i);
	connect_to(&client);
	ck_assert_int_eq(
		setsockopt(client.link->fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)), 0);
	ask_http(&client, 60000, 60000);
	settle(&runner);
	call(&runner, look_whether_it_may_rest, &client);
	ck_assert_int_eq(client.error, false);
	close(client.peer);
	client.peer = FD_NONE;
	AWAIT(client.broke != 1);
	call(&runner, look_whether_it_may_rest, &client);
	ck_assert_int_eq(client.error, false);
	end(&client);
}
END_TEST

static char written[LARGE];

static void write_some(void *argument)
{
	struct client *client = argument;

	client->error = upstream_link_write(client->link, written, client->piece.length);
}

static void end_ours(void *argument)
{
	upstream_link_end(((struct client *)argument)->link);
}

/* Bytes of another protocol: drained() is called when the system has taken what it had not at first. */
START_TEST(test_write)
{
	struct client client;
	char byte;

	begin_asked(&client, _i);
	pattern_fill(written, 7, 0, LARGE);
	client.piece.length = 10;
	call(&runner, write_some, &client);
	ck_assert_int_eq(client.error, 1);
	take_bytes(client.peer, 7, 0, 10);
	client.piece.length = LARGE;
	call(&runner, write_some, &client);
	ck_assert_int_eq(client.error, 0);
	/* Behind it, in order. */
	client.piece.length = 1000;
	call(&runner, write_some, &client);
	ck_assert_int_eq(client.error, 0);
	call(&runner, end_ours, &client);
	settle(&runner);
	SEEN(client.drained == 0);
	take_bytes(client.peer, 7, 0, LARGE);
	take_bytes(client.peer, 7, 0, 1000);
	AWAIT(client.drained == 1);
	ck_assert_int_eq(read(client.peer, &byte, 1), 0);
	SEEN(client.broke == 1);
	end(&client);
}
END_TEST

static void ask_and_write(void *argument)
{
	struct client *client = argument;

	request(client);
	if (client->error == 0 && (upstream_link_write(client->link, written, 1000) ||
				   upstream_link_write(client->link, written + 1000, 1000)))
		client->error = 1;
	upstream_link_end(client->link);
}

/* The protocol changes before the loop has reported that the request was sent. */
START_TEST(test_write_at_once)
{
	const struct http_message_body none = {.any = false};
	struct client client;
	char byte;

	begin(&client, _i);
	connect_to(&client);
	pattern_fill(written, 7, 0, LARGE);
	ck_assert_int_eq(http_message_make(&client.message, SLICE(GET), &none), 0);
	call(&runner, ask_and_write, &client);
	ck_assert_int_eq(client.error, 0);
	take_text(client.peer, GET "\r\n");
	take_bytes(client.peer, 7, 0, 2000);
	ck_assert_int_eq(read(client.peer, &byte, 1), 0);
	AWAIT(client.drained == 1);
	SEEN(client.broke == 1);
	end(&client);
}
END_TEST

/* The link closes while bytes wait. */
START_TEST(test_write_and_close)
{
	struct client client;

	begin_asked(&client, _i);
	client.piece.length = LARGE;
	call(&runner, write_some, &client);
	call(&runner, write_some, &client);
	ck_assert_int_eq(client.error, 0);
	end(&client);
}
END_TEST

static void fill(TCase *tcase)
{
	int first = first_kind();

	tcase_add_loop_test(tcase, test_known_length, first, KINDS);
	tcase_add_loop_test(tcase, test_chunks, first, KINDS);
	tcase_add_loop_test(tcase, test_broken_at_its_last_piece, first, KINDS);
	tcase_add_loop_test(tcase, test_write, first, KINDS);
	tcase_add_loop_test(tcase, test_write_at_once, first, KINDS);
	tcase_add_loop_test(tcase, test_write_and_close, first, KINDS);
}

RUN_SUITE("upstream-link-http", fill)
