/* SPDX-License-Identifier: MIT */
/*
 * connection-mux.h - what a connection with a socket becomes when its client speaks a protocol that
 * has several requests at a time: a table of functions, which the server gives to each thread.
 */
#ifndef SWEET_CONNECTION_MUX_H
#define SWEET_CONNECTION_MUX_H

#include <stdbool.h>
#include <stddef.h>

struct connection;

struct connection_mux {
	/* What the client begins with, if it has not agreed by TLS to speak the protocol. */
	const char *preface;
	/* The connection becomes a session: sets its mux, session and state.  Returns false without memory. */
	bool (*open)(struct connection *connection);
	/*
	 * Ends the session; the connection remains.  No message may be in flight.  Streams end in this
	 * turn of the loop and the next ones, until when the connection has connection->ending.
	 */
	void (*close)(struct connection *connection);
	/* Ends the streams that are left of connection->ending.  May free the connection. */
	void (*end_all)(struct connection *connection);
	/* Processes what the client sent.  May free the connection. */
	void (*received)(struct connection *connection, const char *data, size_t length);
	/* The client opens no more streams, and those that exist end.  May free the connection. */
	void (*leave)(struct connection *connection);
	/* The timeout that runs is over.  May free the connection. */
	void (*timed_out)(struct connection *connection);
};

#endif
