/* SPDX-License-Identifier: MIT */
/*
 * session.c - see session.h: the beginning of a session.  Its frames are parsed and written by
 * libnghttp2.
 */
#include <glib.h>
#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/counter.h"
#include "base/spare-memory.h"
#include "config/configuration.h"
#include "conn/connection-base.h"
#include "conn/connection-mux.h"
#include "core/client-calls.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "event/loop.h"
#include "h2/h2-thread.h"
#include "h2/session-internal.h"
#include "h2/session.h"
#include "log/log.h"

#define HEAD_MAX (16u << 20) /* of a response; the limits of handlers are lower */

static nghttp2_session_callbacks *callbacks;
static nghttp2_option *options;

static void session_timed_out(struct connection *connection)
{
	struct session *session = connection->carrier->session;

	if (connection->sending || session->last) {
		connection_close(connection);
		return;
	}
	if (session->timing == TIMING_HEAD)
		log_info("%s: HTTP/2: a head that takes longer than header-timeout: closing",
			 connection_remote(connection));
	session->last = true;
	session_say_end(session, NGHTTP2_NO_ERROR);
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

static void session_set_up(void)
{
	if (nghttp2_session_callbacks_new(&callbacks) || nghttp2_option_new(&options))
		g_error("no memory");
	session_receive_callbacks(callbacks);
	session_send_callbacks(callbacks);
	nghttp2_session_callbacks_set_error_callback2(callbacks, on_error);
	nghttp2_option_set_no_auto_window_update(options, 1);
	nghttp2_option_set_max_send_header_block_length(options, HEAD_MAX);
	nghttp2_option_set_builtin_recv_extension_type(options, NGHTTP2_PRIORITY_UPDATE);
}

void session_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, session_set_up);
}

/* Returns NULL without any. */
static struct spare_memory *memory_of(struct thread *thread)
{
	if (!thread->h2->session_memory)
		thread->h2->session_memory = spare_memory_new();
	return thread->h2->session_memory;
}

/* --- where libnghttp2 gets its memory ------------------------------------------------------------ */

static void *session_take_memory(size_t length, void *of_thread)
{
	return spare_memory_take(of_thread, length);
}

static void *session_take_zeroed_memory(size_t count, size_t length, void *of_thread)
{
	return spare_memory_take_zeroed(of_thread, count, length);
}

static void *session_change_memory(void *memory, size_t length, void *of_thread)
{
	return spare_memory_change(of_thread, memory, length);
}

static void session_give_back_memory(void *memory, void *of_thread)
{
	spare_memory_give_back(of_thread, memory);
}

/* --- its life ------------------------------------------------------------------------------------ */

/* Until then, it need not know its limits; and none of its own settings proves that it reads. */
static void session_settle_late(struct timer *timer)
{
	struct session *session = container_of(timer, struct session, unsettled);

	session_break_off(session, NGHTTP2_SETTINGS_TIMEOUT,
			  "settings that are not acknowledged within header-timeout");
}

static bool session_open(struct connection *connection)
{
	const struct config_limits *limits = connection_limits(connection);
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits->max_streams},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, SESSION_STREAM_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
		 (uint32_t)limits->max_header + 32 * limits->max_fields},
		{NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
	};
	struct spare_memory *memory = memory_of(connection->thread);
	nghttp2_mem calls = {memory, session_take_memory, session_give_back_memory,
			     session_take_zeroed_memory, session_change_memory};
	struct session *session = memory ? calloc(1, sizeof(*session)) : NULL;

	if (!session)
		return false;
	session->calls = client_calls_new();
	session->message.memory = memory;
	session->connection = connection;
	session->frames.preface = strlen(SESSION_PREFACE);
	session->begun_with = connection->thread->config_ref;
	if (!session->calls ||
	    nghttp2_session_server_new3(&session->http2, callbacks, session, options, &calls) ||
	    nghttp2_submit_settings(session->http2, NGHTTP2_FLAG_NONE, settings,
				    G_N_ELEMENTS(settings)) ||
	    nghttp2_session_set_local_window_size(session->http2, NGHTTP2_FLAG_NONE, 0,
						  SESSION_WINDOW)) {
		nghttp2_session_del(session->http2);
		client_calls_release(session->calls);
		free(session);
		return false;
	}
	connection->mux = &session_mux;
	connection->carrier->session = session;
	connection->carrier->calls = session->calls;
	connection->state = SESSION;
	counter_add(&connection->thread->counters->sessions, 1);
	loop_timer_start(connection->thread->loop, &session->unsettled, limits->header_ms,
			 session_settle_late);
	session_wake(session);
	return true;
}

const struct connection_mux session_mux = {
	.preface = SESSION_PREFACE,
	.open = session_open,
	.close = session_close,
	.end_all = session_end_all,
	.received = session_received,
	.leave = session_leave,
	.timed_out = session_timed_out,
};
