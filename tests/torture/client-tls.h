/* SPDX-License-Identifier: MIT */
/*
 * client-tls.h - the TLS of connections of client.c, by OpenSSL, and what they do with it in the
 * middle of a response: what is permitted, and what a server may end the connection for.
 * Single-threaded.
 */
#ifndef CLIENT_TLS_H
#define CLIENT_TLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <openssl/ssl.h>

struct client_tls {
	SSL *ssl; /* NULL: clear text */
	int fd;
	bool deaf; /* OpenSSL reads no more */
};

/* What follows from an act. */
enum client_tls_act {
	CLIENT_TLS_HONEST, /* all responses must come as before */
	CLIENT_TLS_LAST,   /* so they must, but the client cannot send requests any more */
	CLIENT_TLS_HOSTILE /* the server may end the connection, but sends no wrong byte */
};

/* Call it once, before the others. */
void client_tls_begin(uint64_t seed);

/*
 * Does the handshake on a blocking socket, with any version and cipher, and a session of an earlier
 * connection or none.  Ends the program if it fails.
 */
void client_tls_open(struct client_tls *tls, int fd);

/* Without `polite`, the server gets no close_notify.  The socket stays open. */
void client_tls_close(struct client_tls *tls, bool polite);

/* As send() and recv(), where clear text is sent and received, too.  client_tls_recv() fails with
 * EPROTO after an alert, EBADMSG after what is no record, ECONNRESET at an end without close_notify.
 */
ssize_t client_tls_send(struct client_tls *tls, const void *data, size_t length);
ssize_t client_tls_recv(struct client_tls *tls, void *data, size_t size);

/* Whether there are received bytes of which the socket knows no more. */
bool client_tls_pending(const struct client_tls *tls);

/* Does something that is permitted, or any other thing. */
enum client_tls_act client_tls_act(struct client_tls *tls, bool hostile);

/* Prints how often each was done. */
void client_tls_report(void);

#endif
