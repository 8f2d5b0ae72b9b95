/* SPDX-License-Identifier: MIT */
/*
 * upstream-table.h - which addresses the places of one pool have: those that the operator has
 * written, forever, and those of names, which come and go.
 *
 * The main thread changes the table; the other threads read it when it notifies them.  A place
 * whose address is gone gets no new requests.  It is free for another address when no thread has a
 * connection of it any more, so a connection never changes the address that it has.
 */
#ifndef SWEET_UPSTREAM_TABLE_H
#define SWEET_UPSTREAM_TABLE_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/balancer.h"
#include "upstream/name-lookup.h"

#define UPSTREAM_FIXED UINT_MAX /* instead of the number of a name */

struct upstream_table_place {
	struct listen_address address;
	unsigned name; /* UPSTREAM_FIXED, or whose address it is */
};

struct upstream_table {
	pthread_mutex_t lock;
	unsigned threads, names, fixed;
	struct upstream_table_place places[BALANCER_MAX];
	uint64_t used;	/* places with a current address, one bit each */
	uint64_t *held; /* for each thread, those with an address that it may still use */
};

/* names: how many of them share the places that are left. */
void upstream_table_init(struct upstream_table *table, unsigned threads, unsigned names);
void upstream_table_clear(struct upstream_table *table);

/* Before threads use the table, and before names have addresses: adds a fixed address. */
void upstream_table_add(struct upstream_table *table, const struct listen_address *address);

struct upstream_table_change {
	uint64_t added, removed; /* places */
	unsigned left_out;	 /* addresses for which there is no place */
};

/*
 * Sets the addresses of a name, each with that port, at least one.  Addresses that it has keep
 * their places.  If none of its addresses gets a place, the ones that it has stay.  Main thread.
 */
struct upstream_table_change upstream_table_set(struct upstream_table *table, unsigned name,
						const struct name_addresses *addresses,
						uint16_t port);

/*
 * For a thread: returns the places in use, and copies the addresses of those that are not in the
 * set known.
 */
uint64_t upstream_table_read(struct upstream_table *table, uint64_t known,
			     struct listen_address addresses[BALANCER_MAX]);

/* A thread has no connection of a place any more whose address was gone. */
void upstream_table_release(struct upstream_table *table, unsigned thread, unsigned place);

#endif
