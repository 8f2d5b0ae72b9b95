/* SPDX-License-Identifier: MIT */
/*
 * method.h - what a transmit method is: a way for pieces of a message to reach
 * a socket.  transmit.c holds the table of them.
 *
 * A method takes or declines each piece; copy, which can send anything, is
 * what remains.
 */
#ifndef NC_METHOD_H
#define NC_METHOD_H

#include "send/message.h"
#include "send/route.h"

struct nc_zerocopy;

/* Why a message, or a piece of it, was copied; see struct NC_cache_stat. */
enum nc_reason {
	NC_SPLICE_SIGPIPE,
	NC_SPLICE_DONTWAIT,
	NC_SPLICE_REFUSED,
	NC_SPLICE_LEARNT,
	NC_ZEROCOPY_MEMORY,
	NC_ZEROCOPY_REFUSED,
	NC_ZEROCOPY_FULL,
	NC_ZEROCOPY_LEARNT,
	NC_KERNEL_REFUSED,
	NC_REASONS
};

/* A CPU's counters of what sending met with. */
struct nc_transmit_counts {
	alignas(64) _Atomic uint64_t reasons[NC_REASONS];
	_Atomic uint64_t kept;			/* zero-copy sends that the kernel did not copy */
	_Atomic uint64_t partial, full, failed; /* calls */
};

/* One call that sends: the message, where to, and what may still be tried. */
struct nc_sending {
	struct nc_message message;
	int socket;
	unsigned char classes[NC_METHODS]; /* by method, of which sizes (nc_route_class()) */
	bool any;			   /* of them is not 0 */
	unsigned char decided[NC_METHODS]; /* the same for the calls that go on with the message */
	/*
	 * A notification to come, of this message or an earlier one, interrupts a
	 * blocking call and sendfile() as a signal does: after a part, the socket
	 * is asked once more whether it is full.
	 */
	bool patient;
	bool sampled; /* this message speaks for others */
	bool alone;   /* the module sends all that is left, and the end of the stream */
	bool closed;  /* the end of the stream went with the last bytes */
	bool pushed;  /* the socket holds nothing back for bytes to come */
	struct nc_route_use route;
	struct nc_route_tally tally;
	struct nc_transmit_counts *counts;
	struct nc_zerocopy *zerocopy;
	struct nc_routes *routes;
};

struct nc_method {
	enum NC_method id;
	const char *name;
	bool headed; /* takes what is left of the header along */
	/* Whether it would send that range of the message; the size is of a class it may have. */
	bool (*takes)(const struct nc_sending *sending, unsigned range);
	/*
	 * Sends from where the message is, up to the end of the range at most.
	 * 1: go on, with another method if this one was dropped; 0: the socket
	 * takes no more now; -errno.
	 */
	int (*send)(struct nc_sending *sending);
};

static inline bool nc_sending_may(const struct nc_sending *sending, enum NC_method method,
				  size_t length)
{
	return sending->classes[method] >> nc_route_class(length) & 1;
}

static inline void nc_sending_count(struct nc_sending *sending, enum nc_reason reason)
{
	atomic_fetch_add_explicit(&sending->counts->reasons[reason], 1, memory_order_relaxed);
}

/* This message tries it no more, and why. */
static inline void nc_sending_drop(struct nc_sending *sending, enum NC_method method,
				   enum nc_reason reason)
{
	sending->classes[method] = 0;
	if (reason != NC_ZEROCOPY_FULL)
		sending->decided[method] = 0;
	nc_sending_count(sending, reason);
}

static inline const struct nc_unit *nc_sending_unit(const struct nc_sending *sending,
						    unsigned range)
{
	return sending->message.views[range].unit;
}

static inline bool nc_sending_gapless(const struct nc_sending *sending, unsigned range)
{
	return nc_layout_gapless(&nc_sending_unit(sending, range)->layout);
}

/*
 * Of so many bytes offered by a method, so many went (0: none yet).  1: go
 * on; 0: only a part, the socket is full.
 */
int nc_sending_moved(struct nc_sending *sending, enum NC_method method, size_t offered,
		     size_t moved);

#endif
