/* SPDX-License-Identifier: MIT */
/*
 * response-spool.h - buffers of an answer that wait on the disk, so that a program
 * is done at its own speed, and its client reads at its own.
 *
 * In the line of a stream such a buffer is stored: it has no unit, and stands
 * for all buffers that were written one after the other.  When it is the first
 * it is fetched, a buffer's bytes at a time.  A stream's thread.
 */
#ifndef SWEET_RESPONSE_SPOOL_H
#define SWEET_RESPONSE_SPOOL_H

#include "backend/response-stream.h"

/* Whether a buffer more can be written now. */
bool response_spool_has_room(const struct response_stream *stream);

/*
 * Writes the buffer, which is given back when that is done; what stands for it
 * is the last in the line.  False: it is still the caller's.
 */
bool response_spool_put(struct response_stream *stream, struct read_buffer *buffer);

/* Of the first buffer, which is stored: response_stream_fetched() gets the next part.  0 or -errno. */
int response_spool_fetch(struct response_stream *stream);

/* Nothing of it is needed any more; there may be none. */
void response_spool_end(struct response_stream *stream);

#endif
