/* SPDX-License-Identifier: MIT */
/*
 * response-stream-internal.h - what response-stream.c, which sees to the buffers, and
 * response-stream-head.c share.
 */
#ifndef SWEET_RESPONSE_STREAM_INTERNAL_H
#define SWEET_RESPONSE_STREAM_INTERNAL_H

#include "backend/response-stream.h"

/* Where a head has come to. */
enum stream_head_state { STREAM_HEAD_PART, STREAM_HEAD_WHOLE, STREAM_CALL_OVER };

/* --- response-stream.c --- */

/* The transaction's next(). */
enum respond response_stream_next(struct transaction *transaction);

/* --- response-stream-head.c --- */

/* Takes bytes of the head; those behind it are left in *run. */
enum stream_head_state response_stream_gather_head(struct response_stream *stream,
						   struct slice *run);

#endif
