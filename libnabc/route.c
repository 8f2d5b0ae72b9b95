/* SPDX-License-Identifier: MIT */
/*
 * route.c - local or remote, and what was learnt of the local address that a
 * socket sends from (which decides the device).  Lock-free.
 */
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>

#include "route.h"

/* An address as 16 bytes, IPv4 mapped into IPv6; false: not an IP address. */
static bool plain(const struct sockaddr_storage *from, unsigned char address[16])
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (from->ss_family == AF_INET) {
		memcpy(address, mapped, sizeof(mapped));
		memcpy(address + 12, &((const struct sockaddr_in *)(const void *)from)->sin_addr,
		       4);
		return true;
	}
	if (from->ss_family == AF_INET6) {
		memcpy(address, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, 16);
		return true;
	}
	return false;
}

bool nc_route_zerocopy(struct nc_routes *routes, int socket, unsigned *route)
{
	struct sockaddr_storage here, there;
	socklen_t here_length = sizeof(here), there_length = sizeof(there);
	unsigned char from[16], to[16];
	uint32_t hash = 2166136261u;

	if (getsockname(socket, (struct sockaddr *)&here, &here_length) < 0 ||
	    getpeername(socket, (struct sockaddr *)&there, &there_length) < 0 ||
	    !plain(&here, from) || !plain(&there, to) || memcmp(from, to, sizeof(from)) == 0)
		return false;
	for (unsigned i = 0; i < sizeof(from); i++)
		hash = (hash ^ from[i]) * 16777619u;
	*route = hash % NC_ROUTES;
	return !atomic_load_explicit(&routes->copies[*route], memory_order_relaxed);
}

void nc_route_copied(struct nc_routes *routes, unsigned route)
{
	atomic_store_explicit(&routes->copies[route % NC_ROUTES], true, memory_order_relaxed);
}
