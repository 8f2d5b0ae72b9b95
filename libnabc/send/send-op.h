/* SPDX-License-Identifier: MIT */
/*
 * op.h - one message that is sent in steps which complete later.
 *
 * It keeps a copy of the message and holds its units from open to close.  A
 * step is one submission on somebody's io_uring: a send, or, where units lie in
 * the kernel module, which io_uring cannot ask, a look whether the socket takes
 * bytes; then they go when that completes, without blocking.  What is linked to
 * such a step would go before them, so it is for those who link nothing.  With a zero-copy send the
 * operation is not over before the kernel's notification (invariant 1).
 * Not locked: its user's business.
 */
#ifndef NC_SEND_OP_H
#define NC_SEND_OP_H

#include <liburing.h>

#include <nabc-async.h>

#include "send/transmit.h"

/* What a cache knows of its operations. */
struct nc_send_ops {
	_Atomic unsigned open;			/* and senders: the cache cannot be closed */
	_Atomic(struct NC_send_op *) abandoned; /* kept for as long as the cache */
};

struct NC_send_op {
	struct nc_send_ops *all;
	struct nc_transmit *transmit;
	struct nc_message message;
	struct NC_send spec; /* the copy */
	int socket;
	bool fixed;		/* socket is an index */
	bool in_flight;		/* submitted, or to be; its completion is to come */
	bool over;		/* all is sent */
	bool zerocopy;		/* to be tried */
	bool kernel;		/* the module may send what lies there */
	bool by_kernel;		/* does so when the step under way completes */
	bool as_zerocopy;	/* the step under way */
	unsigned notifications; /* to come */
	struct nc_route_use route;
	uint32_t level;	 /* of the route's trust when the last step began */
	unsigned failed; /* notifications to come of steps that sent nothing */
	int error;	 /* -errno that ended it */
	size_t planned;
	struct msghdr header;
	/* The library ring's: */
	struct NC_send_op *next;
	void *data;
	bool direct;	/* by nc_transmit_send() when the socket is writable */
	bool splice;	/* which may move pages: the socket does not block */
	bool cancelled; /* goes no further */
	struct iovec *iov;
};

/* 0; errors of the message: see nc_transmit_send(). */
int nc_send_op_open(struct nc_send_ops *all, struct nc_transmit *transmit, int socket,
		    const struct NC_send *spec, unsigned flags, struct NC_send_op **op);

/* Whether it is one that zero-copy sends are for, wherever they do well. */
bool nc_send_op_may_zerocopy(const struct NC_send_op *op);

/* Lets its steps be sent without a copy if that does well on the route. */
void nc_send_op_consider_zerocopy(struct NC_send_op *op);

/* 0; -EINVAL: a submission is under way, or it is over. */
int nc_send_op_prep(struct NC_send_op *op, struct io_uring_sqe *sqe);

/*
 * A completion's res and flags came.  enum NC_progress; -errno: it failed and
 * is over; -EINVAL also if that cannot be a completion of it: nothing changed.
 */
int nc_send_op_complete(struct NC_send_op *op, int32_t result, uint32_t flags);

/* Whether completions are to come. */
bool nc_send_op_busy(const struct NC_send_op *op);

/* Gives the units back; what remains is the structure. */
void nc_send_op_release(struct NC_send_op *op);

/* For one that is not busy. */
void nc_send_op_free(struct NC_send_op *op);

/*
 * The completions are lost, so nobody knows when the kernel has finished: what
 * could be written again is kept until the cache is closed (invariant 1).
 */
void nc_send_op_abandon(struct NC_send_op *op);

/* The cache is about to end. */
void nc_send_ops_fini(struct nc_send_ops *all);

#endif
