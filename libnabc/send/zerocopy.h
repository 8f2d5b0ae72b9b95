/* SPDX-License-Identifier: MIT */
/*
 * zerocopy.h - the method that lets the network card read a unit's memory.
 *
 * Every send in flight holds its unit until the kernel's notification.
 */
#ifndef NC_ZEROCOPY_H
#define NC_ZEROCOPY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/registered.h"
#include "os/ring.h"
#include "send/method.h"

struct io_uring;
struct nc_index;
struct nc_route_use;

#define NC_ZEROCOPY_CLASS_MIN 3u /* from which it is tried first: 64 KiB */

/* Bytes: a smaller rest of a message is not worth a notification. */
#define NC_ZEROCOPY_REST ((size_t)32 << 10)

/*
 * Bytes: a shorter body is sent together with its header from memory as it is, since the two
 * submissions cost more than the pages.  Through a card with Linux 6.12, small pages, registered
 * and not, instructions for a message: 64 KiB 50,100 and 49,200, 100 KiB 55,700 and 56,200,
 * 256 KiB 83,700 and 97,000, 1 MiB 206,000 and 281,900.
 */
#define NC_RING_BUFFERS_MIN ((size_t)96 << 10)

struct nc_zerocopy {
	struct nc_index *index;
	struct nc_ring ring;
	struct nc_registered *registered; /* memory of units that the ring knows; NULL: none */
	struct nc_registered_budget budget;
	/* Protects the rest; taken inside the ring's lock, not inside those of tables. */
	pthread_mutex_t lock;
	struct nc_flight *flights;	    /* sends in flight */
	struct nc_registered *tables;	    /* the one above, and those of the program's rings */
	struct nc_registered_counts closed; /* of tables that were closed */
};

extern const struct nc_method nc_zerocopy_method;

void nc_zerocopy_init(struct nc_zerocopy *zerocopy, struct nc_index *index);
void nc_zerocopy_fini(struct nc_zerocopy *zerocopy);

/* Whether memory is registered at all. */
bool nc_zerocopy_registers(const struct nc_zerocopy *zerocopy);

/* Opens a table of registered buffers for a ring; NULL: there is no memory. */
struct nc_registered *nc_zerocopy_open_table(struct nc_zerocopy *zerocopy, struct io_uring *ring);
void nc_zerocopy_close_table(struct nc_zerocopy *zerocopy, struct nc_registered *table);

/* Adds up the counts of all tables. */
struct nc_registered_counts nc_zerocopy_registered(struct nc_zerocopy *zerocopy);

/* Whether sends of that length from registered memory cost no more, as far as is known. */
bool nc_zerocopy_prefers_registered(const struct nc_route_use *route, size_t length);

/*
 * The kernel refused a send with an error that may concern this method only: reports a limit that
 * is too small, and counts the refusal of the route.  Returns the reason to count.
 */
enum nc_reason nc_zerocopy_refused(struct nc_zerocopy *zerocopy, const struct nc_route_use *route,
				   uint32_t level, int error);

/* Releases the units of completed sends; returns their number. */
unsigned nc_zerocopy_reap(struct nc_zerocopy *zerocopy);

#endif
