/* SPDX-License-Identifier: MIT */
/*
 * fault-ring.c - calls of liburing, and submissions to a ring: a submission that must
 * fail becomes a no-op with that result.
 */
#include "fault-internal.h"
#include "fault.h"

#include <errno.h>
#include <liburing.h>
#include <linux/types.h>
#include <signal.h>
#include <stdbool.h>

/* liburing 2.3 does not define it; Linux 6.13 and later support it. */
#define NOP_INJECT_RESULT 0x1u

static bool ring_injects; /* whether a no-op accepts a given result */

void fault_probe_ring(void)
{
	struct io_uring ring;
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;

	if (io_uring_queue_init(1, &ring, 0) < 0)
		return;
	sqe = io_uring_get_sqe(&ring);
	if (sqe) {
		io_uring_prep_nop(sqe);
		sqe->rw_flags = NOP_INJECT_RESULT;
		sqe->len = (unsigned)-EXDEV;
		if (io_uring_submit_and_wait(&ring, 1) == 1 && io_uring_peek_cqe(&ring, &cqe) == 0)
			ring_injects = cqe->res == -EXDEV;
	}
	io_uring_queue_exit(&ring);
}

/* Returns the kind of a submission; FAULT_KIND_COUNT: one that never fails. */
static enum fault_kind kind_of(const struct io_uring_sqe *sqe)
{
	switch (sqe->opcode) {
	case IORING_OP_ACCEPT:
		return FAULT_sqe_accept;
	case IORING_OP_RECV:
	case IORING_OP_RECVMSG:
		return FAULT_sqe_recv;
	case IORING_OP_SEND:
	case IORING_OP_SENDMSG:
	case IORING_OP_SEND_ZC:
	case IORING_OP_SENDMSG_ZC:
		return FAULT_sqe_send;
	case IORING_OP_POLL_ADD:
		return FAULT_sqe_poll;
	default:
		return FAULT_KIND_COUNT;
	}
}

static void fail_submission(struct io_uring_sqe *sqe)
{
	enum fault_kind kind = kind_of(sqe);
	int error = kind == FAULT_KIND_COUNT ? 0 : fault_met(kind);

	if (error <= 0)
		return;
	sqe->opcode = IORING_OP_NOP;
	sqe->flags &= (unsigned char)~(IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT);
	sqe->ioprio = 0;
	sqe->fd = -1;
	sqe->off = 0;
	sqe->addr = 0;
	sqe->len = (unsigned)-error;
	sqe->rw_flags = NOP_INJECT_RESULT;
	sqe->buf_index = 0;
}

static void fail_submissions(struct io_uring *ring)
{
	unsigned i;

	if (!ring_injects || !fault_plan || fault_inside)
		return;
	for (i = ring->sq.sqe_head; i != ring->sq.sqe_tail; i++)
		fail_submission(&ring->sq.sqes[i & *ring->sq.kring_mask]);
}

#define WRAP_RING(kind, name, submits, parameters, arguments)                                      \
	int name parameters                                                                        \
	{                                                                                          \
		int error = fault_met(FAULT_##kind);                                               \
		REAL(name);                                                                        \
		if (error > 0)                                                                     \
			return -error;                                                             \
		if (submits)                                                                       \
			fail_submissions(ring);                                                    \
		return real arguments;                                                             \
	}

WRAP_RING(ring_init, io_uring_queue_init, false,
	  (unsigned entries, struct io_uring *ring, unsigned flags), (entries, ring, flags))
WRAP_RING(ring_init, io_uring_queue_init_params, false,
	  (unsigned entries, struct io_uring *ring, struct io_uring_params *parameters),
	  (entries, ring, parameters))
WRAP_RING(ring_buffers, io_uring_register_buf_ring, false,
	  (struct io_uring * ring, struct io_uring_buf_reg *registration, unsigned flags),
	  (ring, registration, flags))
WRAP_RING(ring_buffers, io_uring_register_buffers_sparse, false,
	  (struct io_uring * ring, unsigned count), (ring, count))
WRAP_RING(ring_buffers, io_uring_register_buffers_update_tag, false,
	  (struct io_uring * ring, unsigned first, const struct iovec *ranges, const __u64 *tags,
	   unsigned count),
	  (ring, first, ranges, tags, count))
WRAP_RING(ring_submit, io_uring_submit, true, (struct io_uring * ring), (ring))
WRAP_RING(ring_submit, io_uring_submit_and_wait, true, (struct io_uring * ring, unsigned count),
	  (ring, count))
WRAP_RING(ring_submit, io_uring_submit_and_get_events, true, (struct io_uring * ring), (ring))
WRAP_RING(ring_submit, io_uring_submit_and_wait_timeout, true,
	  (struct io_uring * ring, struct io_uring_cqe **cqe, unsigned count,
	   struct __kernel_timespec *timeout, sigset_t *mask),
	  (ring, cqe, count, timeout, mask))
WRAP_RING(ring_reap, __io_uring_get_cqe, false,
	  (struct io_uring * ring, struct io_uring_cqe **cqe, unsigned submit, unsigned count,
	   sigset_t *mask),
	  (ring, cqe, submit, count, mask))
