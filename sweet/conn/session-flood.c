/* SPDX-License-Identifier: MIT */
/*
 * session-flood.c - recognizes a client that only costs: by resetting what it has requested, by
 * settings, pings, priorities and windows without number, or by frames without content.
 *
 * The library limits some of them (resets, continuations, answers to settings and pings); this
 * covers all, at a rate that no client needs: frames that ask for nothing, less those with content
 * that it gets.
 */

#include <glib.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>

#include "conn/connection-internal.h"
#include "conn/session-internal.h"
#include "core/server.h"
#include "event/loop.h"

#define USELESS_MAX 2000u /* in the period, beside what progress excuses */
#define PERIOD_MS 10000u
#define EXCUSED 4u /* by each frame with content: its windows, and some more */

static bool is_useful(const nghttp2_frame_hd *frame)
{
	if (frame->type == NGHTTP2_DATA)
		return frame->length || frame->flags & NGHTTP2_FLAG_END_STREAM;
	return frame->type == NGHTTP2_HEADERS;
}

bool session_flood_received(struct session *session, const nghttp2_frame_hd *frame)
{
	uint64_t now = loop_now_ms(session->connection->thread->loop);

	if (is_useful(frame))
		return true;
	if (now - session->useless_ms > PERIOD_MS) {
		session->useless_ms = now;
		session->useless = 0;
	}
	return ++session->useless <= USELESS_MAX;
}

void session_flood_sent(struct session *session)
{
	session->useless -= MIN(session->useless, EXCUSED);
}
