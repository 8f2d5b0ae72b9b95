/* SPDX-License-Identifier: MIT */
/*
 * response-stream-internal.h - shared by response-stream.c, which manages the buffers, and
 * response-stream-head.c.
 */
#ifndef SWEET_RESPONSE_STREAM_INTERNAL_H
#define SWEET_RESPONSE_STREAM_INTERNAL_H

#include <stdbool.h>

#include "core/transaction.h"

struct response_stream;
struct slice;

/* The progress of a head. */
enum stream_head_state { STREAM_HEAD_PART, STREAM_HEAD_WHOLE, STREAM_CALL_OVER };

/* --- response-stream.c --- */

/* The transaction's next(). */
enum respond response_stream_next(struct transaction *transaction);

/* --- response-stream-head.c --- */

/* Takes bytes of the head from *run and leaves the bytes that follow it there. */
enum stream_head_state response_stream_gather_head(struct response_stream *stream,
						   struct slice *run);

/* A held stream is released: takes the head of an HTTP response that it has stored. */
bool response_stream_stored_head(struct response_stream *stream);

#endif
