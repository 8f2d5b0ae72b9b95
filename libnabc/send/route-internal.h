/* SPDX-License-Identifier: MIT */
/* route-internal.h - shared by the parts of route.h, for route*.c only. */
#ifndef NC_ROUTE_INTERNAL_H
#define NC_ROUTE_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "send/route.h"

struct sockaddr_storage;

struct nc_route_key {
	unsigned char address[16];
	int family;
	bool local;
};

#define NC_ROUTE_MAPPED 12u /* bytes before an IPv4 address that is mapped to IPv6 */

static inline void nc_route_add(_Atomic uint64_t *counter, uint64_t more)
{
	if (more)
		atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static inline uint64_t nc_route_get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static inline uint32_t nc_route_refusals(uint32_t level)
{
	return NC_ROUTE_SAMPLE << level;
}

/* Converts an address to a key; false: its family has no routes. */
bool nc_route_key_of(const struct sockaddr_storage *from, struct nc_route_key *key);

bool nc_route_same_address(const struct nc_route *route, const struct nc_route_key *key);

/* Returns the entry of the key, creating it if necessary; NULL: all are fixed, or out of memory. */
struct nc_route *nc_routes_enter_locked(struct nc_routes *routes, const struct nc_route_key *key);

/* Finds out what the device of the socket's route offloads, if that is not known. */
void nc_route_ask_device(const struct nc_route_use *use, int socket);

/* Forgets what the route has learned. */
void nc_route_forget_all(struct nc_route *route);

#endif
