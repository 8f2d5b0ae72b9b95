/* SPDX-License-Identifier: MIT */
/*
 * session-closed.c - recognizes frames of streams that have ended, which the library ignores.
 *
 * A client must not send content or heads after it has ended or reset a stream.  After the server
 * has reset one, what the client had sent before it knew that is still to come.  After the server
 * has ended one, the client may continue, but gets no more window: when that is used up, the server
 * resets the stream; and at once if it is still sending a head that was refused.
 */
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "h2/session-internal.h"

#define FORGIVEN_MAX 256u /* the last ones that the server has reset */

static bool is_forgiven(const struct session *session, int32_t id)
{
	for (unsigned i = 0; session->forgiven && i < FORGIVEN_MAX; i++)
		if (session->forgiven[i] == id)
			return true;
	return false;
}

uint32_t session_closed_check(const struct session *session, const nghttp2_frame_hd *frame)
{
	int32_t id = frame->stream_id;

	if ((frame->type != NGHTTP2_DATA && frame->type != NGHTTP2_HEADERS) || id <= 0 ||
	    id > nghttp2_session_get_last_proc_stream_id(session->http2) ||
	    nghttp2_session_get_stream_remote_close(session->http2, id) >= 0 ||
	    is_forgiven(session, id))
		return NGHTTP2_NO_ERROR;
	/* The library remembers the last ones; a number that was left out was never used. */
	return nghttp2_session_find_stream(session->http2, id) ? NGHTTP2_STREAM_CLOSED
							       : NGHTTP2_PROTOCOL_ERROR;
}

void session_closed_by_client(struct session *session, int32_t id)
{
	session->reset_by_client = id;
}

void session_closed_note(struct session *session, int32_t id)
{
	if (session->reset_by_client == id ||
	    nghttp2_session_get_stream_remote_close(session->http2, id) != 0)
		return;
	if (!session->forgiven)
		session->forgiven = calloc(FORGIVEN_MAX, sizeof(*session->forgiven));
	if (session->forgiven)
		session->forgiven[session->forgiven_next++ % FORGIVEN_MAX] = id;
}

/* Whether the client has sent so much of a request without a connection that it gets no more window. */
static bool window_is_used_up(const struct session *session, int32_t id)
{
	return nghttp2_session_get_stream_remote_close(session->http2, id) == 0 &&
	       nghttp2_session_get_stream_local_window_size(session->http2, id) <=
		       SESSION_STREAM_WINDOW / 2;
}

/*
 * The rest of the request is not needed (RFC 9113, section 8.1).  Before the end of the response, a
 * reset would cancel that.
 */
static void reset_answered(const struct session *session, int32_t id)
{
	(void)nghttp2_submit_rst_stream(session->http2, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
}

void session_closed_drop(struct session *session, int32_t id, size_t length)
{
	nghttp2_session *http2 = session->http2;

	(void)nghttp2_session_consume_connection(http2, length);
	if (nghttp2_session_get_stream_local_close(http2, id) == 1 &&
	    window_is_used_up(session, id))
		reset_answered(session, id);
}

void session_closed_answered(struct session *session, int32_t id)
{
	bool head = id == session->refused; /* not all of it has come */

	if (head)
		session->refused = 0;
	if (head || (!stream_find(session, id) && window_is_used_up(session, id)))
		reset_answered(session, id);
}

void session_closed_free(struct session *session)
{
	free(session->forgiven);
}
