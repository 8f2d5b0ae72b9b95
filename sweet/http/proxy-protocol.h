/* SPDX-License-Identifier: MIT */
/*
 * proxy-protocol.h - the header in which a proxy names the client that it connects
 * for (PROXY protocol, versions 1 and 2, as HAProxy's document defines them).
 */
#ifndef SWEET_PROXY_PROTOCOL_H
#define SWEET_PROXY_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Bytes of the longest accepted header: addresses and about 4 KB of extensions. */
#define PROXY_HEADER_MAX 4328

enum proxy_client {
	PROXY_CLIENT,  /* the addresses are the client's */
	PROXY_ITSELF,  /* LOCAL: the proxy's own connection, a health check */
	PROXY_UNKNOWN, /* a client whose address the proxy does not know */
};

struct proxy_header {
	enum proxy_client client;
	/* With PROXY_CLIENT: AF_INET, AF_INET6 or AF_UNIX (without the path); else AF_UNSPEC. */
	struct sockaddr_storage from; /* the client */
	struct sockaddr_storage to;   /* the address that it connected to */
};

/*
 * Parses the beginning of what a proxy sends; data is everything received so far.
 * Returns the bytes of the header, 0 if it is incomplete, -EINVAL (no header, or
 * malformed) or -EMSGSIZE (too long).  It needs at most PROXY_HEADER_MAX bytes.
 */
ssize_t proxy_header_parse(struct proxy_header *header, const char *data, size_t length);

#endif
