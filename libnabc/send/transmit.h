/* SPDX-License-Identifier: MIT */
/*
 * transmit.h - sends ranges of units to a socket, by the method with the fewest
 * copies that the unit's kind, the size and the route allow.
 */
#ifndef NC_TRANSMIT_H
#define NC_TRANSMIT_H

#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/cork.h"
#include "send/method.h"
#include "send/route.h"
#include "send/zerocopy.h"

struct nc_index;
struct nc_message;

#define NC_TRANSMIT_SHARDS 16u
#define NC_TRANSMIT_RESUMES 1024u

struct nc_transmit {
	struct nc_index *index;
	struct nc_routes routes;
	struct nc_zerocopy zerocopy;
	struct nc_corks corks;
	size_t unsent_limit; /* bytes; 0: depends on the route; SIZE_MAX: do not change sockets */
	size_t local_splice; /* size from which pieces that stay on this machine are spliced */
	uint64_t (*cpu_ns)(void); /* the CPU time of the calling thread; tests replace it */
	/* By socket: the decision for a message that was partly sent. */
	_Atomic uint64_t resumes[NC_TRANSMIT_RESUMES];
	struct nc_transmit_counts counts[NC_TRANSMIT_SHARDS];
};

void nc_transmit_init(struct nc_transmit *transmit, struct nc_index *index);
void nc_transmit_fini(struct nc_transmit *transmit);

/* Returns the bytes of the message that the socket took, or -errno if it took none. */
ssize_t nc_transmit_send(struct nc_transmit *transmit, int socket, const struct NC_send *spec);

/* --- for messages that other functions send in steps ------------------------------- */

/*
 * Finds a socket's route if the message is large enough to matter, or a sample of the small
 * ones.  Returns how many messages it represents in the route's counters; 0: not looked for.
 */
unsigned nc_transmit_route(struct nc_transmit *transmit, int socket,
			   const struct nc_message *message, struct nc_route_use *route);

/* Limits the unsent bytes of the socket, for lent pages, if `left` is large enough. */
void nc_transmit_bound(struct nc_transmit *transmit, int socket, size_t left,
		       const struct nc_route_use *route);

/* Before the message's first step: corks the socket if its last segment must wait. */
void nc_transmit_begin(struct nc_transmit *transmit, int socket, const struct nc_message *message);

/*
 * Called when the socket has taken a whole message with those flags; closed: and
 * the FIN, if requested.  Returns 0, or errors of shutdown(2).
 */
int nc_transmit_end(struct nc_transmit *transmit, int socket, unsigned flags, bool closed);

/*
 * Returns the method among the candidates (bits of COPY, SPLICE, ZEROCOPY) that costs the least
 * for a class of pieces, as far as the route has learned; otherwise the one to try first.
 */
enum NC_method nc_transmit_prefers(const struct nc_transmit *transmit,
				   const struct nc_route_use *route, bool lasting, unsigned class,
				   unsigned candidates);

/*
 * Whether the next message of such pieces is sent by that method, and need not be measured: then it
 * may be sent without nc_transmit_send().
 */
bool nc_transmit_settled(const struct nc_route_use *route, bool lasting, unsigned class,
			 enum NC_method method);

/* Returns this CPU's counters. */
struct nc_transmit_counts *nc_transmit_counts(struct nc_transmit *transmit);

/* Releases the units of completed zero-copy sends; returns their number. */
unsigned nc_transmit_reap(struct nc_transmit *transmit);

/* Fills in what is known here. */
void nc_transmit_stat(struct nc_transmit *transmit, struct NC_cache_stat *stat);

/* See NC_routes() and NC_route_set().  Return -errno on failure. */
int nc_transmit_routes(struct nc_transmit *transmit, struct NC_route *routes, unsigned count);
int nc_transmit_route_set(struct nc_transmit *transmit, const char *address, int method);

#endif
