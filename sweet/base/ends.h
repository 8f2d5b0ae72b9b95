/* SPDX-License-Identifier: MIT */
/*
 * ends.h - the two ends of a connection, as logs, access lists and
 * workers want them.
 */
#ifndef SWEET_ENDS_H
#define SWEET_ENDS_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

struct ends {
	/* The client's; AF_UNIX without a path; AF_UNSPEC: a proxy does not know it. */
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} address;
	char remote[INET6_ADDRSTRLEN], local[INET6_ADDRSTRLEN]; /* "192.0.2.1", or "unix:" */
	uint16_t remote_port, local_port;
};

/* NULL: not known, and left as it is. */
void ends_set(struct ends *ends, const struct sockaddr_storage *remote,
	      const struct sockaddr_storage *local);

/*
 * The client is a stranger to the proxy that it came by.  The texts remain
 * the proxy's, but nothing is allowed by its address any more.
 */
void ends_set_unknown(struct ends *ends);

#endif
