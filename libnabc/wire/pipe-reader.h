/* SPDX-License-Identifier: MIT */
/*
 * pipe-reader.h - reads responses that come as bytes through a pipe, bodies
 * included; used to compare with responses by cache id.
 *
 * A record is the same as in the queue of responses; only the lengths of its ranges
 * count, and the bytes of the body follow.  The sender is not trusted: a body is
 * accepted only up to a limit.  One thread at a time.
 */
#ifndef NC_PIPE_READER_H
#define NC_PIPE_READER_H

#include <stdbool.h>
#include <stddef.h>

struct nc_pipe_reader;
struct nc_wire_response;

/* fd must not block; the reader owns it.  NULL: out of memory, and the caller still owns fd. */
struct nc_pipe_reader *nc_pipe_reader_open(int fd, size_t limit);
void nc_pipe_reader_close(struct nc_pipe_reader *reader);

/*
 * Returns 1 for a response: *record (valid until the next call) was checked; *data
 * are the bytes of its body, which the caller frees; NULL: no body.  Returns 0 if
 * none is complete, -EPROTO or -ENOMEM.
 */
int nc_pipe_reader_take(struct nc_pipe_reader *reader, const char **record,
			struct nc_wire_response *wire, char **data, size_t *length);

/* Whether there may be more data before the descriptor becomes readable again. */
bool nc_pipe_reader_ready(const struct nc_pipe_reader *reader);

#endif
