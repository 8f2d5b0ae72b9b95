/* SPDX-License-Identifier: MIT */
/*
 * null-cipher.h - what null-tls and null-h2 share: one process and one thread, epoll, connections
 * over TLS, the loop, and main().
 *
 * OpenSSL reads and writes through a BIO that asks the kernel as seldom as possible: one recv() for
 * what has come, and one send() for several records.  No names, no limits, no timeouts: not for a
 * network of others.
 */
#ifndef BENCH_NULL_CIPHER_H
#define BENCH_NULL_CIPHER_H

#include <stdbool.h>
#include <stddef.h>

#include <openssl/ssl.h>

#define NULL_BURST ((size_t)64 << 10) /* bytes that are encrypted before they are sent */

/* The first member of a connection of either program. */
struct null_connection {
	int fd;
	SSL *ssl;
	bool shaken;  /* the handshake is over */
	bool drained; /* the last recv() has emptied the socket */
	char *rest;   /* what the socket did not take; NULL: nothing */
	size_t rest_at, rest_to;
};

/* What one of the programs is. */
struct null_program {
	const char *name;
	const char *protocol; /* the only one that ALPN accepts; NULL: without ALPN */
	size_t connection;    /* bytes */

	/* Prepares count bodies of this size; returns false without memory. */
	bool (*fill)(size_t size, unsigned count);

	/* Prepares a connection whose memory is zero; returns false without memory. */
	bool (*open)(struct null_connection *connection);

	/* What open() has prepared, even if it failed. */
	void (*close)(struct null_connection *connection);

	/* Processes received bytes; returns false at the end. */
	bool (*take)(struct null_connection *connection, const char *data, size_t length);

	/* Sends pending responses; returns like null_flush(). */
	int (*answer)(struct null_connection *connection);
};

/* Sends what was encrypted; returns 1: all, 0: the socket is full, -1: it is broken. */
int null_flush(struct null_connection *connection);

/* Returns the bytes that were encrypted and not sent. */
size_t null_unsent(void);

/* The socket is full: the same bytes are sent after the rest.  Returns false without memory. */
bool null_keep(struct null_connection *connection);

/* Runs the program; returns only on an error, with the exit status. */
int null_main(const struct null_program *program, int argc, char **argv);

#endif
