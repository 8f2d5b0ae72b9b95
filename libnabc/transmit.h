/* SPDX-License-Identifier: MIT */
/*
 * transmit.h - ranges of units to a socket, by the method with the fewest
 * copies that the unit's kind, the size and the route allow.
 */
#ifndef NC_TRANSMIT_H
#define NC_TRANSMIT_H

#include "cache.h"
#include "ring.h"
#include "route.h"

struct nc_transmit {
	struct nc_cache *cache;
	struct nc_ring ring;
	struct nc_routes routes;
	pthread_mutex_t lock;	   /* flights */
	struct nc_flight *flights; /* zero-copy sends under way */
};

void nc_transmit_init(struct nc_transmit *transmit, struct nc_cache *cache);
void nc_transmit_fini(struct nc_transmit *transmit);

/* Bytes of the message handed to the socket, or -errno if none were. */
ssize_t nc_transmit_send(struct nc_transmit *transmit, int socket, const struct NC_send *message);

/* Releases the units whose zero-copy sends are over; their number. */
unsigned nc_transmit_reap(struct nc_transmit *transmit);

#endif
