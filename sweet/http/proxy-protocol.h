/* SPDX-License-Identifier: MIT */
/*
 * proxy-protocol.h - the header by which a proxy tells whom it speaks for
 * (PROXY protocol, versions 1 and 2, as HAProxy's document defines them).
 */
#ifndef SWEET_PROXY_PROTOCOL_H
#define SWEET_PROXY_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Bytes of the longest header that is taken: addresses and some 4K of extensions. */
#define PROXY_HEADER_MAX 4328

enum proxy_client {
	PROXY_CLIENT,  /* the addresses are the client's */
	PROXY_ITSELF,  /* LOCAL: the proxy's own connection, a health check */
	PROXY_UNKNOWN, /* a client that the proxy knows no address of */
};

struct proxy_header {
	enum proxy_client client;
	/* Of PROXY_CLIENT: AF_INET, AF_INET6 or AF_UNIX (without the path); else AF_UNSPEC. */
	struct sockaddr_storage from; /* the client */
	struct sockaddr_storage to;   /* what it connected to */
};

/*
 * Looks at the beginning of what a proxy sends; the bytes are all there have
 * been so far, from the first on.  Returns how many of them are the header, 0
 * when more are needed to tell, or -EINVAL (it is none, or malformed) or
 * -EMSGSIZE (too long).  Never more than PROXY_HEADER_MAX bytes are needed.
 */
ssize_t proxy_header_parse(struct proxy_header *header, const char *data, size_t length);

#endif
