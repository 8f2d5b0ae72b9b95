/* SPDX-License-Identifier: MIT */
/*
 * ring-buffers.h - memory of units that is registered with a ring of the program's, and the
 * steps of operations that send from it.
 *
 * The kernel lets one thread at most use some rings (IORING_SETUP_SINGLE_ISSUER), so the
 * thread that opens the buffers owns them.  A header is not in registered memory: a step of
 * header and body is two linked submissions, a send and a zero-copy send.
 */
#ifndef NC_RING_BUFFERS_H
#define NC_RING_BUFFERS_H

struct NC_send_op;
struct io_uring;
struct nc_send_ops;
struct nc_transmit;

struct NC_ring_buffers {
	struct nc_send_ops *all;
	struct nc_zerocopy *zerocopy;
	struct nc_registered *table;
};

/*
 * stale: see nc_registered_own(); may be NULL.  Returns 0, -EOPNOTSUPP (the cache sends nothing
 * without a copy), or -ENOMEM.
 */
int nc_ring_buffers_open(struct nc_send_ops *all, struct nc_transmit *transmit,
			 struct io_uring *ring, void (*stale)(void *data), void *data,
			 struct NC_ring_buffers **buffers);

/* Returns 0, or -EBUSY: a step that uses them has not completed. */
int nc_ring_buffers_close(struct NC_ring_buffers *buffers);

/*
 * Selects what the next step of the operation sends from.  Returns how many submissions it
 * takes: 2, header and body from registered memory; or 1.  -EINVAL: a step is in flight, there
 * is none, or the operation is of another cache.
 */
int nc_send_op_steps(struct NC_send_op *op, struct NC_ring_buffers *buffers);

#endif
