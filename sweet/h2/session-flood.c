/* SPDX-License-Identifier: MIT */
/*
 * session-flood.c - recognizes a client that only costs: by resetting what it has requested, by
 * settings, pings, priorities and windows without number, by frames without content, or by requests
 * that are refused.
 *
 * The library limits some of them (resets, continuations, answers to settings and pings); this
 * covers all, at a rate that no client needs: frames that achieve nothing, less those with content
 * that the client gets.  What became of a frame counts, not its type alone: one that the library
 * refuses or ignores achieves nothing.
 *
 * Requests that are reset have a limit of their own, which responses do not raise: programs may have
 * begun with them.  It counts those that the client makes the server reset, by breaking the rules of
 * a stream, as it counts those that the client resets (CVE-2025-8671, CVE-2023-44487).
 */
#include <glib.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>

#include "conn/connection-base.h"
#include "core/server.h"
#include "event/loop.h"
#include "h2/session-internal.h"

#define USELESS_MAX 2000u  /* in the period, beside what progress excuses */
#define LONG_HEADS_MAX 20u /* in the period: to decode one costs more than to send it */
#define PERIOD_MS 10000u
#define RESETS_MAX 1000u /* more than in tabs that a person closes at once */
#define RESET_MS 30u	 /* excuses one */
#define EXCUSED 4u	 /* by each frame with content: its windows, and some more */

void session_flood_received(struct session *session)
{
	uint64_t now = loop_now_ms(session->connection->thread->loop);

	if (now - session->useless_ms > PERIOD_MS) {
		session->useless_ms = now;
		session->useless = session->long_heads = 0;
	}
	session->useless++;
}

/* A request, or content, trailers or the end of one: padding alone is none of them. */
static bool is_useful(const nghttp2_frame *frame, bool request)
{
	if (frame->hd.type == NGHTTP2_DATA)
		return frame->hd.length > frame->data.padlen ||
		       frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	return frame->hd.type == NGHTTP2_HEADERS && request;
}

void session_flood_accepted(struct session *session, const nghttp2_frame *frame, bool request)
{
	session->useless -= MIN(session->useless, is_useful(frame, request));
}

void session_flood_sent(struct session *session)
{
	session->useless -= MIN(session->useless, EXCUSED);
}

void session_flood_long_head(struct session *session)
{
	session->long_heads++;
}

void session_flood_reset(struct session *session)
{
	uint64_t now = loop_now_ms(session->connection->thread->loop);
	uint64_t excused = (now - session->resets_ms) / RESET_MS;

	session->resets -= (unsigned)MIN(session->resets, excused);
	session->resets_ms = session->resets ? session->resets_ms + excused * RESET_MS : now;
	session->resets++;
}

bool session_flood_is_over_limit(const struct session *session)
{
	return session->useless > USELESS_MAX || session->long_heads > LONG_HEADS_MAX ||
	       session->resets > RESETS_MAX;
}
