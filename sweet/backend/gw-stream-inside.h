/* SPDX-License-Identifier: MIT */
/*
 * gw-stream-inside.h - what gw-stream.c, which sees to the windows, and
 * gw-stream-head.c share.
 */
#ifndef SWEET_GW_STREAM_INSIDE_H
#define SWEET_GW_STREAM_INSIDE_H

#include "backend/gw-stream.h"

/* Where a head has come to. */
enum gw_gathered { GW_HEAD_PART, GW_HEAD_WHOLE, GW_HEAD_CALL_OVER };

/* --- gw-stream.c --- */

/* The transaction's next(). */
enum respond gw_stream_next(struct transaction *transaction);

/* --- gw-stream-head.c --- */

/* Takes bytes of the head; those behind it are left in *run. */
enum gw_gathered gw_stream_gather_head(struct gw_stream *stream, struct slice *run);

#endif
