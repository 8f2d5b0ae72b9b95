/* SPDX-License-Identifier: MIT */
/*
 * connection-fixture.h - a connection between a client, which is the test, and a
 * responder for request bodies in several parts, which replaces route.c and records
 * what arrives.  A program that includes this must use all of it.
 */
#ifndef CONNECTION_FIXTURE_H
#define CONNECTION_FIXTURE_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nabc.h>

#include "base/budget.h"
#include "config/configuration.h"
#include "conn/connection-base.h"
#include "conn/connection.h"
#include "event/piece.h"
#include "core/server.h"
#include "core/site.h"
#include "core/transaction.h"
#include "handler/route.h"
#include "http/body.h"

#include "conn-fixture.h"
#include "loop-fixture.h"
#include "route-seam.h"
#include "suite.h"
#include "thread-fixture.h"

#define KIB ((size_t)1024)
#define WINDOW (256 * KIB)
#define BODY_QUEUE_MAX 64

/* What the responder does with a part that is not the last. */
enum manner { ASKS_AT_ONCE, WAITS, ANSWERS };

static struct {
	enum manner manner;
	uint64_t limit;
	size_t window;
	/* What happened to the last request with a body. */
	struct transaction *transaction;
	unsigned pieces, more, finished;
	size_t sizes[BODY_QUEUE_MAX];
	size_t units[BODY_QUEUE_MAX];
	size_t content; /* bytes that equal those sent */
	bool over;	/* the last part has arrived */
	bool wrong;
} responder;

static struct runner runner;
static struct thread thread;
static struct server server;
static NC_cache *cache;
static struct config config;
static struct site site;
static struct config_ref generation;
static int client;
static char buffer[WINDOW]; /* for the loop's thread */

/* --- the responder: everything on the loop's thread -------------------------- */

static enum respond answer(struct transaction *transaction, const char *text)
{
	transaction->response.status = 200;
	transaction->response.head = "Content-Length: 4\r\n";
	transaction->response.head_length = strlen(transaction->response.head);
	transaction->piece = piece_text(text);
	transaction->response.length = 4;
	return RESPOND_NOW;
}

static void note_piece(struct transaction *transaction)
{
	size_t before = responder.content, length = (size_t)transaction->upload.length - before;
	struct NC_stat stat;

	responder.wrong |= length > WINDOW || (transaction->upload.unit != 0) != (length != 0) ||
			   responder.pieces == BODY_QUEUE_MAX;
	/* No earlier part may be in use. */
	if (responder.pieces && responder.units[responder.pieces - 1])
		responder.wrong |= NC_stat(NULL, responder.units[responder.pieces - 1], &stat,
					   sizeof(stat)) == 0 ||
				   errno != ENOENT;
	if (responder.wrong)
		return;
	if (length &&
	    NC_pread(NULL, transaction->upload.unit, buffer, WINDOW, 0) != (ssize_t)length)
		responder.wrong = true;
	if (pattern_match(buffer, 1, before, length) != length)
		responder.wrong = true;
	responder.content += length;
	responder.sizes[responder.pieces] = length;
	responder.units[responder.pieces++] = transaction->upload.unit;
	responder.more += transaction->upload.more;
	responder.over = !transaction->upload.more;
}

static enum respond on_received(struct transaction *transaction)
{
	EVENT(note_piece(transaction));
	if (!transaction->upload.more || responder.manner == ANSWERS)
		return answer(transaction, "done");
	if (responder.manner == ASKS_AT_ONCE)
		transaction->owner->receive_piece(transaction, responder.limit, responder.window);
	return RESPOND_LATER;
}

static void on_finish(struct transaction *transaction)
{
	EVENT(responder.finished++; responder.wrong |= transaction != responder.transaction);
}

static const struct transaction_responder has_body = {.received = on_received, .finish = on_finish};

enum respond route(struct transaction *transaction)
{
	if (!transaction->upload.has)
		return answer(transaction, "none");
	EVENT(responder.transaction = transaction);
	transaction->responder = &has_body;
	transaction->owner->receive_piece(transaction, responder.limit, responder.window);
	return RESPOND_LATER;
}

static void ask(void *argument)
{
	(void)argument;
	responder.transaction->owner->receive_piece(responder.transaction, responder.limit,
						    responder.window);
}

static void be_done(void *argument)
{
	(void)answer(responder.transaction, argument);
	transaction_done(responder.transaction);
}

/* --- the client ------------------------------------------------------------------ */

static void take_over(void *argument)
{
	connection_open(&thread, *(int *)argument, false, false);
}

static void start(void *argument)
{
	(void)argument;
	open_conn(&thread);
}

static void connect_client(void)
{
	int pair[2];

	/* Small buffers, so that backpressure shows soon. */
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 64 << 10, 64 << 10);
	set_nonblocking(pair[1]);
	client = pair[0];
	call(&runner, take_over, &pair[1]);
}

static void begin(int number, enum manner manner)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 8 << 20);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	memset(&responder, 0, sizeof(responder));
	responder.manner = manner;
	responder.window = WINDOW;
	responder.limit = UINT64_MAX;
	runner_start(&runner, kind_of(number));
	config = (struct config){
		.limits = {.header_ms = 60000,
			   .body_ms = 60000,
			   .keep_alive_ms = 60000,
			   .send_ms = 60000,
			   .max_header = 8192,
			   .max_fields = 64},
		.sockets = {.header_option = true, .close_option = true, .linger = true}};
	site = (struct site){.config = &config, .number = 1};
	generation = (struct config_ref){.site = &site, .config = &config, .users = 1};
	server = (struct server){.bodies.most = 1 << 20, .threads = 1, .per_thread = {&thread}};
	thread = make_thread(
		(struct thread){.loop = runner.loop, .config_ref = &generation, .server = &server});
	call(&runner, start, NULL);
	connect_client();
}

static void close_all(void *argument)
{
	(void)argument;
	connection_close_all(&thread);
}

/* Asserts that everything was released. */
static void end(void)
{
	struct NC_cache_stat stat;

	close(client);
	call(&runner, close_all, NULL);
	runner_stop(&runner);
	close_conn(&thread);
	ck_assert_uint_eq(generation.users, 1);
	ck_assert_uint_eq(server.bodies.used, 0);
	ck_assert_int_eq(NC_cache_stat(NULL, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.units, 0);
	ck_assert(!responder.wrong);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}

static void say(const char *bytes, size_t length)
{
	while (length) {
		ssize_t sent = send(client, bytes, length, MSG_NOSIGNAL);

		ck_assert_int_gt(sent, 0);
		bytes += sent;
		length -= (size_t)sent;
	}
}

static void say_text(const char *text)
{
	say(text, strlen(text));
}

/* Reads the head and body of the next response; returns its status. */
static int hear(void)
{
	char head[4096];
	size_t length = 0, body = 0;
	const char *field;

	do {
		ck_assert_uint_lt(length, sizeof(head) - 1);
		read_exactly(client, head + length++, 1);
		head[length] = '\0';
	} while (length < 4 || strcmp(head + length - 4, "\r\n\r\n") != 0);
	field = strstr(head, "Content-Length: ");
	if (field)
		body = strtoul(field + 16, NULL, 10);
	ck_assert_uint_lt(body, sizeof(head));
	read_exactly(client, head + length, body);
	ck_assert_int_eq(strncmp(head, "HTTP/1.1 ", 9), 0);
	return atoi(head + 9);
}

static bool hears_end(void)
{
	char byte;
	ssize_t got = read(client, &byte, 1);

	return got == 0 || (got < 0 && errno == ECONNRESET);
}

struct upload {
	size_t length, chunk; /* chunk 0: of known length */
	const char *behind;
	pthread_t thread;
};

static void *upload(void *argument)
{
	const struct upload *upload = argument;
	static char content[20 * WINDOW]; /* only one client uploads at a time */
	char line[128];

	ck_assert_uint_le(upload->length, sizeof(content));
	pattern_fill(content, 1, 0, upload->length);
	if (upload->chunk)
		sprintf(line, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
	else
		sprintf(line, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n",
			upload->length);
	say_text(line);
	for (size_t at = 0, now; at < upload->length; at += now) {
		now = upload->length - at;
		if (upload->chunk && now > upload->chunk)
			now = upload->chunk;
		sprintf(line, "%zx\r\n", now);
		if (upload->chunk)
			say_text(line);
		say(content + at, now);
		if (upload->chunk)
			say_text("\r\n");
	}
	if (upload->chunk)
		say_text("0\r\n\r\n");
	say_text(upload->behind);
	return NULL;
}

static void start_upload(struct upload *one)
{
	if (!one->behind)
		one->behind = "";
	ck_assert_int_eq(pthread_create(&one->thread, NULL, upload, one), 0);
}

#endif
