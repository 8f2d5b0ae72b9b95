/* SPDX-License-Identifier: MIT */
/*
 * send-op.h - an operation that sends one message in steps, each of which completes later.
 *
 * It has a copy of the message, and holds its units until it is over.  Of a small message it copies
 * the units' bytes as well, and needs no holds.
 *
 * A step is one submission on the caller's io_uring.  For units in ordinary memory it is a send.
 * io_uring cannot call the kernel module, so for units that only the module has, the step is a poll:
 * when the socket is writable, the module sends without blocking.  What is linked to a poll would run
 * before the bytes are sent: for callers that link, the module is not used.
 *
 * After a zero-copy send the operation is over when the kernel's notification has come (invariant 1).
 * It has no lock: the caller serialises its use.
 */
#ifndef NC_SEND_OP_H
#define NC_SEND_OP_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <nabc-async.h>
#include <nabc.h>

#include "os/registered.h"
#include "send/message.h"
#include "send/route.h"

struct io_uring_sqe;
struct nc_transmit;

/* The operations of a cache. */
struct nc_send_ops {
	/* operations and senders: the cache cannot be closed */
	_Atomic unsigned open;
	_Atomic(struct NC_send_op *) abandoned; /* kept as long as the cache */
};

struct NC_send_op {
	struct nc_send_ops *all;
	struct nc_transmit *transmit;
	struct nc_message message;
	struct NC_send spec; /* the copy */
	int socket;
	bool fixed;	  /* socket is an index */
	bool in_flight;	  /* submitted, or about to be; its completion is pending */
	bool over;	  /* all is sent */
	bool zerocopy;	  /* may be tried */
	bool kernel;	  /* the module may send its units */
	bool by_kernel;	  /* the module sends when the step in flight completes */
	bool gathered;	  /* the header is followed by a copy of all that comes behind it */
	bool as_zerocopy; /* the step in flight is a zero-copy send */
	/* Registered memory, all of one table: of the step that is selected or was the last one. */
	struct nc_registered_use use;
	bool uses_registered; /* the step that is selected or in flight sends it */
	unsigned held[2];     /* by period: what the kernel may still need, that included */
	/* A step may be two submissions: the header, and the body in registered memory. */
	bool body_unprepared; /* the header's is prepared, the body's is not yet */
	bool linked;	      /* the completion of the header comes first */
	bool header_short;    /* sent in part or not at all, so the kernel has cancelled the body */
	int32_t head_result;  /* of the header that is short */
	unsigned notifications; /* pending */
	struct nc_route_use route;
	unsigned weight; /* how many messages it represents in the route's counters */
	uint32_t level;	 /* nc_route_level() when the last step began */
	unsigned failed; /* pending notifications of steps that sent nothing */
	int error;	 /* -errno that ended it */
	size_t planned;
	struct msghdr header;
	/* Used by the library's sender: */
	struct NC_send_op *next;
	void *data;
	bool by_transmit; /* nc_transmit_send() sends it when the socket is writable */
	bool splice;	  /* which may splice: the socket does not block */
	bool cancelled;	  /* sends no more */
	struct iovec *iov;
	unsigned iovecs;
	/* For iovecs, views, ranges, texts and bytes: behind the structure, or allocated apart. */
	void *memory;
	size_t room; /* its bytes */
};

/*
 * holds: nc_transmit_send() may send the message instead, for which a small one needs its units,
 * too.  Returns 0, or errors of the message: see nc_transmit_send().
 */
int nc_send_op_open(struct nc_send_ops *all, struct nc_transmit *transmit, int socket,
		    const struct NC_send *spec, unsigned flags, bool holds, struct NC_send_op **op);

/*
 * Opens the next message in the memory of an operation that is not busy.  Returns 0, -EBUSY, or
 * errors of nc_send_op_open(): then there is no message, and it can be opened again.
 */
int nc_send_op_reopen(struct NC_send_op *op, int socket, const struct NC_send *spec,
		      unsigned flags);

/* Whether zero-copy sends suit the message, on routes where they do well. */
bool nc_send_op_may_zerocopy(const struct NC_send_op *op);

/* Lets its steps be sent without a copy if that does well on the route. */
void nc_send_op_consider_zerocopy(struct NC_send_op *op);

/* Returns 0, or -EINVAL (a submission is in flight, or the operation is over). */
int nc_send_op_prep(struct NC_send_op *op, struct io_uring_sqe *sqe);

/*
 * Handles a completion's res and flags.  Returns enum NC_progress, or -errno if it
 * failed and is over; -EINVAL also if the completion cannot belong to it: nothing
 * changed.
 */
int nc_send_op_complete(struct NC_send_op *op, int32_t result, uint32_t flags);

/* Whether completions are pending. */
bool nc_send_op_busy(const struct NC_send_op *op);

/* Gives back registered memory that was selected for a step, which is not prepared. */
void nc_send_op_unselect(struct NC_send_op *op);

/* Gives back all registered memory. */
void nc_send_op_drop_registered(struct NC_send_op *op);

/* Releases the units; the structure remains. */
void nc_send_op_release(struct NC_send_op *op);

/* Frees an operation that is not busy. */
void nc_send_op_free(struct NC_send_op *op);

/*
 * For lost completions: it is unknown when the kernel has finished, so memory that
 * could be written again is kept until the cache is closed (invariant 1).
 */
void nc_send_op_abandon(struct NC_send_op *op);

/* Frees abandoned operations when the cache ends. */
void nc_send_ops_fini(struct nc_send_ops *all);

#endif
