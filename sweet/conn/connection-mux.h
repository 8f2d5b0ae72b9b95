/* SPDX-License-Identifier: MIT */
/*
 * connection-mux.h - what a connection passes to its protocol: HTTP/1.x, with one request after the
 * other, or one with several at a time, which the server gives to each thread.
 */
#ifndef SWEET_CONNECTION_MUX_H
#define SWEET_CONNECTION_MUX_H

#include <stdbool.h>
#include <stddef.h>

struct connection;

/* Each may free the connection, except open() and close(). */
struct connection_mux {
	/* Processes what the client sent, after TLS. */
	void (*received)(struct connection *connection, const char *data, size_t length);
	/* The server ends: ends the connection as soon as its requests have their responses. */
	void (*leave)(struct connection *connection);
	/* The client is too slow for the connection's state. */
	void (*timed_out)(struct connection *connection);
	/* Of sessions only: what the client begins with, if it has not agreed by TLS. */
	const char *preface;
	/* The connection becomes a session, and gets this table.  Returns false without memory. */
	bool (*open)(struct connection *connection);
	/*
	 * Ends the session; the connection remains.  No message may be in flight.  Streams end in this
	 * turn of the loop and the next ones, until when the carrier has carrier->ending.
	 */
	void (*close)(struct connection *connection);
	/* Ends the streams that are left of carrier->ending. */
	void (*end_all)(struct connection *connection);
};

/* Of a new connection, of one whose session has ended, and of streams. */
extern const struct connection_mux connection_http1;

#endif
