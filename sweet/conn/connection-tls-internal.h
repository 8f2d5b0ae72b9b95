/* SPDX-License-Identifier: MIT */
/*
 * connection-tls-internal.h - the TLS of a connection; private to connection-tls.c and
 * connection-cipher.c, to who frees it, and to who describes it for a request.
 */
#ifndef SWEET_CONNECTION_TLS_INTERNAL_H
#define SWEET_CONNECTION_TLS_INTERNAL_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "event/loop.h"
#include "tls/tls.h"

struct connection_tls {
	struct tls_chooser chooser;
	struct loop_cipher cipher;
	struct connection *connection;
	/* NULL: the ClientHello has not come as a whole. */
	struct tls_channel *channel;
	uint64_t policy;	  /* of the identity, when the handshake is over */
	struct list_node waiting; /* in the thread's list of handshakes */
	bool begun;		  /* the first byte has come */
	bool over;		  /* the handshake is */
	bool kernel;		  /* the kernel encrypts */
	bool failed;		  /* what the client sent could not be understood */
	bool said_end;		  /* the message that nothing follows was sent */
	uint64_t sent_ms;	  /* when bytes were last sent */
	uint64_t warm;		  /* bytes sent since a pause */
};

/* Sends the output of the channel; returns 1: all, 0: the socket is full, or -errno. */
int connection_tls_flush(struct connection_tls *tls);

/* Call it before connection_cipher(). */
void connection_tls_set_cipher(struct connection_tls *tls);

#endif
