/* SPDX-License-Identifier: MIT */
/*
 * response-spool.h - stores buffers of a response on disk, so that neither the program nor the
 * client has to wait for the other.
 *
 * In the queue of a stream such a buffer is stored: it has no unit and stands for all buffers that
 * were written one after the other.  When it is at the head of the queue its data is read back in
 * pieces of buffer size.  It belongs to the stream's thread.
 */
#ifndef SWEET_RESPONSE_SPOOL_H
#define SWEET_RESPONSE_SPOOL_H

#include <stdbool.h>

struct read_buffer;
struct response_stream;

/* Whether one more buffer can be written now. */
bool response_spool_has_room(const struct response_stream *stream);

/*
 * Writes the buffer, and frees it afterwards; a stored buffer takes its place at the end of the
 * queue.  Returns false if the caller still owns the buffer.
 */
bool response_spool_put(struct response_stream *stream, struct read_buffer *buffer);

/* Reads from the first, stored buffer for response_stream_fetched().  0 or -errno. */
int response_spool_fetch(struct response_stream *stream);

/* Releases everything; there may be nothing. */
void response_spool_end(struct response_stream *stream);

#endif
