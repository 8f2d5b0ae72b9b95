/* SPDX-License-Identifier: MIT */
/*
 * session-fixture.h - an HTTP/2 client, which writes and reads frames itself, and the session that
 * serves it.
 */
#ifndef SESSION_FIXTURE_H
#define SESSION_FIXTURE_H

#include <errno.h>
#include <glib.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nabc.h>

#include "base/budget.h"
#include "base/list.h"
#include "config/configuration.h"
#include "conn/conn-thread.h"
#include "conn/connection-base.h"
#include "conn/connection.h"
#include "core/server.h"
#include "core/site.h"
#include "core/thread-counters.h"
#include "event/loop.h"
#include "event/thread-pool.h"
#include "files/spool.h"
#include "h2/h2-thread.h"
#include "h2/session-internal.h"
#include "h2/session.h"
#include "http/body.h"

#include "conn-fixture.h"
#include "loop-fixture.h"
#include "session-responder.h"
#include "suite.h"
#include "thread-fixture.h"

/* --- the client ------------------------------------------------------------------------------ */

static inline void say(const void *bytes, size_t length)
{
	if (gathered) {
		g_byte_array_append(gathered, bytes, (guint)length);
		return;
	}
	while (length) {
		ssize_t sent = send(client, bytes, length, MSG_NOSIGNAL);

		ck_assert_int_gt(sent, 0);
		bytes = (const char *)bytes + sent;
		length -= (size_t)sent;
	}
}

static inline void say_gathered(void)
{
	GByteArray *all = gathered;

	gathered = NULL;
	say(all->data, all->len);
	g_byte_array_unref(all);
}

static inline void say_frame(unsigned type, unsigned flags, unsigned stream, const void *payload,
			     size_t length)
{
	const unsigned char head[SESSION_FRAME_HEAD] = {0,
							(unsigned char)(length >> 8),
							(unsigned char)length,
							(unsigned char)type,
							(unsigned char)flags,
							0,
							0,
							0,
							(unsigned char)stream};

	say(head, sizeof(head));
	say(payload, length);
}

static inline void say_number(unsigned type, unsigned stream, uint32_t number)
{
	number = htonl(number);
	say_frame(type, 0, stream, &number, sizeof(number));
}

/* GET or POST, http, and the other two as literals (RFC 7541, section 6.2.2). */
static inline size_t write_head(char *block, const char *path, bool post)
{
	return (size_t)sprintf(block, "%c\x86%c%c%s%c%c%s", post ? 0x83 : 0x82, 0x04,
			       (char)strlen(path), path, 0x01, 4, "test");
}

static inline void request(unsigned stream, const char *path, bool body)
{
	char block[64];
	size_t length = write_head(block, path, body);

	say_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | (body ? 0 : NGHTTP2_FLAG_END_STREAM),
		  stream, block, length);
}

/* Sends bytes of the pattern from at on. */
static inline void say_content(unsigned stream, size_t at, size_t length, bool end)
{
	static char bytes[10000];

	while (length || end) {
		size_t now = MIN(length, sizeof(bytes));

		length -= now;
		pattern_fill(bytes, 1, at, now);
		say_frame(NGHTTP2_DATA, end && !length ? NGHTTP2_FLAG_END_STREAM : 0, stream, bytes,
			  now);
		at += now;
		end &= length != 0;
	}
}

static inline uint32_t number_at(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline void hear_data(unsigned stream, const unsigned char *payload, size_t length)
{
	ck_assert(!heard[stream].ended && heard[stream].reset == UNCUT);
	if (!heard[stream].refused)
		ck_assert_uint_eq(pattern_match(payload, 1, heard[stream].content, length), length);
	heard[stream].content += length;
}

/* Reads a frame. */
static inline void hear(void)
{
	unsigned char head[SESSION_FRAME_HEAD], payload[FRAME_MOST];
	size_t length;
	unsigned stream;

	read_exactly(client, head, sizeof(head));
	length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
	stream = number_at(head + 5);
	ck_assert_uint_le(length, sizeof(payload));
	ck_assert_uint_lt(stream, STREAMS_MAX);
	read_exactly(client, payload, length);
	switch (head[3]) {
	case NGHTTP2_DATA:
		hear_data(stream, payload, length);
		break;
	case NGHTTP2_HEADERS:
		ck_assert_uint_eq(heard[stream].heads++, 0);
		break;
	case NGHTTP2_RST_STREAM:
		heard[stream].reset = number_at(payload);
		return;
	case NGHTTP2_WINDOW_UPDATE:
		heard[stream].credit += number_at(payload);
		return;
	case NGHTTP2_PING:
		ponged = true;
		return;
	case NGHTTP2_GOAWAY:
		goes_away = true;
		return;
	default:
		ck_assert_uint_eq(head[3], NGHTTP2_SETTINGS);
		return;
	}
	heard[stream].ended |= head[4] & NGHTTP2_FLAG_END_STREAM;
}

#define HEAR(condition)                                                                            \
	do {                                                                                       \
		while (!(condition))                                                               \
			hear();                                                                    \
	} while (0)

/* Hears all that the server has to say; an answer may overtake what is behind it in a message. */
static inline void hear_all(void)
{
	for (unsigned i = 0; i < 2; i++) {
		ponged = false;
		say_frame(NGHTTP2_PING, 0, 0, "12345678", 8);
		HEAR(ponged);
	}
}

static inline void permit(unsigned stream)
{
	say_number(NGHTTP2_WINDOW_UPDATE, stream, 64 << 20);
}

static inline bool hears_end(void)
{
	char bytes[4096];
	ssize_t got;

	do {
		got = read(client, bytes, sizeof(bytes));
	} while (got > 0);
	return got == 0 || errno == ECONNRESET;
}

/* --- both ---------------------------------------------------------------------- */

static inline void start(void *argument)
{
	(void)argument;
	open_conn(&thread);
}

static inline void take_over(void *argument)
{
	connection_open(&thread, *(int *)argument, false, false);
}

static inline void connect_client(void)
{
	static const int little = 32 << 10;
	int pair[2];

	memset(exchanges, 0, sizeof(exchanges));
	memset(heard, 0, sizeof(heard));
	for (unsigned i = 0; i < STREAMS_MAX; i++)
		heard[i].reset = UNCUT;
	goes_away = resumed = false;
	/* Small buffers, so that the socket is full soon. */
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 0, 0);
	ck_assert_int_eq(setsockopt(pair[0], SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
	ck_assert_int_eq(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)), 0);
	set_nonblocking(pair[1]);
	client = pair[0];
	call(&runner, take_over, &pair[1]);
	say(SESSION_PREFACE, strlen(SESSION_PREFACE));
	say_frame(NGHTTP2_SETTINGS, 0, 0, NULL, 0);
	/* Those of the server: from now on its windows are good. */
	say_frame(NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
}

static inline void begin(int number)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 16 << 20);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	runner_start(&runner, kind_of(number));
	config = (struct config){.http2 = HTTP2_CLEAR,
				 .limits = long_limits(100),
				 .sockets = {.header_option = true, .close_option = true}};
	site = (struct site){.config = &config, .number = 1};
	generation = (struct config_ref){.site = &site, .config = &config, .users = 1};
	server = (struct server){.bodies.most = 1 << 20,
				 .windows.most = 1 << 20,
				 .held_most = 64 << 20,
				 .unsent_most = 64 << 20,
				 .threads = 1,
				 .per_thread = {&thread}};
	thread = make_thread(
		(struct thread){.loop = runner.loop, .config_ref = &generation, .server = &server});
	call(&runner, start, NULL);
	connect_client();
}

static inline void close_all(void *argument)
{
	(void)argument;
	connection_close_all(&thread);
}

static inline void check_exchanges(void)
{
	for (unsigned i = 0; i < STREAMS_MAX; i++) {
		SEEN(!exchanges[i].wrong);
		SEEN(exchanges[i].finished == exchanges[i].started);
	}
}

static inline void stop_spools(void *argument)
{
	(void)argument;
	spools_stop(server.spools);
}

/* Asserts that everything was released. */
static inline void end(void)
{
	struct NC_cache_stat stat;

	close(client);
	call(&runner, close_all, NULL);
	/* The loop runs what the helpers have done before the spools are freed. */
	call(&runner, stop_spools, NULL);
	thread_pool_close(server.thread_pool);
	ck_assert(list_is_empty(&thread.h2->sessions));
	ck_assert(list_is_empty(&thread.h2->late_sessions));
	ck_assert_uint_eq(thread.h2->waiting, 0);
	ck_assert_uint_eq(thread.counters->open, 0);
	for (unsigned i = 0; i < CONNECTION_STATES; i++)
		ck_assert_uint_eq(thread.counters->states[i], 0);
	runner_stop(&runner);
	spools_close(server.spools);
	check_exchanges();
	ck_assert_uint_eq(generation.users, 1);
	ck_assert_uint_eq(server.bodies.used + server.held + server.unsent, 0);
	ck_assert_int_eq(NC_cache_stat(NULL, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.units, 0);
	ck_assert_int_eq(NC_cache_close(cache), 0);
	close_conn(&thread);
}

static inline const struct connection *first_connection(void)
{
	const struct carrier *carrier =
		list_first(&thread.conn->connections, const struct carrier, node);

	return carrier ? &carrier->connection : NULL;
}

struct progress {
	bool sending;
	size_t bytes;
};

static inline void look(void *argument)
{
	struct progress *progress = argument;
	const struct connection *connection = first_connection();

	progress->sending = connection && connection->sending;
	progress->bytes = progress->sending ? connection->send.message.skip : 0;
}

/* Waits until a message is in flight and the socket takes no more of it. */
static inline void await_full(void)
{
	struct progress before = {0}, now;

	for (unsigned same = 0; same < 4; before = now) {
		settle(&runner);
		call(&runner, look, &now);
		same = now.sending && before.sending && now.bytes == before.bytes ? same + 1 : 0;
	}
}

static inline void make_unit(void)
{
	g_autofree char *bytes = g_malloc(LARGE);
	NC_handle handle;

	pattern_fill(bytes, 1, 0, LARGE);
	ck_assert_int_eq(NC_alloc(&handle, LARGE, 0), 0);
	ck_assert_int_eq(NC_write(&handle, bytes, LARGE, 0), LARGE);
	ck_assert_int_eq(NC_insert(&handle), 0);
	EVENT(unit = NC_cache_id(&handle));
	ck_assert_int_eq(NC_free(&handle), 0);
}

#endif
