/* SPDX-License-Identifier: MIT */
/*
 * zerocopy.h - the method that lets the network card read a unit's memory.
 *
 * Every send in flight holds its unit until the kernel's notification.
 */
#ifndef NC_ZEROCOPY_H
#define NC_ZEROCOPY_H

#include "os/ring.h"
#include "send/method.h"

#define NC_ZEROCOPY_MIN (2 * NC_ROUTE_CLASS_MIN) /* bytes that are worth a notification */
#define NC_ZEROCOPY_CLASS_MIN 2u		 /* the same as nc_route_class() */

struct nc_zerocopy {
	struct nc_index *index;
	struct nc_ring ring;
	struct nc_registered registered; /* memory of units that the ring knows */
	pthread_mutex_t lock;		 /* protects flights; taken inside the ring's lock */
	struct nc_flight *flights;	 /* sends in flight */
};

extern const struct nc_method nc_zerocopy_method;

void nc_zerocopy_init(struct nc_zerocopy *zerocopy, struct nc_index *index);
void nc_zerocopy_fini(struct nc_zerocopy *zerocopy);

/* Releases the units of completed sends; returns their number. */
unsigned nc_zerocopy_reap(struct nc_zerocopy *zerocopy);

#endif
