/* SPDX-License-Identifier: MIT */
/*
 * route.h - what was learned about the routes out of this machine, and what an
 * operator has fixed.
 *
 * A route is a local address, which determines the network device, and whether the
 * peer has the same address, so that nothing leaves the machine.  All Unix sockets
 * are one route.  Each route knows
 *
 *   copied   whether the kernel copies zero-copy sends after all.  Then these are
 *            skipped for a number of sends that doubles each time, and tried once:
 *            routes change.  Time plays no part;
 *   reads    whether the kernel must read each byte that it sends, because the device
 *            computes no checksums or does not gather pages.  Then all is copied: what
 *            calls cost would not say, since the reading is done when acknowledgements
 *            arrive.  Asked with sockets that are new here, until one of them says;
 *   choices  for each class of sizes and kind of memory, which method costs the
 *            least CPU time for each byte (choice.h; within this machine: epoch.h).
 *
 * Sending looks a route up without a lock, by the socket's cookie (which, unlike
 * its number, is never reused).  It writes only to cache lines of its own CPU, or
 * once in several sends.  The lock is taken for the first large message of a
 * socket, and to read or fix the table.
 */
#ifndef NC_ROUTE_H
#define NC_ROUTE_H

#include <assert.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nabc.h>

#include "send/choice.h"

#define NC_ROUTES 64u
#define NC_ROUTE_MEMOS 1024u
#define NC_ROUTE_SHARDS 16u
#define NC_METHODS 4u

/*
 * Classes of sizes: 0 is below 16 KiB, which is always copied, since finding out would cost
 * more than another method can save; each next class is twice as large; the last one has no
 * upper limit.
 */
#define NC_ROUTE_CLASSES 7u
#define NC_ROUTE_CLASS_MIN ((size_t)16 << 10)
#define NC_ROUTE_ALL_CLASSES ((1u << NC_ROUTE_CLASSES) - 1)

/* Whether to do something: yes, or once after a number of refusals. */
struct nc_trial {
	_Atomic uint32_t level; /* 0: yes; otherwise after 8 << level refusals */
	_Atomic uint32_t since; /* refusals so far */
	_Atomic uint32_t run;	/* at level 0: failures since the last success */
};

/* What is known about the device of a route. */
enum nc_route_device { NC_ROUTE_UNKNOWN, NC_ROUTE_OFFLOADS, NC_ROUTE_READS };

/* What a route has learned to choose, by class. */
struct nc_route_choices {
	/* The ways are NC_METHOD_COPY, _SPLICE, _ZEROCOPY: of memory that is written again; */
	struct nc_choice recycled[NC_ROUTE_CLASSES];
	struct nc_choice lasting[NC_ROUTE_CLASSES]; /* and of other memory */
	/* For zero-copy sends: 0: memory as it is, 1: as registered with the ring. */
	struct nc_choice registered[NC_ROUTE_CLASSES];
};

/* Counters, about one shard per CPU. */
struct nc_route_counts {
	alignas(64) _Atomic uint64_t sends[NC_METHODS];
	_Atomic uint64_t bytes[NC_METHODS];
	_Atomic uint64_t partial;
};

struct nc_route {
	unsigned char address[16]; /* IPv4 mapped to IPv6; Unix: zero */
	int family;		   /* AF_UNSPEC: an empty entry */
	bool local;
	uint64_t mark;		 /* number of its sends that no longer count as use */
	_Atomic unsigned number; /* of the route in this entry: 1, 2, ... */
	_Atomic int fixed;	 /* NC_METHOD_* or NC_ROUTE_LEARN */
	_Atomic uint64_t kept, copied_count;
	_Atomic unsigned char device; /* enum nc_route_device */
	struct nc_trial copied;
	struct nc_route_choices *choices;
	struct nc_route_counts *counts; /* array of shards */
};

struct nc_routes {
	pthread_mutex_t lock;
	struct nc_route table[NC_ROUTES];
	unsigned replaced;	/* entries replaced so far */
	int fixed;		/* method for new routes */
	_Atomic bool any_fixed; /* small messages must look their route up, too */
	bool sums;		/* find out which sockets have large segments */
	_Atomic uint64_t memos[NC_ROUTE_MEMOS];
};

/* A socket's route, as used by one message. */
struct nc_route_use {
	struct nc_route *route; /* NULL: not connected, or out of memory */
	unsigned number;
	uint64_t cookie;
	bool local;
	bool unbounded;	     /* TCP, and its unsent bytes are not limited: nc_route_bounded() */
	bool kernel_refused; /* nc_route_kernel_refused() was called for it */
	/* Its segments are so large that looking checksums up costs less than computing them. */
	bool large;
};

/* What one message did. */
struct nc_route_tally {
	uint32_t sends[NC_METHODS];
	uint64_t bytes[NC_METHODS];
	uint32_t partial;
};

void nc_routes_init(struct nc_routes *routes);
void nc_routes_fini(struct nc_routes *routes);

/*
 * Finds the route of a socket.  cookie: see struct NC_send; may be NULL.  Returns 0, also if it
 * has none, -EBADF or -ENOTSOCK.  Makes one system call, none with a cookie, and two more for a
 * socket that is new here, and ten if its route is.
 */
int nc_route_find(struct nc_routes *routes, int socket, uint64_t *cookie, struct nc_route_use *use);

/*
 * Convert a route to NC_ROUTE_NOTE_BITS bits, for a message that continues later,
 * and back.  False: there was none, or its entry now belongs to another route.
 */
#define NC_ROUTE_NOTE_BITS 16u
uint32_t nc_route_note(const struct nc_routes *routes, const struct nc_route_use *use);
bool nc_route_noted(struct nc_routes *routes, uint32_t note, struct nc_route_use *use);

/* Remembers whether the limit of unsent bytes is set for that socket. */
void nc_route_bounded(struct nc_routes *routes, const struct nc_route_use *use, bool bounded);

/* Remembers that the kernel module does not send to that socket. */
void nc_route_kernel_refused(struct nc_routes *routes, struct nc_route_use *use);

static inline unsigned nc_route_class(size_t length)
{
	unsigned class = 0;

	for (size_t least = NC_ROUTE_CLASS_MIN; length >= least && class < NC_ROUTE_CLASSES - 1;
	     least <<= 1)
		class ++;
	return class;
}

/* Whether the kernel must read each byte that it sends on the route. */
static inline bool nc_route_reads(const struct nc_route *route)
{
	return route &&
	       atomic_load_explicit(&route->device, memory_order_relaxed) == NC_ROUTE_READS;
}

static inline int nc_route_fixed(const struct nc_route_use *use)
{
	return use->route ? atomic_load_explicit(&use->route->fixed, memory_order_relaxed)
			  : NC_ROUTE_LEARN;
}

/* Returns what is known about pieces of a class; NULL: there is no route. */
static inline struct nc_choice *nc_route_choice(const struct nc_route_use *use, bool lasting,
						unsigned class)
{
	if (!use->route)
		return NULL;
	return lasting ? &use->route->choices->lasting[class]
		       : &use->route->choices->recycled[class];
}

static inline struct nc_choice *nc_route_registered(const struct nc_route_use *use, unsigned class)
{
	return use->route ? &use->route->choices->registered[class] : NULL;
}

/*
 * Whether zero-copy may be tried.  sampled: this message represents NC_ROUTE_SAMPLE messages, so
 * it counts.
 */
#define NC_ROUTE_SAMPLE 8u
bool nc_route_tries_zerocopy(const struct nc_route_use *use, bool sampled);

/*
 * Reports a notification; level is nc_route_level() at the time of the send, so
 * that a burst of copied sends counts once.  Since Linux 6.10, a send whose bytes all joined an
 * earlier one's is reported as copied, too: while other sends are kept, that means nothing.
 */
uint32_t nc_route_level(const struct nc_route_use *use);
void nc_route_notified(const struct nc_route_use *use, uint32_t level, bool copied);

/* Reports that the kernel refused to send without a copy. */
void nc_route_refused(const struct nc_route_use *use, uint32_t level);

/* Adds a message to the counters; weight: how many messages it represents. */
void nc_route_count(const struct nc_route_use *use, const struct nc_route_tally *tally,
		    unsigned weight);

/*
 * Stores at most count routes; returns how many there are.  zerocopy: whether this
 * process can send without a copy.
 */
unsigned nc_routes_list(struct nc_routes *routes, struct NC_route *list, unsigned count,
			bool zerocopy);

/*
 * Fixes the method of an address ("*": all), or lets it learn again and forgets
 * what it learned.  Returns 0, -EINVAL (no address), or -ENOSPC (every entry is
 * fixed).
 */
int nc_routes_fix(struct nc_routes *routes, const char *address, int method);

#endif
