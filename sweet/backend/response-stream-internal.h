/* SPDX-License-Identifier: MIT */
/*
 * response-stream-internal.h - shared by response-stream.c, which takes what the protocol
 * reads, response-stream-head.c and response-stream-send.c.
 */
#ifndef SWEET_RESPONSE_STREAM_INTERNAL_H
#define SWEET_RESPONSE_STREAM_INTERNAL_H

#include <stdbool.h>

#include "backend/read-buffer.h"
#include "backend/response-stream.h"
#include "base/list.h"
#include "core/transaction.h"

struct slice;

/* The progress of a head. */
enum stream_head_state { STREAM_HEAD_PART, STREAM_HEAD_WHOLE, STREAM_CALL_OVER };

static inline const struct read_buffer *response_stream_first(const struct response_stream *stream)
{
	return list_first(&stream->queue, const struct read_buffer, node);
}

/* --- response-stream-send.c --- */

/* Whether one more buffer may be kept in memory; whether it may be kept there or on disk. */
bool response_stream_has_memory(const struct response_stream *stream);
bool response_stream_has_room(const struct response_stream *stream);

/* Buffers came, left or ended: lets the program continue, or waits for the client. */
void response_stream_adjust(struct response_stream *stream);

/* Makes the first buffer the transaction's piece. */
void response_stream_hand_over(struct response_stream *stream);

/* The next() of struct transaction_responder. */
enum respond response_stream_next(struct transaction *transaction);

/* Passes the next buffer, or the end, to a connection that waits for it. */
void response_stream_satisfy(struct response_stream *stream);

/* As response_stream_fail(), with another status than 502. */
bool response_stream_fail_as(struct response_stream *stream, int status, const char *fault);

/* --- response-stream-head.c --- */

/* Takes bytes of the head from *run and leaves the bytes that follow it there. */
enum stream_head_state response_stream_gather_head(struct response_stream *stream,
						   struct slice *run);

/* A held stream is released: takes the head of an HTTP response that it has stored. */
bool response_stream_stored_head(struct response_stream *stream);

#endif
