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

#define NC_ZEROCOPY_CLASS_MIN 3u /* from which it is tried first: 64 KiB */

/* Bytes: a smaller rest of a message is not worth a notification. */
#define NC_ZEROCOPY_REST ((size_t)32 << 10)

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
