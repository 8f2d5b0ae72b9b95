/* SPDX-License-Identifier: MIT */
/*
 * send-op.c - sends a message in steps on an io_uring; see send-op.h.
 *
 * A step is IORING_OP_SEND of a small message, which is gathered into one piece of
 * memory; otherwise IORING_OP_SENDMSG of all that is left, or of as many pieces as
 * there are iovecs; IORING_OP_SENDMSG_ZC if the route sends without a copy.  The
 * kernel itself waits until the socket is writable (MSG_WAITALL), so one step is
 * usually enough.  From registered memory a step is IORING_OP_SEND of the header, linked to
 * IORING_OP_SEND_ZC of the body: see ring-buffers.h.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "cache/index.h"
#include "os/cork.h"
#include "os/device.h"
#include "os/registered.h"
#include "os/ring.h"
#include "send/kernel.h"
#include "send/message.h"
#include "send/method.h"
#include "send/route.h"
#include "send/send-op.h"
#include "send/transmit.h"
#include "send/zerocopy.h"
#include "store/store.h"
#include "store/unit.h"

/* Returns the first range, from the message's position on, that the module sends. */
static unsigned kernel_from(const struct NC_send_op *op)
{
	unsigned range = op->message.range;

	while (range < op->spec.range_count &&
	       !(op->kernel && nc_kernel_has(op->message.views[range].unit)))
		range++;
	return range;
}

/* With DONTWAIT there is nothing to wait for: its completion starts the send. */
static void prep_kernel(struct NC_send_op *op, struct io_uring_sqe *sqe)
{
	op->planned = 0;
	if (op->spec.flags & NC_SEND_DONTWAIT)
		io_uring_prep_nop(sqe);
	else
		io_uring_prep_poll_add(sqe, op->socket, POLLOUT);
	op->in_flight = true;
}

/* A socket that encrypts (kernel TLS) refuses MSG_WAITALL; messages to it are to be copied. */
static unsigned flags_of(const struct NC_send_op *op, bool more)
{
	return MSG_NOSIGNAL | (op->spec.flags & NC_SEND_COPY ? 0 : MSG_WAITALL) |
	       (more ? MSG_MORE : 0) | (op->spec.flags & NC_SEND_DONTWAIT ? MSG_DONTWAIT : 0);
}

/* The rest of the only range. */
static void prep_registered(struct NC_send_op *op, struct io_uring_sqe *sqe)
{
	const struct nc_message *message = &op->message;
	size_t head =
		op->spec.header_length > message->at ? op->spec.header_length - message->at : 0;
	unsigned flags = flags_of(op, nc_message_more(message, head + op->use.length));

	io_uring_prep_send_zc(sqe, op->socket, NULL, op->use.length, (int)flags,
			      IORING_SEND_ZC_REPORT_USAGE);
	/* It is such a send, of the bytes that were taken. */
	(void)nc_registered_bind(&op->use, sqe);
	op->planned = op->use.length;
	op->level = nc_route_level(&op->route);
	op->as_zerocopy = op->in_flight = true;
	op->body_unprepared = false;
}

/* The rest of the header; if it is not sent as a whole, the kernel cancels the body. */
static void prep_head(struct NC_send_op *op, struct io_uring_sqe *sqe)
{
	io_uring_prep_send(sqe, op->socket, (const char *)op->spec.header + op->message.at,
			   op->spec.header_length - op->message.at, (int)flags_of(op, true));
	sqe->flags |= IOSQE_IO_LINK;
	op->in_flight = op->linked = op->body_unprepared = true;
}

int nc_send_op_prep(struct NC_send_op *op, struct io_uring_sqe *sqe)
{
	struct nc_message *message = &op->message;
	unsigned flags;

	if (!op->body_unprepared && (op->in_flight || op->error || op->over))
		return -EINVAL;
	/* Since 2.6, liburing clears an entry when it returns it, no longer when it is prepared. */
	*sqe = (struct io_uring_sqe){.user_data = sqe->user_data};
	if (op->body_unprepared) {
		prep_registered(op, sqe);
		return 0;
	}
	if (message->at == op->spec.skip && !op->fixed)
		nc_transmit_begin(op->transmit, op->socket, message);
	if (op->uses_registered) {
		op->by_kernel = false;
		if (message->at < op->spec.header_length)
			prep_head(op, sqe);
		else
			prep_registered(op, sqe);
		return 0;
	}
	op->by_kernel = op->kernel && nc_kernel_next(message);
	if (op->by_kernel) {
		prep_kernel(op, sqe);
		return 0;
	}
	if (op->gathered) {
		op->planned = message->end - message->at;
	} else {
		message->lent = op->zerocopy;
		op->header = (struct msghdr){.msg_iov = op->iov};
		op->header.msg_iovlen = nc_message_plan(message, kernel_from(op), op->iov,
							op->iovecs, &op->planned);
	}
	op->as_zerocopy = op->zerocopy && ((!message->within && !nc_message_is_cut(message)) ||
					   op->planned >= NC_ZEROCOPY_REST);
	op->level = nc_route_level(&op->route);
	flags = flags_of(op, nc_message_more(message, op->planned));
	if (op->planned == 0) {
		/* An empty message: something must complete nevertheless. */
		io_uring_prep_nop(sqe);
	} else if (op->gathered) {
		io_uring_prep_send(sqe, op->socket, (const char *)op->spec.header + message->at,
				   op->planned, (int)flags);
	} else if (op->as_zerocopy) {
		io_uring_prep_sendmsg_zc(sqe, op->socket, &op->header, flags);
		sqe->ioprio |= IORING_SEND_ZC_REPORT_USAGE;
	} else {
		io_uring_prep_sendmsg(sqe, op->socket, &op->header, flags);
	}
	if (op->fixed && op->planned)
		sqe->flags |= IOSQE_FIXED_FILE;
	op->in_flight = true;
	return 0;
}

bool nc_send_op_busy(const struct NC_send_op *op)
{
	return op->in_flight || op->notifications;
}

/* The kernel has the registered memory of the submission, or does not want it. */
static void put_registered(struct NC_send_op *op)
{
	if (op->uses_registered)
		nc_registered_put(&op->use);
	op->uses_registered = false;
}

void nc_send_op_unselect(struct NC_send_op *op)
{
	if (!op->uses_registered)
		return;
	put_registered(op);
	op->held[op->use.period]--;
	nc_registered_ended(op->use.table, op->use.period);
}

void nc_send_op_drop_registered(struct NC_send_op *op)
{
	put_registered(op);
	for (unsigned period = 0; period < 2; period++)
		for (; op->held[period]; op->held[period]--)
			nc_registered_ended(op->use.table, period);
}

static void notified(struct NC_send_op *op, int32_t result)
{
	bool copied = (uint32_t)result & IORING_NOTIF_USAGE_ZC_COPIED;

	op->notifications--;
	/* Steps without registered memory are notified, too: after the last one it is unused. */
	if (op->notifications == 0 && !op->uses_registered)
		nc_send_op_drop_registered(op);
	if (op->failed) {
		op->failed--;
		return;
	}
	nc_route_notified(&op->route, op->level, copied);
	atomic_fetch_add_explicit(copied ? &nc_index_counters(op->transmit->index)->zerocopy_copied
					 : &nc_transmit_counts(op->transmit)->kept,
				  1, memory_order_relaxed);
}

static void sent(struct NC_send_op *op, enum NC_method method, size_t bytes, bool closed)
{
	struct nc_message *message = &op->message;
	struct nc_route_tally tally = {0};
	size_t body = nc_message_moved(message, method, bytes);

	if (op->route.route && body) {
		tally.sends[method] = 1;
		tally.bytes[method] = body;
		nc_route_count(&op->route, &tally, op->weight);
	}
	op->over = message->at == message->end;
	if (op->over && !op->fixed)
		op->error = nc_transmit_end(op->transmit, op->socket, nc_message_end_flags(message),
					    closed);
}

/* Errors of a kernel, a socket or a limit that concern only zero-copy sends. */
static bool declined(int32_t result)
{
	switch (-result) {
	case EINVAL:
	case EOPNOTSUPP:
	case EACCES:
	case ENOMEM:
	case ENOBUFS:
		return true;
	}
	return false;
}

/* The socket is writable, or broken, which the send reports.  Returns true if it was full. */
static bool step_kernel(struct NC_send_op *op)
{
	struct nc_transmit *transmit = op->transmit;
	struct nc_kernel_step step;
	ssize_t result =
		nc_kernel_send(&op->message, op->socket,
			       NC_SEND_DONTWAIT | (op->route.large ? NC_DEVICE_SUMS : 0), &step);

	if (result == -EOPNOTSUPP) {
		op->kernel = false;
		op->error = nc_message_fetch(&op->message, op->spec.range_count);
		nc_route_kernel_refused(&transmit->routes, &op->route);
		atomic_fetch_add_explicit(&nc_transmit_counts(transmit)->reasons[NC_KERNEL_REFUSED],
					  1, memory_order_relaxed);
	} else if (result >= 0) {
		sent(op, NC_METHOD_KERNEL, (size_t)result, step.closed);
	} else if (result != -EAGAIN) {
		op->error = (int)result;
	}
	/* The socket is full.  Push what is held back, so that it becomes writable again. */
	if (result != -EOPNOTSUPP && !op->over && !op->error)
		nc_cork_push(op->socket);
	return result == -EAGAIN && op->spec.flags & NC_SEND_DONTWAIT;
}

/* Handles the completion of the header; that of the body follows. */
static int head_sent(struct NC_send_op *op, int32_t result)
{
	size_t length = op->spec.header_length - op->message.at;

	if (result > 0 && (size_t)result > length)
		return -EINVAL;
	op->linked = false;
	op->header_short = result < 0 || (size_t)result < length;
	op->head_result = result;
	if (!op->header_short)
		(void)nc_message_moved(&op->message, NC_METHOD_COPY, length);
	return NC_PROGRESS_NEXT;
}

/* Handles the end of a step; true: the socket was full. */
static bool stepped(struct NC_send_op *op, int32_t result)
{
	op->in_flight = false;
	if (op->uses_registered) {
		put_registered(op);
		if (op->notifications == 0)
			nc_send_op_drop_registered(op);
		if (result >= 0)
			atomic_fetch_add_explicit(&nc_transmit_counts(op->transmit)->registered, 1,
						  memory_order_relaxed);
	}
	if (op->header_short) {
		op->header_short = op->as_zerocopy = false;
		/* A body without its header, if the two were not submitted together. */
		result = result > 0 ? -EIO : op->head_result;
	}
	if (op->by_kernel && result >= 0)
		return step_kernel(op);
	if (result >= 0 && (result || op->planned == 0)) {
		sent(op, op->as_zerocopy ? NC_METHOD_ZEROCOPY : NC_METHOD_COPY, (size_t)result,
		     false);
	} else if (op->as_zerocopy && declined(result)) {
		enum nc_reason reason =
			nc_zerocopy_refused(&op->transmit->zerocopy, &op->route, op->level, result);

		op->zerocopy = false;
		atomic_fetch_add_explicit(&nc_transmit_counts(op->transmit)->reasons[reason], 1,
					  memory_order_relaxed);
	} else if (result == -EAGAIN) {
		return true;
	} else if (result != -EINTR) {
		op->error = result ? result : -EIO;
	}
	return false;
}

int nc_send_op_complete(struct NC_send_op *op, int32_t result, uint32_t flags)
{
	bool notification = flags & IORING_CQE_F_NOTIF, full = false;

	if (op->linked && !notification)
		return op->body_unprepared ? -EINVAL : head_sent(op, result);
	if (notification ? op->notifications == 0
			 : !op->in_flight ||
				   (result > 0 && !op->by_kernel && (size_t)result > op->planned))
		return -EINVAL;
	if (notification) {
		notified(op, result);
	} else {
		if (flags & IORING_CQE_F_MORE) {
			op->notifications++;
			op->failed += result < 0;
		}
		full = stepped(op, result);
	}
	if ((op->error || op->over) && !nc_send_op_busy(op)) {
		nc_send_op_release(op);
		return op->error ? op->error : NC_PROGRESS_DONE;
	}
	if (op->error || notification)
		return NC_PROGRESS_WAIT;
	if (op->over)
		return NC_PROGRESS_SENT;
	return full ? NC_PROGRESS_FULL : NC_PROGRESS_AGAIN;
}

void nc_send_op_abandon(struct NC_send_op *op)
{
	struct nc_send_ops *all = op->all;

	if (!nc_send_op_busy(op)) {
		nc_send_op_free(op);
		return;
	}
	nc_send_op_drop_registered(op);
	/*
	 * The kernel may still read what a submission in flight refers to.  It
	 * keeps the pages that a socket refers to, but these must not be written
	 * again: recycled memory, and the header here.
	 */
	for (unsigned i = 0; i < op->spec.range_count && !op->in_flight; i++)
		if (op->message.views[i].unit->store->kind != NC_KIND_RECYCLED)
			nc_index_return(op->transmit->index, &op->message.views[i]);
	/* Pairs with the acquire in nc_send_ops_fini(). */
	op->next = atomic_load_explicit(&all->abandoned, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&all->abandoned, &op->next, op,
						      memory_order_release, memory_order_relaxed))
		;
	/* Pairs with the acquire in close_locked() of the registry. */
	atomic_fetch_sub_explicit(&all->open, 1, memory_order_release);
}
