/* SPDX-License-Identifier: MIT */
/*
 * method.h - the interface of a transmit method: a way for pieces of a message to
 * reach a socket.  transmit.c has the table of methods.
 *
 * A method takes or declines each piece.  Copy can send anything, so it sends what
 * the others decline.
 */
#ifndef NC_METHOD_H
#define NC_METHOD_H

#include <nabc.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fragment.h"
#include "cache/index.h"
#include "send/message.h"
#include "send/route.h"
#include "store/unit.h"

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

/* A CPU's counters of results of sending. */
struct nc_transmit_counts {
	alignas(64) _Atomic uint64_t reasons[NC_REASONS];
	_Atomic uint64_t kept;			/* zero-copy sends that the kernel did not copy */
	_Atomic uint64_t registered;		/* zero-copy sends from registered memory */
	_Atomic uint64_t partial, full, failed; /* calls */
};

/* One call that sends: the message, the socket, and the methods that may still be tried. */
struct nc_sending {
	struct nc_message message;
	int socket;
	/* by method: bits of the size classes that it may send (nc_route_class()) */
	unsigned char classes[NC_METHODS];
	bool any; /* one of them is not 0 */
	/* the initial classes, for later calls that continue the message */
	unsigned char decided[NC_METHODS];
	/*
	 * A pending notification, of this message or an earlier one, interrupts a
	 * blocking call like a signal: after a short send, try once more to see
	 * whether the socket is full.
	 */
	bool retry_short;
	struct nc_choice *measured; /* learns what this call costs; NULL: nothing does */
	unsigned way;		    /* that was picked from it */
	unsigned class;		    /* of its pieces' sizes */
	/* Of measured zero-copy sends: how many from registered memory, and not though possible. */
	unsigned registered, unregistered;
	bool alone;  /* the module sends all that is left, and the FIN */
	bool closed; /* the FIN was sent with the last bytes */
	bool pushed; /* the socket does not hold back a partial segment */
	struct nc_route_use route;
	struct nc_route_tally tally;
	struct nc_transmit_counts *counts;
	struct nc_zerocopy *zerocopy;
	struct nc_routes *routes;
};

struct nc_method {
	enum NC_method id;
	const char *name;
	bool headed; /* also takes what is left of the header */
	/* Whether it would send that range of the message; the size is in one of its classes. */
	bool (*takes)(const struct nc_sending *sending, unsigned range);
	/*
	 * Sends from the message's position, at most to the end of the range.
	 * Returns 1 to continue (with another method if this one was dropped), 0 if
	 * the socket is full, or -errno.
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

/* Excludes a method for this message, and counts the reason. */
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
 * Accounts for a call of a method: of `offered` bytes, `moved` were sent (0: none
 * yet).  Returns 1 to continue, 0 after a short send: the socket is full.
 */
int nc_sending_moved(struct nc_sending *sending, enum NC_method method, size_t offered,
		     size_t moved);

#endif
