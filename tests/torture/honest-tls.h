/* SPDX-License-Identifier: MIT */
/*
 * honest-tls.h - the TLS of honest clients, on non-blocking sockets.  Without an SSL, the functions
 * send and receive clear text.  Single-threaded.
 */
#ifndef HONEST_TLS_H
#define HONEST_TLS_H

#include <sys/types.h>

#include <openssl/ssl.h>

/* Call it once, before the others.  Ends the program if the authority cannot be read. */
void tls_begin(const char *authority);

/* Returns NULL without memory; free it with tls_leave(). */
SSL *tls_enter(int fd);

/* Announces the end. */
void tls_leave(SSL *ssl);

/* Returns 1 when the handshake is over, 0 if it waits for the server, -1 with an errno. */
int tls_shake(SSL *ssl);

/* As send() and recv() with MSG_DONTWAIT; tls_recv() receives all that is there. */
ssize_t tls_send(SSL *ssl, int fd, const void *data, size_t length);
ssize_t tls_recv(SSL *ssl, int fd, void *data, size_t size);

#endif
