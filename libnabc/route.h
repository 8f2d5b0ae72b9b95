/* SPDX-License-Identifier: MIT */
/*
 * route.h - whether bytes can leave a socket without a copy.
 *
 * Zero-copy sends to this machine are copied by the kernel, so they cost more
 * than plain ones there.  What it reports per local address is remembered.
 */
#ifndef NC_ROUTE_H
#define NC_ROUTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define NC_ROUTES 64u

struct nc_routes {
	_Atomic bool copies[NC_ROUTES]; /* by hash of the local address */
};

/*
 * Whether a zero-copy send is worth trying on that TCP socket; *route names
 * the route to nc_route_copied().  Two system calls, any thread.
 */
bool nc_route_zerocopy(struct nc_routes *routes, int socket, unsigned *route);

/* The kernel said that it copied on that route. */
void nc_route_copied(struct nc_routes *routes, unsigned route);

#endif
