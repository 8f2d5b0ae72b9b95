/* SPDX-License-Identifier: MIT */
/*
 * peer-addresses.h - the addresses of both ends of a connection, for logs, access
 * lists and workers.
 */
#ifndef SWEET_PEER_ADDRESSES_H
#define SWEET_PEER_ADDRESSES_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

struct peer_addresses {
	/* The client's; AF_UNIX without a path; AF_UNSPEC: a proxy does not know the address. */
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} address;
	char remote[INET6_ADDRSTRLEN], local[INET6_ADDRSTRLEN]; /* "192.0.2.1", or "unix:" */
	uint16_t remote_port, local_port;
};

/* NULL: unknown; that address stays as it is. */
void peer_addresses_set(struct peer_addresses *addresses, const struct sockaddr_storage *remote,
			const struct sockaddr_storage *local);

/*
 * Notes that the proxy does not know the client's address.  The texts remain the
 * proxy's, but access rules no longer match its address.
 */
void peer_addresses_set_unknown(struct peer_addresses *addresses);

#endif
