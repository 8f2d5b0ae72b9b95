/* SPDX-License-Identifier: MIT */
/*
 * transmit.h - ranges of units to a socket, by the method with the fewest
 * copies that the unit's kind, the size and the route allow.
 */
#ifndef NC_TRANSMIT_H
#define NC_TRANSMIT_H

#include "os/cork.h"
#include "send/kernel.h"
#include "send/splice.h"
#include "send/zerocopy.h"

#define NC_TRANSMIT_SHARDS 16u
#define NC_TRANSMIT_RESUMES 1024u

struct nc_transmit {
	struct nc_index *index;
	struct nc_routes routes;
	struct nc_zerocopy zerocopy;
	struct nc_corks corks;
	size_t unsent_limit; /* bytes; 0: as the route wants; SIZE_MAX: sockets stay as they are */
	size_t local_splice; /* bytes from which on pieces that stay on this machine are spliced */
	/* By socket, what was decided for a message of which a part has left. */
	_Atomic uint64_t resumes[NC_TRANSMIT_RESUMES];
	struct nc_transmit_counts counts[NC_TRANSMIT_SHARDS];
};

void nc_transmit_init(struct nc_transmit *transmit, struct nc_index *index);
void nc_transmit_fini(struct nc_transmit *transmit);

/* Bytes of the message handed to the socket, or -errno if none were. */
ssize_t nc_transmit_send(struct nc_transmit *transmit, int socket, const struct NC_send *spec);

/* --- for messages that are sent step by step by others ------------------------ */

/* A socket's route, if the message is large enough to matter: 0; errors of nc_route_find(). */
int nc_transmit_route(struct nc_transmit *transmit, int socket, const struct nc_message *message,
		      struct nc_route_use *route);

/* Bounds what the socket keeps unsent, where pages are lent and so many bytes are left. */
void nc_transmit_bound(struct nc_transmit *transmit, int socket, size_t left,
		       const struct nc_route_use *route);

/* Before the message's first step: corks the socket where its end has to wait. */
void nc_transmit_begin(struct nc_transmit *transmit, int socket, const struct nc_message *message);

/*
 * All of a message with those flags is in the socket's hands; closed: and the
 * end of the stream, where they ask for it.  0; errors of shutdown(2).
 */
int nc_transmit_end(struct nc_transmit *transmit, int socket, unsigned flags, bool closed);

/* This CPU's counters. */
struct nc_transmit_counts *nc_transmit_counts(struct nc_transmit *transmit);

/* Releases the units whose zero-copy sends are over; their number. */
unsigned nc_transmit_reap(struct nc_transmit *transmit);

/* Fills in what is known here. */
void nc_transmit_stat(struct nc_transmit *transmit, struct NC_cache_stat *stat);

/* See NC_routes() and NC_route_set(); -errno. */
int nc_transmit_routes(struct nc_transmit *transmit, struct NC_route *routes, unsigned count);
int nc_transmit_route_set(struct nc_transmit *transmit, const char *address, int method);

#endif
