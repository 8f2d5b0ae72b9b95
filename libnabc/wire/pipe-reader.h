/* SPDX-License-Identifier: MIT */
/*
 * pipe-reader.h - reads responses that come as bytes through a pipe, bodies included:
 * what responses by cache id are measured against.
 *
 * A record is the same as in the queue of responses; of its ranges only the lengths
 * count, and the bytes of the body follow.  The sender is not trusted: a body is taken
 * only up to a limit.  One thread at a time.
 */
#ifndef NC_PIPE_READER_H
#define NC_PIPE_READER_H

#include "wire/wire.h"

struct nc_pipe_reader;

/* fd does not block; it is closed with the reader.  NULL: no memory, and fd is the caller's. */
struct nc_pipe_reader *nc_pipe_reader_open(int fd, size_t limit);
void nc_pipe_reader_close(struct nc_pipe_reader *reader);

/*
 * 1: an answer: *record (good until the next take) was checked, *data are the
 * bytes of its body, to be freed; NULL: it has none.  0: none is complete;
 * -EPROTO; -ENOMEM.
 */
int nc_pipe_reader_take(struct nc_pipe_reader *reader, const char **record,
			struct nc_wire_response *wire, char **data, size_t *length);

/* Whether there may be more without the descriptor's becoming readable again. */
bool nc_pipe_reader_ready(const struct nc_pipe_reader *reader);

#endif
