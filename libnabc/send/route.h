/* SPDX-License-Identifier: MIT */
/*
 * route.h - what was learnt of the ways out of this machine, and what an
 * operator has fixed.
 *
 * A route is a local address, which decides the device, and whether the peer
 * has the same one, so that nothing leaves the machine; all Unix sockets are
 * one.  For each there is
 *
 *   copied   whether zero-copy sends are copied by the kernel after all;
 *   taken    for each class of sizes, whether the socket takes enough at a
 *            time for a fast method to be worth its cost.
 *
 * What did badly is left out for a number of sends that doubles each time,
 * then tried once: routes change.  Time plays no part.
 *
 * Sending looks a route up without a lock, by the socket's cookie (which,
 * unlike its number, is never used again), and writes only to lines of its
 * own CPU, or once in several sends.  The lock is taken for a socket's first
 * large message and by whoever reads or fixes the table.
 */
#ifndef NC_ROUTE_H
#define NC_ROUTE_H

#include <assert.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <nabc.h>

#define NC_ROUTES 64u
#define NC_ROUTE_MEMOS 1024u
#define NC_ROUTE_SHARDS 16u
#define NC_METHODS 4u

/*
 * Classes of sizes: 0 below 32 KiB, which no fast method is worth; then
 * doubling; the last without end.
 */
#define NC_ROUTE_CLASSES 6u
#define NC_ROUTE_CLASS_MIN ((size_t)32 << 10)
#define NC_ROUTE_ALL_CLASSES ((1u << NC_ROUTE_CLASSES) - 1)

/* Whether to do something: yes, or after a number of refusals once again. */
struct nc_trial {
	_Atomic uint32_t level; /* 0: yes; else refusals are 8 << level */
	_Atomic uint32_t since; /* refusals so far */
	_Atomic uint32_t calls; /* in the present window, */
	_Atomic uint64_t bytes; /* and what they moved */
};

/* Counters, a shard for a CPU or so. */
struct nc_route_counts {
	alignas(64) _Atomic uint64_t sends[NC_METHODS];
	_Atomic uint64_t bytes[NC_METHODS];
	_Atomic uint64_t partial;
};

struct nc_route {
	unsigned char address[16]; /* IPv4 mapped into IPv6; Unix: zero */
	int family;		   /* AF_UNSPEC: an empty entry */
	bool local;
	uint64_t mark;		 /* of its sends: those that count as use no more */
	_Atomic unsigned number; /* of the entry's occupant: 1, 2, ... */
	_Atomic int fixed;	 /* NC_METHOD_* or NC_ROUTE_LEARN */
	_Atomic uint64_t kept, copied_count;
	struct nc_trial copied;
	struct nc_trial taken[NC_METHODS][NC_ROUTE_CLASSES];
	struct nc_route_counts *counts; /* shards */
};

struct nc_routes {
	pthread_mutex_t lock;
	struct nc_route table[NC_ROUTES];
	unsigned replaced;	/* entries, ever */
	int fixed;		/* for routes to come */
	_Atomic bool any_fixed; /* so that small messages have to ask as well */
	_Atomic uint64_t memos[NC_ROUTE_MEMOS];
};

/* A socket's route, as one message sees it. */
struct nc_route_use {
	struct nc_route *route; /* NULL: not connected, or no memory for one */
	unsigned number;
	uint64_t cookie;
	bool local;
	bool unbounded; /* TCP, and nc_route_bounded() has not been called for it */
	bool strange;	/* nc_route_estranged() has been called for it */
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
 * The route of a socket.  0, also when it has none; -EBADF, -ENOTSOCK.  One
 * system call, three for a socket that is new here.
 */
int nc_route_find(struct nc_routes *routes, int socket, struct nc_route_use *use);

/*
 * A route as NC_ROUTE_NOTE_BITS bits, for a message that goes on later, and
 * back.  False: there was none, or its entry is another route's by now.
 */
#define NC_ROUTE_NOTE_BITS 16u
uint32_t nc_route_note(const struct nc_routes *routes, const struct nc_route_use *use);
bool nc_route_noted(struct nc_routes *routes, uint32_t note, struct nc_route_use *use);

/* Remembers that the unsent bytes of that socket were looked after. */
void nc_route_bounded(struct nc_routes *routes, const struct nc_route_use *use);

/* Remembers that the kernel module does not send to that socket. */
void nc_route_estranged(struct nc_routes *routes, struct nc_route_use *use);

static inline unsigned nc_route_class(size_t length)
{
	unsigned class = 0;

	for (size_t least = NC_ROUTE_CLASS_MIN; length >= least && class < NC_ROUTE_CLASSES - 1;
	     least <<= 1)
		class ++;
	return class;
}

static inline int nc_route_fixed(const struct nc_route_use *use)
{
	return use->route ? atomic_load_explicit(&use->route->fixed, memory_order_relaxed)
			  : NC_ROUTE_LEARN;
}

/*
 * Whether pieces of a class should be tried by a method.  sampled: this
 * message stands for NC_ROUTE_SAMPLE ones, so that it may count.
 */
#define NC_ROUTE_SAMPLE 8u
bool nc_route_tries(const struct nc_route_use *use, enum NC_method method, unsigned class,
		    bool sampled);

/* Whether a send without a copy should be tried at all. */
bool nc_route_tries_zerocopy(const struct nc_route_use *use, bool sampled);

/* A sampled piece: of what was offered to a method, so much was taken. */
void nc_route_took(const struct nc_route_use *use, enum NC_method method, size_t offered,
		   size_t taken);

/*
 * A notification; level is nc_route_level() at the time of the send, so that
 * a burst of bad news counts once.
 */
uint32_t nc_route_level(const struct nc_route_use *use);
void nc_route_notified(const struct nc_route_use *use, uint32_t level, bool copied);

/* The kernel refused to send without a copy at all. */
void nc_route_refused(const struct nc_route_use *use, uint32_t level);

/* Enters a message; weight: of how many it is the sample. */
void nc_route_count(const struct nc_route_use *use, const struct nc_route_tally *tally,
		    unsigned weight);

/*
 * Writes at most count routes; returns how many there are.  zerocopy: whether
 * this process could send without a copy.
 */
unsigned nc_routes_tell(struct nc_routes *routes, struct NC_route *list, unsigned count,
			bool zerocopy);

/*
 * Fixes the method of an address ("*": all), or lets it learn again and
 * forgets what it knew.  0; -EINVAL: no address; -ENOSPC: every entry is fixed.
 */
int nc_routes_fix(struct nc_routes *routes, const char *address, int method);

#endif
