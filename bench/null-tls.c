/* SPDX-License-Identifier: MIT */
/*
 * null-tls.c - the limit of "bench tls" with HTTP/1.1: no server, just what any that speaks TLS by
 * OpenSSL has to do.
 *
 * The handshake, the end of each request, and a response from memory, header and body in one piece;
 * see null-cipher.h for the rest.  No parsing.
 *
 * Usage: null-tls PORT SIZE COUNT PEM
 *   COUNT  bodies that connections go round, so that the CPU's caches hold no more of them than
 *          of a server's files
 *   PEM    file with certificate and key
 */
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "null-cipher.h"

#define HEAD_MAX 256

struct connection {
	struct null_connection null; /* must be first */
	unsigned ended;		     /* received bytes of the empty line after a head */
	unsigned owed;		     /* pending responses */
	unsigned turn;		     /* the next response */
	size_t sent;		     /* of the response in flight */
};

static struct {
	const char *responses; /* head and body, one after the other */
	size_t length;	       /* of one of them */
	unsigned count;
} prepared;

static bool open_connection(struct null_connection *null)
{
	static unsigned turn;

	/* Each starts at a different body, as clients do. */
	((struct connection *)null)->turn = turn++ % prepared.count;
	return true;
}

static void close_connection(struct null_connection *null)
{
	(void)null;
}

/* Counts the ends of heads in received bytes. */
static bool take(struct null_connection *null, const char *data, size_t length)
{
	static const char empty[] = "\r\n\r\n";
	struct connection *connection = (struct connection *)null;

	for (size_t i = 0; i < length; i++) {
		if (data[i] == empty[connection->ended])
			connection->ended++;
		else
			connection->ended = data[i] == empty[0];
		if (connection->ended == 4) {
			connection->owed++;
			connection->ended = 0;
		}
	}
	return true;
}

static int answer(struct null_connection *null)
{
	struct connection *connection = (struct connection *)null;
	int flushed = 1;

	while (connection->owed && flushed == 1) {
		const char *response = prepared.responses + connection->turn * prepared.length;
		size_t left = prepared.length - connection->sent, done;

		if (SSL_write_ex(null->ssl, response + connection->sent,
				 left < NULL_BURST ? left : NULL_BURST, &done) != 1)
			return -1;
		flushed = null_flush(null);
		connection->sent += done;
		if (connection->sent < prepared.length)
			continue;
		connection->sent = 0;
		connection->owed--;
		connection->turn = (connection->turn + 1) % prepared.count;
	}
	return flushed;
}

static bool fill(size_t size, unsigned count)
{
	char head[HEAD_MAX];
	char *responses;
	int length = snprintf(head, sizeof(head),
			      "HTTP/1.1 200 OK\r\nServer: null\r\n"
			      "Content-Type: application/octet-stream\r\n"
			      "Content-Length: %zu\r\n\r\n",
			      size);

	prepared.count = count;
	prepared.length = (size_t)length + size;
	responses = malloc(prepared.length * count);
	if (!responses)
		return false;
	for (unsigned i = 0; i < count; i++) {
		memcpy(responses + i * prepared.length, head, (size_t)length);
		memset(responses + i * prepared.length + length, 'a' + (int)(i % 26), size);
	}
	prepared.responses = responses;
	return true;
}

int main(int argc, char **argv)
{
	static const struct null_program program = {.name = "null-tls",
						    .connection = sizeof(struct connection),
						    .fill = fill,
						    .open = open_connection,
						    .close = close_connection,
						    .take = take,
						    .answer = answer};

	return null_main(&program, argc, argv);
}
