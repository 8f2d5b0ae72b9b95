/* SPDX-License-Identifier: MIT */
/*
 * session.c - see session.h.  The frames are parsed and written by libnghttp2.
 *
 * Before its loop sleeps, each thread lets sessions with something to do send it (session_work()):
 * so responses that are ready at the same time leave together.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "conn/session-internal.h"

#define FRAME_DATA (TLS_RECORD_MAX - SESSION_FRAME_HEAD) /* a frame fills a record */
#define HEAD_MAX (16u << 20) /* of a response; the limits of handlers are lower */
#define LAST_MS 1000u /* for streams that the client opens before it knows that it should not */

static nghttp2_session_callbacks *callbacks;
static nghttp2_option *options;

static struct session *session_of(const struct connection *connection)
{
	return connection->session;
}

/* --- what is received ------------------------------------------------------------- */

/* Passes bytes to the stream; returns it, or NULL if it has been closed. */
static struct stream *pass(struct session *session, struct stream *stream, const char *data,
			   size_t length)
{
	session->current = stream;
	connection_consume(&stream->connection, data, length);
	stream = session->current;
	session->current = NULL;
	return stream;
}

static void start_request(struct session *session, struct stream *stream, bool body)
{
	struct slice head = stream_head_end(&stream->head, body);

	session->opening = NULL;
	session->current = stream;
	connection_request(&stream->connection, head.at, head.length, stream->head.error,
			   stream->head.wrong);
	if (session->current)
		stream_head_free(&stream->head);
	session->current = NULL;
}

/* No more of the request follows. */
static void end_request(struct session *session, struct stream *stream)
{
	struct connection *connection = &stream->connection;

	body_close(&connection->body, connection->input_length);
	if (connection->state == RECEIVING)
		(void)pass(session, stream, "", 0);
}

static int on_begin_headers(nghttp2_session *http2, const nghttp2_frame *frame, void *context)
{
	struct session *session = context;
	struct stream *stream;

	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	stream = stream_open(session, frame->hd.stream_id);
	if (!stream)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	session->opening = stream;
	return nghttp2_session_set_stream_user_data(http2, frame->hd.stream_id, stream);
}

static int on_header(nghttp2_session *http2, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags,
		     void *context)
{
	struct session *session = context;

	(void)http2;
	(void)flags;
	/* Trailers are ignored, as in HTTP/1.1. */
	if (frame->headers.cat == NGHTTP2_HCAT_REQUEST && session->opening)
		stream_head_add(&session->opening->head,
				(struct slice){(const char *)name, name_length},
				(struct slice){(const char *)value, value_length});
	return 0;
}

static int on_frame(nghttp2_session *http2, const nghttp2_frame *frame, void *context)
{
	struct session *session = context;
	bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	struct stream *stream;

	(void)http2;
	if (frame->hd.type == NGHTTP2_RST_STREAM)
		session_closed_by_client(session, frame->hd.stream_id);
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	stream = stream_find(session, frame->hd.stream_id);
	if (!stream)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		start_request(session, stream, !end);
	else if (end)
		end_request(session, stream);
	return 0;
}

static int on_data(nghttp2_session *http2, uint8_t flags, int32_t id, const uint8_t *data,
		   size_t length, void *context)
{
	struct session *session = context;
	struct stream *stream = stream_find(session, id);

	(void)http2;
	(void)flags;
	if (!stream) {
		session_closed_drop(session, id, length);
		return 0;
	}
	stream->unread += length;
	stream = pass(session, stream, (const char *)data, length);
	if (stream && !stream->connection.paused)
		stream_give_back(stream);
	return 0;
}

static int on_stream_close(nghttp2_session *http2, int32_t id, uint32_t error, void *context)
{
	struct session *session = context;
	struct stream *stream = stream_find(session, id);

	(void)http2;
	(void)error;
	session_closed_note(session, id);
	if (!stream)
		return 0;
	stream->closed = true;
	/* What is in the message completes the response. */
	if (!stream->ended)
		connection_close(&stream->connection);
	return 0;
}

/* --- what is sent ------------------------------------------------------------------- */

static ssize_t frame_length(nghttp2_session *http2, uint8_t type, int32_t id,
			    int32_t session_window, int32_t stream_window, uint32_t frame_max,
			    void *context)
{
	ssize_t most = MIN(session_window, stream_window);

	(void)http2;
	(void)type;
	(void)id;
	(void)context;
	return MIN(most, (ssize_t)MIN(frame_max, FRAME_DATA));
}

static int on_frame_sent(nghttp2_session *http2, const nghttp2_frame *frame, void *context)
{
	struct session *session = context;
	struct stream *stream;

	(void)http2;
	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	stream = stream_find(session, frame->hd.stream_id);
	if (stream && stream->answered) {
		stream->ended |= (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
		if (!session_message_include(&session->message, stream))
			return NGHTTP2_ERR_CALLBACK_FAILURE;
		session_flood_sent(session);
	}
	return 0;
}

/* Fills the message; returns false if the session is broken. */
static bool collect(struct session *session)
{
	while (!session_message_is_full(&session->message)) {
		const uint8_t *data;
		ssize_t length = nghttp2_session_mem_send(session->http2, &data);

		if (length <= 0)
			return length == 0;
		if (!session_message_copy(&session->message, data, (size_t)length))
			return false;
	}
	return true;
}

/* Responses that cannot continue wait with their units. */
static void streams_wait(struct session *session)
{
	struct stream *next;

	for (struct stream *stream = session->streams; stream; stream = next) {
		next = stream->next;
		if (stream->connection.sending && !stream->ended)
			connection_waits(&stream->connection.send);
	}
}

/* The waits() of struct loop_send. */
static void waits(struct loop_send *op)
{
	struct connection *connection =
		(struct connection *)((char *)op - offsetof(struct connection, send));

	connection_unsent_waits(connection);
	streams_wait(session_of(connection));
}

static void sent(struct loop_send *op, int result)
{
	struct connection *connection =
		(struct connection *)((char *)op - offsetof(struct connection, send));
	struct session *session = session_of(connection);

	connection->sending = false;
	connection_unsent_stops(connection);
	if (result < 0) {
		if (result != -EPIPE && result != -ECONNRESET)
			log_info("%s: sending: %s", connection->addresses.remote,
				 strerror(-result));
		connection_close(connection);
		return;
	}
	session_message_done(&session->message, stream_sent);
	session_wake(session);
}

static void send_message(struct session *session)
{
	struct connection *connection = session->connection;
	struct loop_send *op = &connection->send;

	op->message = (struct NC_send)NC_SEND_INIT(.cookie = &connection->cookie);
	op->pieces = session->message.pieces;
	op->piece_count = session->message.count;
	op->batch = true;
	op->cipher = connection_cipher(connection);
	op->sent = sent;
	op->waits = waits;
	connection_count_as(connection, CONNECTION_SENDING);
	connection->measured = false;
	connection->sending = true;
	session->timed = false;
	connection_time(connection, connection_limits(connection)->send_ms);
	connection_unsent_starts(connection);
	loop_send_start(connection->thread->loop, op, connection->fd);
}

/* --- its life -------------------------------------------------------------------------- */

/* The timeout of a session that sends nothing; streams have their own. */
static void set_timer(struct session *session)
{
	struct connection *connection = session->connection;
	const struct config_limits *limits = connection_limits(connection);
	enum session_timing timing = session->opening	     ? TIMING_HEAD
				     : session->stream_count ? TIMING_NONE
				     : session->leaving	     ? TIMING_LAST
							     : TIMING_IDLE;
	uint64_t now = loop_now_ms(connection->thread->loop), most;

	connection_count_as(connection, session->opening	? CONNECTION_READING
					: session->stream_count ? CONNECTION_WORKING
								: CONNECTION_IDLE);
	if (timing != session->timing) {
		session->timing = timing;
		session->timing_ms = now;
		session->timed = false;
	}
	/* Other frames, and what is sent for them, do not prolong it. */
	if (session->timed)
		return;
	session->timed = true;
	most = timing == TIMING_HEAD   ? limits->header_ms
	       : timing == TIMING_IDLE ? limits->keep_alive_ms
				       : LAST_MS;
	if (timing == TIMING_NONE)
		timer_stop(&connection->timer);
	else
		connection_time(connection, (unsigned)(most - MIN(now - session->timing_ms, most)));
}

/* Tells the client that the session ends. */
static void say_end(struct session *session, uint32_t error)
{
	session->over = true;
	(void)nghttp2_session_terminate_session(session->http2, error);
	session_wake(session);
}

/* Everything was said; the client's end follows. */
static void end(struct connection *connection)
{
	session_close(connection);
	connection_shut(connection);
	connection_linger(connection);
}

static void fail(struct session *session, const char *why)
{
	log_info("%s: HTTP/2: %s: closing", session->connection->addresses.remote, why);
	connection_close(session->connection);
}

/* Sends what there is, if nothing is in flight.  May free the connection. */
static void work(struct session *session)
{
	struct connection *connection = session->connection;

	if (session->resumed)
		for (struct stream *stream = session->streams; stream; stream = stream->next)
			stream_give_back(stream);
	session->resumed = false;
	if (connection->sending)
		return;
	if (!collect(session)) {
		fail(session, "no memory");
		return;
	}
	if (session->message.count) {
		send_message(session);
		return;
	}
	/* Heads whose last bytes left with the previous message. */
	if (session->message.stream_count) {
		session_message_done(&session->message, stream_sent);
		session_wake(session);
		return;
	}
	if (session->last && !session->stream_count && !session->over) {
		say_end(session, NGHTTP2_NO_ERROR);
		return;
	}
	if (!nghttp2_session_want_read(session->http2)) {
		end(connection);
		return;
	}
	streams_wait(session);
	set_timer(session);
}

/* The before_sleep() of the thread's hook. */
static bool work_next(struct loop_hook *hook)
{
	struct thread *thread =
		(struct thread *)((char *)hook - offsetof(struct thread, session_hook));
	unsigned count = thread->sessions.length;

	while (count--) {
		GList *link = g_queue_pop_head_link(&thread->sessions);
		struct session *session = link ? link->data : NULL;

		if (!session)
			break;
		session->wakes = false;
		work(session);
	}
	return thread->sessions.length > 0;
}

/* The client does what it must not do: tells it, then ends. */
static void break_off(struct session *session, uint32_t error, const char *why)
{
	log_info("%s: HTTP/2: %s: closing", session->connection->addresses.remote, why);
	session->broken = true;
	say_end(session, error);
}

/* Returns false if what follows is not to be processed. */
static bool check_frame(struct session *session)
{
	const nghttp2_frame_hd *frame = &session->frames.head;
	uint32_t error = session_closed_check(session, frame);

	/* Priorities of RFC 7540 are ignored, but not such a frame (RFC 9113, section 6.3). */
	if (frame->type == NGHTTP2_PRIORITY && frame->stream_id == 0)
		error = NGHTTP2_PROTOCOL_ERROR;
	if (error)
		break_off(session, error, "a frame that its stream cannot have");
	else if (!session_flood_received(session, frame))
		break_off(session, NGHTTP2_ENHANCE_YOUR_CALM,
			  "too many frames that ask for nothing");
	else
		return true;
	return false;
}

/* Whether the frame opens a stream, which it can whatever came before. */
static bool opens_stream(struct session *session)
{
	const nghttp2_frame_hd *frame = &session->frames.head;

	if (frame->type != NGHTTP2_HEADERS || frame->stream_id <= session->highest)
		return false;
	session->highest = frame->stream_id;
	return true;
}

/* Returns false if the connection was freed. */
static bool process(struct session *session, const char *data, size_t length)
{
	ssize_t used = nghttp2_session_mem_recv(session->http2, (const uint8_t *)data, length);

	if (used < 0)
		fail(session, nghttp2_strerror((int)used));
	return used >= 0;
}

/* A client that should open no more streams, and knows it by now, gets no further ones. */
static void insist(struct session *session)
{
	uint64_t now = loop_now_ms(session->connection->thread->loop);

	if (!session->leaving || session->strict || now - session->leaving_ms < LAST_MS)
		return;
	session->strict = true;
	(void)nghttp2_submit_goaway(session->http2, NGHTTP2_FLAG_NONE,
				    nghttp2_session_get_last_proc_stream_id(session->http2),
				    NGHTTP2_NO_ERROR, NULL, 0);
}

void session_received(struct connection *connection, const char *data, size_t length)
{
	struct session *session = session_of(connection);
	size_t run = 0; /* bytes that can be processed together */

	if (session->broken)
		return;
	while (run < length) {
		bool begins;
		size_t now =
			session_frames_split(&session->frames, data + run, length - run, &begins);

		if (begins && !opens_stream(session)) {
			if (run && !process(session, data, run))
				return;
			data += run;
			length -= run;
			run = 0;
			if (!check_frame(session))
				return;
		}
		run += now;
	}
	if (run && !process(session, data, run))
		return;
	insist(session);
	if (session->begun_with != connection->thread->config_ref)
		session_leave(connection);
	else if (!connection->sending)
		set_timer(session);
	session_wake(session);
}

void session_leave(struct connection *connection)
{
	struct session *session = session_of(connection);

	if (!session->leaving) {
		(void)nghttp2_submit_shutdown_notice(session->http2);
		session->leaving_ms = loop_now_ms(connection->thread->loop);
	}
	session->leaving = true;
	session->last |= connection->thread->draining && connection->requests;
	session->begun_with = connection->thread->config_ref;
	/* What the client has opened meanwhile is received first. */
	if (!connection->sending)
		set_timer(session);
	session_wake(session);
}

void session_timed_out(struct connection *connection)
{
	struct session *session = session_of(connection);

	if (connection->sending || session->last) {
		connection_close(connection);
		return;
	}
	if (session->timing == TIMING_HEAD)
		log_info("%s: HTTP/2: a head that takes longer than header-timeout: closing",
			 connection->addresses.remote);
	session->last = true;
	say_end(session, NGHTTP2_NO_ERROR);
}

static int on_error(nghttp2_session *http2, int code, const char *text, size_t length,
		    void *context)
{
	(void)http2;
	(void)code;
	(void)context;
	log_debug("HTTP/2: %.*s", (int)length, text);
	return 0;
}

static void set_up(void)
{
	if (nghttp2_session_callbacks_new(&callbacks) || nghttp2_option_new(&options))
		g_error("no memory");
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
	nghttp2_session_callbacks_set_send_data_callback(callbacks, stream_add_data);
	nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, frame_length);
	nghttp2_session_callbacks_set_error_callback2(callbacks, on_error);
	nghttp2_option_set_no_auto_window_update(options, 1);
	nghttp2_option_set_max_send_header_block_length(options, HEAD_MAX);
	nghttp2_option_set_builtin_recv_extension_type(options, NGHTTP2_PRIORITY_UPDATE);
}

void session_init(struct thread *thread)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set_up);
	thread->session_hook.before_sleep = work_next;
	loop_hook_add(thread->loop, &thread->session_hook);
}

bool session_open(struct connection *connection)
{
	const struct config_limits *limits = connection_limits(connection);
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits->max_streams},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, SESSION_STREAM_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
		 (uint32_t)limits->max_header + 32 * limits->max_fields},
		{NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
	};
	struct session *session = calloc(1, sizeof(*session));

	if (!session)
		return false;
	session->connection = connection;
	session->waking.data = session;
	session->fields = g_array_new(FALSE, FALSE, sizeof(nghttp2_nv));
	session->frames.preface = strlen(SESSION_PREFACE);
	session->begun_with = connection->thread->config_ref;
	if (nghttp2_session_server_new2(&session->http2, callbacks, session, options) ||
	    nghttp2_submit_settings(session->http2, NGHTTP2_FLAG_NONE, settings,
				    G_N_ELEMENTS(settings)) ||
	    nghttp2_session_set_local_window_size(session->http2, NGHTTP2_FLAG_NONE, 0,
						  SESSION_WINDOW)) {
		nghttp2_session_del(session->http2);
		g_array_unref(session->fields);
		free(session);
		return false;
	}
	connection->session = session;
	connection->state = SESSION;
	counter_add(&connection->thread->counters.sessions, 1);
	session_wake(session);
	return true;
}

void session_close(struct connection *connection)
{
	struct session *session = session_of(connection);

	nghttp2_session_del(session->http2);
	session->http2 = NULL;
	while (session->streams)
		connection_close(&session->streams->connection);
	if (session->wakes)
		g_queue_unlink(&connection->thread->sessions, &session->waking);
	session_message_free(&session->message);
	session_closed_free(session);
	g_array_unref(session->fields);
	connection->send.pieces = NULL;
	connection->send.piece_count = 0;
	connection->session = NULL;
	free(session);
}
