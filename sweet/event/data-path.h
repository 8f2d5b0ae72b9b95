/* SPDX-License-Identifier: MIT */
/*
 * data-path.h - the way that bodies take from a worker through the server to a
 * socket: as cache ids and by the library's sends; or as they would without
 * it, as bytes by pipes and plain system calls, which is what the first way is
 * measured against.  Everything else of the server is the same on both.
 *
 * Call cycle: data-path.c has the table of data-path-posix.c, which calls
 * data_path_part().
 */
#ifndef SWEET_DATA_PATH_H
#define SWEET_DATA_PATH_H

#include <stdbool.h>
#include <sys/uio.h>

#include <nabc.h>

enum data_path_kind { DATA_PATH_NABC, DATA_PATH_POSIX, DATA_PATHS };

/* The hold of a range's unit: a message has one for each range, or one for all. */
static inline const struct NC_hold *data_path_hold(const struct NC_send *message, unsigned range)
{
	return &message->holds[message->hold_count > 1 ? range : 0];
}

struct data_path {
	const char *name;
	unsigned cache_flags;	/* NC_CACHE_* for the server's cache */
	unsigned backend_flags; /* NC_BACKEND_* for its workers */
	/*
	 * Sends of a message what the socket takes without blocking, as
	 * NC_send() does: bytes, or -1 with errno.  tail: bytes in ordinary
	 * memory behind the ranges.
	 */
	ssize_t (*send)(int socket, const struct NC_send *message, const struct iovec *tail);
	/* The same with the header by a call of its own, if anything follows it. */
	ssize_t (*send_apart)(int socket, const struct NC_send *message, const struct iovec *tail);
};

extern const struct data_path data_path_nabc, data_path_posix;
extern const struct data_path *const data_paths[DATA_PATHS];

/* A header and a range of a file, as NC_sendfile(); apart: the header by a call of its own. */
ssize_t data_path_file(const struct data_path *path, int socket, const struct NC_sendfile *message,
		       bool apart);

/* What is there of a message to a pipe: a copy, whatever the path.  The caller ignores SIGPIPE. */
ssize_t data_path_write(int pipe, const struct NC_send *message);

/* For send_apart(): the header at once, then what the path's send() makes of the rest. */
ssize_t data_path_part(const struct data_path *path, int socket, const struct NC_send *message,
		       const struct iovec *tail);

#endif
