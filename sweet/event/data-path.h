/* SPDX-License-Identifier: MIT */
/*
 * data-path.h - the way of bodies from a worker through the server to a socket: as
 * cache ids and with the library's sends; or without the library, as bytes through
 * pipes and plain system calls, for comparison with the first way.  All other parts
 * of the server are the same on both paths.
 *
 * Call cycle: data-path.c has the table of data-path-posix.c, which calls
 * data_path_part().
 */
#ifndef SWEET_DATA_PATH_H
#define SWEET_DATA_PATH_H

#include <stdbool.h>
#include <sys/types.h>

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
	 * Sends the part of a message that the socket accepts without blocking, as
	 * NC_send(): returns bytes, or -1 with errno.
	 */
	ssize_t (*send)(int socket, const struct NC_send *message);
	/*
	 * As send(), but the header has a call of its own if anything follows it.  It is shorter
	 * than the message's limit.
	 */
	ssize_t (*send_apart)(int socket, const struct NC_send *message);
};

extern const struct data_path data_path_nabc, data_path_posix;
extern const struct data_path *const data_paths[DATA_PATHS];

/*
 * Sends a header and a range of a file, as NC_sendfile(); apart: the header with a
 * call of its own.
 */
ssize_t data_path_file(const struct data_path *path, int socket, const struct NC_sendfile *message,
		       bool apart);

/* Writes the message to a pipe by copy, on either path.  The caller must ignore SIGPIPE. */
ssize_t data_path_write(int pipe, const struct NC_send *message);

/* For send_apart(): sends the header, then calls the path's send() for the rest. */
ssize_t data_path_part(const struct data_path *path, int socket, const struct NC_send *message);

#endif
