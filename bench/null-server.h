/* SPDX-License-Identifier: MIT */
/*
 * null-server.h - shared by the two loops of null-server: the records to send, and the
 * state of a connection.
 */
#ifndef NULL_SERVER_H
#define NULL_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define NULL_CONNECTIONS 65536u /* descriptors, at most */

/* How a response is sent. */
enum null_way {
	NULL_SEND,   /* send(), at once */
	NULL_BATCH,  /* send operations, submitted together (io_uring) */
	NULL_SPLICE, /* sendfile() with the unsent bytes bounded */
};

struct null_server {
	int listener;
	int records_fd;	     /* a memfd: a record is head and body, one after the other */
	const char *records; /* the same, mapped */
	size_t length;	     /* of a record */
	size_t stride;
	unsigned count;
	enum null_way way;
	bool one; /* request a connection */
};

struct null_connection {
	unsigned ended; /* received bytes of the empty line after a head */
	unsigned owed;	/* pending responses */
	unsigned turn;	/* the next record */
	size_t sent;	/* of the response in flight */
	bool half_shut; /* the response was the last one */
	bool under_way; /* by an operation (NULL_BATCH) */
};

/* Starts a connection. */
void null_begin(const struct null_server *server, struct null_connection *connection, int fd);

/* Takes received bytes: each end of a head adds a response to send. */
void null_take(struct null_connection *connection, const char *data, size_t length);

/* Sends pending responses until the socket accepts no more: 0, or -1 if it is broken. */
int null_answer(const struct null_server *server, struct null_connection *connection, int fd);

/* Returns what is to be sent next: its bytes, or none. */
size_t null_next(const struct null_server *server, const struct null_connection *connection,
		 const char **from);

/* Records that `sent` bytes were sent; the connection continues behind them. */
void null_sent(const struct null_server *server, struct null_connection *connection, int fd,
	       size_t sent);

/* The loops: return only on errors, which they have reported. */
void null_epoll(const struct null_server *server, struct null_connection *connections);
void null_uring(const struct null_server *server, struct null_connection *connections);

#endif
