/* SPDX-License-Identifier: MIT */
/*
 * fuzz-session.c - HTTP/2 frames on the session (sweet/conn/session*.c), in clear text: whatever a
 * client sends, the server's frames are well-formed and permitted, contents arrive whole or not at
 * all, and everything is released at the end.
 *
 * Server and client run in turns on one loop, so that an input always does the same.  Each path
 * selects a manner of the responder, by its second character.
 *
 * Input: the length of the pieces in which frames come, and a byte of options; then frames, behind
 * the preface and empty settings.
 */
#include <errno.h>
#include <glib.h>
#include <nabc.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/list.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "conn/conn-thread.h"
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
#include "http/body.h"
#include "http/request.h"
#include "log/log.h"
#include "pressure/pressure-thread.h"

#include "conn-fixture.h"
#include "frames.h"
#include "fuzz.h"
#include "../unit/route-seam.h"
#include "../unit/thread-fixture.h"

enum options {
	NO_SETTINGS = 1,
	READS_LATE = 2, /* when it has sent all, unless the server takes no more */
	NO_MEMORY = 4,	/* the cache has none for responses that wait */
	FULL = 8,	/* the socket has little room */
	HALF = 16,	/* closes its end for sending first */
	DRAIN = 32,	/* the server ends in the middle */
	RELOAD = 64,	/* the configuration changes in the middle */
	NO_BODIES = 128 /* the server has little memory for bodies */
};

enum manner { TEXT, UNIT, LATER, PIECES, CUT, WHOLE, WINDOWS, EARLY, MANNERS };

#define TEXT_LENGTH 100u
#define UNIT_LENGTH 100000u
#define PIECE 5000u
#define PIECE_COUNT 4u
#define BODY_LIMIT 100000u
#define BODY_WINDOW 1000u
#define QUIET 4u /* turns in which nothing happens, before the next step */

/* The responder's, in the memory of the transaction. */
struct reply {
	struct transaction *transaction;
	struct reply *next, **link; /* in the list of those that wait */
	enum manner manner;
	unsigned pieces; /* of the response */
	bool waits, receives;
};

static uint8_t content[UNIT_LENGTH];
static size_t unit;
static struct reply *waiting; /* the one that has waited least first */
static unsigned live;	      /* transactions */

static struct server server;
static struct thread thread;
static struct config config;
static struct site sites[2];
static struct config_ref generations[2];

static struct {
	struct loop_hook hook; /* must be first */
	enum { FEEDS, SETTLES, ENDS, CLOSED } step;
	unsigned options, quiet, turns;
	size_t piece, sent, length;
	const uint8_t *input;
	int fd;
} client;

/* --- the responder ---------------------------------------------------------------------- */

static struct reply *reply_of(struct transaction *transaction)
{
	return (struct reply *)(void *)transaction->scratch;
}

static struct opened *opened_of(const struct transaction *transaction)
{
	const struct stream *stream = transaction->connection;

	return stream ? frames_find((uint32_t)stream->id) : NULL;
}

static enum respond wait_with(struct reply *reply)
{
	MUST(!reply->waits);
	reply->waits = true;
	reply->next = waiting;
	reply->link = &waiting;
	if (reply->next)
		reply->next->link = &reply->next;
	waiting = reply;
	return RESPOND_LATER;
}

static void stop_waiting(struct reply *reply)
{
	if (reply->waits) {
		*reply->link = reply->next;
		if (reply->next)
			reply->next->link = reply->link;
	}
	reply->waits = false;
}

static void finish(struct transaction *transaction)
{
	struct reply *reply = reply_of(transaction);

	MUST(live-- > 0);
	stop_waiting(reply);
}

static void set_piece(struct transaction *transaction)
{
	struct reply *reply = reply_of(transaction);
	unsigned piece = reply->pieces++;

	if (reply->manner == CUT && piece == PIECE_COUNT / 2) {
		transaction->response.status = 0;
	} else if (piece < PIECE_COUNT) {
		transaction->piece = piece_bytes(content + piece * PIECE, PIECE);
	} else {
		transaction->piece = piece_bytes(NULL, 0);
	}
}

static enum respond next_piece(struct transaction *transaction)
{
	if (reply_of(transaction)->pieces % 2)
		return wait_with(reply_of(transaction));
	set_piece(transaction);
	return RESPOND_NOW;
}

static void expect(const struct transaction *transaction, uint64_t length)
{
	struct opened *opened = opened_of(transaction);

	if (!transaction->connection)
		return;
	MUST(opened && !opened->known);
	opened->known = true;
	opened->expected = transaction->head_only ? 0 : length;
}

static const struct transaction_responder in_pieces = {.next = next_piece, .finish = finish};

static enum respond answer(struct transaction *transaction)
{
	struct reply *reply = reply_of(transaction);
	char *head = transaction->head_buffer;
	uint64_t length = TEXT_LENGTH;

	transaction->response.status = 200;
	transaction->response.head = head;
	if (reply->manner == UNIT || reply->manner == WHOLE) {
		length = UNIT_LENGTH;
		MUST(piece_hold_range(&transaction->piece,
				      (struct NC_range){.id = unit, .length = UNIT_LENGTH}) == 0);
	} else if (reply->manner == PIECES || reply->manner == CUT || reply->manner == EARLY) {
		length = PIECE * PIECE_COUNT;
		transaction->responder = &in_pieces;
		set_piece(transaction);
	} else {
		transaction->piece = piece_text(content);
	}
	transaction->response.length = length;
	if (reply->manner == PIECES || reply->manner == CUT)
		transaction->response.length = TRANSACTION_UNKNOWN;
	else
		transaction->response.head_length =
			(size_t)sprintf(head, "Content-Length: %u\r\n", (unsigned)length);
	expect(transaction,
	       reply->manner == CUT && !transaction->head_only ? EXPECTED_NONE : length);
	return RESPOND_NOW;
}

static void ask(struct transaction *transaction)
{
	struct reply *reply = reply_of(transaction);

	reply->receives = true;
	if (reply->manner == WHOLE)
		transaction->owner->receive(transaction, BODY_LIMIT);
	else
		transaction->owner->receive_piece(transaction, BODY_LIMIT, BODY_WINDOW);
}

static enum respond received(struct transaction *transaction)
{
	struct reply *reply = reply_of(transaction);

	MUST(reply->receives && transaction->upload.length <= BODY_LIMIT);
	MUST(transaction->upload.more || reply->manner == WHOLE || reply->manner == WINDOWS ||
	     reply->manner == EARLY);
	reply->receives = false;
	if (!transaction->upload.more || reply->manner == EARLY)
		return answer(transaction);
	if (transaction->upload.length / BODY_WINDOW % 2) {
		reply->receives = true;
		return wait_with(reply);
	}
	ask(transaction);
	return RESPOND_LATER;
}

static const struct transaction_responder responder = {.received = received, .finish = finish};

enum respond route(struct transaction *transaction)
{
	struct slice path = transaction->request->path;
	struct reply *reply = reply_of(transaction);

	MUST(path.length && opened_of(transaction));
	live++;
	*reply = (struct reply){.transaction = transaction};
	reply->manner = path.length > 1 ? (unsigned char)path.at[1] % MANNERS : TEXT;
	transaction->responder = &responder;
	if (reply->manner >= WHOLE && transaction->upload.has) {
		ask(transaction);
		return RESPOND_LATER;
	}
	return reply->manner == LATER ? wait_with(reply) : answer(transaction);
}

/* Lets the reply that waits continue; returns false if there is none. */
static bool continue_reply(void)
{
	struct reply *reply = waiting;
	struct transaction *transaction;

	if (!reply)
		return false;
	transaction = reply->transaction;
	stop_waiting(reply);
	if (reply->receives) {
		ask(transaction);
		return true;
	}
	if (transaction->response.status)
		set_piece(transaction);
	else
		answer(transaction);
	transaction_done(transaction);
	return true;
}

/* --- the client ------------------------------------------------------------------------- */

/* Returns whether something has come. */
static bool take(void)
{
	uint8_t bytes[1 << 15];
	ssize_t got = recv(client.fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (got > 0)
		frames_came(bytes, (size_t)got);
	return got > 0;
}

/* Both sides of what has begun. */
static bool go_on(void)
{
	bool moves = take();

	return continue_reply() || moves;
}

/* Sends a piece; returns false if the server takes no more. */
static bool feed(void)
{
	size_t left = client.length - client.sent;
	ssize_t sent = send(client.fd, client.input + client.sent, MIN(left, client.piece),
			    MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent < 0 && errno == EAGAIN)
		return false;
	if (sent < 0) {
		client.length = client.sent;
		return true;
	}
	frames_sent(client.input + client.sent, (size_t)sent);
	client.sent += (size_t)sent;
	return true;
}

static void interfere(void)
{
	if (client.options & RELOAD && thread.config_ref == &generations[0]) {
		thread.config_ref = &generations[1];
		generations[0].users--;
		generations[1].users++;
	}
	if (client.options & DRAIN && !thread.draining)
		connection_drain(&thread);
}

static bool feeds(void)
{
	bool moves = client.options & READS_LATE ? false : take();

	if (client.sent == client.length) {
		client.step = SETTLES;
		return true;
	}
	if (client.sent >= client.length / 2)
		interfere();
	if (++client.turns % 4 == 0)
		(void)continue_reply();
	if (feed())
		return true;
	/* Else both wait for each other. */
	return go_on() || moves;
}

static void close_client(void)
{
	close(client.fd);
	client.fd = -1;
	client.step = CLOSED;
}

static void next_step(void)
{
	switch (client.step) {
	case FEEDS:
		client.length = client.sent;
		return;
	case SETTLES:
		if (!(client.options & HALF)) {
			close_client();
			return;
		}
		(void)shutdown(client.fd, SHUT_WR);
		client.step = ENDS;
		return;
	case ENDS:
		close_client();
		return;
	case CLOSED:
		/* A response may wait for windows, which no longer come. */
		connection_close_all(&thread);
		while (continue_reply())
			;
		loop_stop(thread.loop);
	}
}

/* The before_sleep() of the loop's hook: one turn of the client; the loop never sleeps. */
static bool play(struct loop_hook *hook)
{
	bool moves;

	(void)hook;
	if (client.step == FEEDS)
		moves = feeds();
	else if (client.step == CLOSED)
		moves = continue_reply();
	else
		moves = go_on();
	client.quiet = moves ? 0 : client.quiet + 1;
	if (client.quiet == QUIET) {
		client.quiet = 0;
		next_step();
	}
	return true;
}

/* --- both ---------------------------------------------------------------------------------- */

static void open_once(void)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 16 << 20);
	NC_handle handle;

	if (unit)
		return;
	log_set_level(LOG_LEVEL_ERROR);
	frames_open();
	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = frames_pattern[i & 255];
	MUST(NC_cache_open(&options));
	MUST(NC_alloc(&handle, UNIT_LENGTH, 0) == 0);
	MUST(NC_write(&handle, content, UNIT_LENGTH, 0) == UNIT_LENGTH);
	MUST(NC_insert(&handle) == 0);
	unit = NC_cache_id(&handle);
	MUST(NC_free(&handle) == 0);
}

static void open_server(struct loop *loop)
{
	bool none = client.options & NO_MEMORY;

	config = (struct config){
		.http2 = HTTP2_CLEAR,
		.limits = long_limits(10),
		.sockets = {.header_option = true, .close_option = true, .linger = true}};
	/* One of them is the target's, so that nothing is freed. */
	for (unsigned i = 0; i < 2; i++) {
		sites[i] = (struct site){.config = &config, .number = i + 1};
		generations[i] =
			(struct config_ref){.site = &sites[i], .config = &config, .users = 2 - i};
	}
	server = (struct server){.bodies.most = client.options & NO_BODIES ? 10000 : 1 << 20,
				 .held_most = none ? 0 : UINT64_MAX / 4,
				 .unsent_most = UINT64_MAX / 4,
				 .threads = 1,
				 .per_thread = {&thread}};
	thread = make_thread(
		(struct thread){.loop = loop, .config_ref = &generations[0], .server = &server});
	loop_hook_add(loop, &client.hook);
	open_conn(&thread);
}

static void connect_client(void)
{
	static const int little = 4096;
	int pair[2];

	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	if (client.options & FULL)
		MUST(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)) == 0);
	client.fd = pair[0];
	connection_open(&thread, pair[1], false, false);
}

/* Everything was released. */
static void check_released(void)
{
	struct NC_cache_stat all;
	struct NC_stat one;

	MUST(live == 0 && !waiting && list_is_empty(&thread.conn->connections));
	MUST(list_is_empty(&thread.h2->sessions) && list_is_empty(&thread.pressure->lent) &&
	     list_is_empty(&thread.pressure->slow));
	MUST(thread.counters->open == 0 && server.held == 0 && server.unsent == 0);
	for (unsigned i = 0; i < CONNECTION_STATES; i++)
		MUST(thread.counters->states[i] == 0);
	MUST(server.bodies.used == 0);
	MUST(generations[0].users + generations[1].users == 3);
	MUST(NC_cache_stat(NULL, &all, sizeof(all)) == 0 && all.units == 1);
	MUST(NC_stat(NULL, unit, &one, sizeof(one)) == 0 && one.holds == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t settings[FRAME_HEAD] = {[3] = NGHTTP2_SETTINGS};
	struct input input = {data, size};
	size_t preface = strlen(SESSION_PREFACE);
	char why[128], *all;

	open_once();
	frames_open();
	memset(&client, 0, sizeof(client));
	client.hook.before_sleep = play;
	client.piece = (size_t)input_number(&input, 1) * 16 + 1;
	client.options = (unsigned)input_number(&input, 1);
	all = malloc(preface + sizeof(settings) + input.left);
	MUST(all);
	memcpy(all, SESSION_PREFACE, preface);
	client.length = preface;
	if (!(client.options & NO_SETTINGS)) {
		memcpy(all + client.length, settings, sizeof(settings));
		client.length += sizeof(settings);
	}
	if (input.left)
		memcpy(all + client.length, input.at, input.left);
	client.length += input.left;
	client.input = (const uint8_t *)all;
	open_server(loop_open(LOOP_EPOLL, LOOP_FEW, why, sizeof(why)));
	MUST(thread.loop);
	connect_client();
	/* The frames are behind the preface. */
	MUST(send(client.fd, all, preface, MSG_NOSIGNAL) == (ssize_t)preface);
	client.sent = preface;
	loop_run(thread.loop);
	check_released();
	close_conn(&thread);
	loop_close(thread.loop);
	frames_close();
	free(all);
	return 0;
}
