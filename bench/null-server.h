/* SPDX-License-Identifier: MIT */
/*
 * null-server.h - what the two loops of null-server have in common: the
 * records that are sent, and where a connection stands.
 */
#ifndef NULL_SERVER_H
#define NULL_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define NULL_CONNECTIONS 65536u /* descriptors, at most */

/* How an answer leaves. */
enum null_way {
	NULL_SEND,   /* send(), at once */
	NULL_BATCH,  /* send operations, submitted together (io_uring) */
	NULL_SPLICE, /* sendfile() with the unsent bytes bounded */
};

struct null_server {
	int listener;
	int records_fd;	     /* a memfd: a record is head and body, one behind the other */
	const char *records; /* the same, mapped */
	size_t length;	     /* of a record */
	size_t stride;
	unsigned count;
	enum null_way way;
	bool one; /* request a connection */
};

struct null_connection {
	unsigned ended; /* how much of the empty line behind a head has come */
	unsigned owed;	/* answers */
	unsigned turn;	/* the next record */
	size_t sent;	/* of the response in flight */
	bool half_shut; /* the answer was the last */
	bool under_way; /* by an operation (NULL_BATCH) */
};

/* A connection that begins. */
void null_begin(const struct null_server *server, struct null_connection *connection, int fd);

/* Takes received bytes: each end of a head is an answer more to be sent. */
void null_take(struct null_connection *connection, const char *data, size_t length);

/* Sends what is owed until the socket takes no more: 0, or -1 if it is broken. */
int null_answer(const struct null_server *server, struct null_connection *connection, int fd);

/* What is to be sent next: its bytes, or none. */
size_t null_next(const struct null_server *server, const struct null_connection *connection,
		 const char **from);

/* Records that `sent` bytes were sent; the connection continues behind them. */
void null_sent(const struct null_server *server, struct null_connection *connection, int fd,
	       size_t sent);

/* The loops: return only on errors, which they have told. */
void null_epoll(const struct null_server *server, struct null_connection *connections);
void null_uring(const struct null_server *server, struct null_connection *connections);

#endif
