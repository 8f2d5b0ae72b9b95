/* SPDX-License-Identifier: MIT */
/*
 * send-op.c - sends a message in steps on an io_uring; see send-op.h.
 *
 * A step is IORING_OP_SENDMSG of all that is left, or of as many pieces as there
 * are iovecs; IORING_OP_SENDMSG_ZC if the route sends without a copy.  The kernel
 * itself waits until the socket is writable (MSG_WAITALL), so one step is usually
 * enough.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "send/send-op.h"

#define IOVECS 64u

/* Allocates the structure, followed by iovecs, views, ranges and the bytes of the header. */
static struct NC_send_op *create(const struct nc_message *message)
{
	const struct NC_send *spec = message->spec;
	unsigned count = spec->range_count;
	struct NC_send_op *op;
	struct NC_range *ranges;

	/* No overflow: nc_message_open() has checked the lengths. */
	op = malloc(sizeof(*op) + IOVECS * sizeof(struct iovec) +
		    count * (sizeof(struct nc_view) + sizeof(*ranges)) + spec->header_length);
	if (!op)
		return NULL;
	*op = (struct NC_send_op){.message = *message, .spec = *spec};
	op->iov = (struct iovec *)(op + 1);
	op->message.spec = &op->spec;
	op->message.views = (struct nc_view *)(op->iov + IOVECS);
	ranges = (struct NC_range *)(op->message.views + count);
	op->spec.ranges = ranges;
	op->spec.holds = NULL;
	op->spec.hold_count = 0;
	op->spec.header = ranges + count;
	if (count) {
		memcpy(op->message.views, message->views, count * sizeof(*message->views));
		memcpy(ranges, spec->ranges, count * sizeof(*ranges));
	}
	if (spec->header_length)
		memcpy(ranges + count, spec->header, spec->header_length);
	return op;
}

/*
 * Returns the class of the largest range if all ranges are contiguous in memory; 0:
 * zero-copy does not pay.
 */
static unsigned largest_class(const struct NC_send_op *op)
{
	const struct NC_send *spec = &op->spec;
	unsigned largest = 0;

	for (unsigned i = 0; i < spec->range_count; i++) {
		unsigned class = nc_route_class(spec->ranges[i].length);

		if (!nc_layout_gapless(&op->message.views[i].unit->layout) ||
		    !nc_unit_present(op->message.views[i].unit))
			return 0;
		if (class > largest)
			largest = class;
	}
	return largest;
}

bool nc_send_op_may_zerocopy(const struct NC_send_op *op)
{
	const struct nc_route_use *route = &op->route;
	unsigned class = largest_class(op);

	if (!class || !route->route || !op->transmit->zerocopy.ring.usable ||
	    op->spec.flags & NC_SEND_COPY)
		return false;
	if (nc_route_fixed(route) != NC_ROUTE_LEARN)
		return nc_route_fixed(route) == NC_METHOD_ZEROCOPY;
	return class >= NC_ZEROCOPY_CLASS_MIN && !route->local;
}

void nc_send_op_consider_zerocopy(struct NC_send_op *op)
{
	static _Thread_local unsigned ticks;
	const struct nc_route_use *route = &op->route;
	bool sampled;

	if (!nc_send_op_may_zerocopy(op))
		return;
	sampled = ++ticks % NC_ROUTE_SAMPLE == 0;
	op->zerocopy = nc_route_fixed(route) != NC_ROUTE_LEARN ||
		       (nc_route_tries_zerocopy(route, sampled) &&
			nc_route_tries(route, NC_METHOD_ZEROCOPY, largest_class(op), sampled));
}

/* Whether the module may send; it does not know indices of the ring's registered files. */
static bool may_ask_kernel(const struct NC_send_op *op)
{
	int fixed = nc_route_fixed(&op->route);

	return !op->fixed && !op->route.kernel_refused &&
	       (fixed == NC_ROUTE_LEARN || fixed == NC_METHOD_KERNEL);
}

int nc_send_op_open(struct nc_send_ops *all, struct nc_transmit *transmit, int socket,
		    const struct NC_send *spec, unsigned flags, struct NC_send_op **op)
{
	struct nc_view views[NC_RANGES_MAX];
	struct nc_message message;
	struct NC_send_op *made;
	int error;

	/* shutdown() does not accept the index of a registered file. */
	if ((flags & ~(NC_SEND_OP_FIXED_FILE | NC_SEND_OP_UNLINKED)) ||
	    (flags & NC_SEND_OP_FIXED_FILE && spec && (spec->flags & NC_SEND_CLOSE)))
		return -EINVAL;
	error = nc_message_open(&message, transmit->index, spec, views, false);
	if (error)
		return error;
	made = create(&message);
	if (!made) {
		nc_message_close(&message);
		return -ENOMEM;
	}
	made->all = all;
	made->transmit = transmit;
	made->socket = socket;
	made->fixed = flags & NC_SEND_OP_FIXED_FILE;
	/* If this is not a socket, the send reports that. */
	if (!made->fixed)
		(void)nc_transmit_route(transmit, socket, &made->message, &made->route);
	made->kernel = flags & NC_SEND_OP_UNLINKED && may_ask_kernel(made);
	atomic_fetch_add_explicit(&all->open, 1, memory_order_relaxed);
	/* Fetch now, since preparing a step must not fail. */
	error = made->kernel ? 0 : nc_message_fetch(&made->message, spec->range_count);
	if (error) {
		nc_send_op_free(made);
		return error;
	}
	*op = made;
	return 0;
}

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

int nc_send_op_prep(struct NC_send_op *op, struct io_uring_sqe *sqe)
{
	struct nc_message *message = &op->message;
	unsigned flags = MSG_NOSIGNAL | MSG_WAITALL, end;

	if (op->in_flight || op->error || op->over)
		return -EINVAL;
	if (message->at == op->spec.skip && !op->fixed)
		nc_transmit_begin(op->transmit, op->socket, message);
	op->by_kernel = op->kernel && nc_kernel_next(message);
	if (op->by_kernel) {
		prep_kernel(op, sqe);
		return 0;
	}
	end = kernel_from(op);
	op->header = (struct msghdr){.msg_iov = op->iov};
	op->header.msg_iovlen = nc_message_plan(message, end, op->iov, IOVECS, &op->planned);
	op->as_zerocopy = op->zerocopy && op->planned >= NC_ZEROCOPY_MIN;
	op->level = nc_route_level(&op->route);
	if (nc_message_more(message, op->planned))
		flags |= MSG_MORE;
	if (op->spec.flags & NC_SEND_DONTWAIT)
		flags |= MSG_DONTWAIT;
	if (op->planned == 0) {
		/* An empty message: something must complete nevertheless. */
		io_uring_prep_nop(sqe);
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

static void notified(struct NC_send_op *op, int32_t result)
{
	bool copied = (uint32_t)result & IORING_NOTIF_USAGE_ZC_COPIED;

	op->notifications--;
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
	size_t before = message->at, head = op->spec.header_length;
	struct nc_route_tally tally = {0};

	nc_message_moved(message, method, bytes);
	if (op->route.route && message->at > head) {
		tally.sends[method] = 1;
		tally.bytes[method] = message->at - (before > head ? before : head);
		nc_route_count(&op->route, &tally, 1);
	}
	op->over = message->at == message->total;
	if (op->over && !op->fixed)
		op->error = nc_transmit_end(op->transmit, op->socket, op->spec.flags, closed);
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
	ssize_t result = nc_kernel_send(&op->message, op->socket, NC_SEND_DONTWAIT, &step);

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

/* Handles the end of a step; true: the socket was full. */
static bool stepped(struct NC_send_op *op, int32_t result)
{
	op->in_flight = false;
	if (op->by_kernel && result >= 0)
		return step_kernel(op);
	if (result >= 0 && (result || op->planned == 0)) {
		sent(op, op->as_zerocopy ? NC_METHOD_ZEROCOPY : NC_METHOD_COPY, (size_t)result,
		     false);
	} else if (op->as_zerocopy && declined(result)) {
		op->zerocopy = false;
		nc_route_refused(&op->route, op->level);
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
	if (op->error)
		return nc_send_op_busy(op) ? NC_PROGRESS_WAIT : op->error;
	if (op->over && op->notifications == 0)
		return NC_PROGRESS_DONE;
	if (notification)
		return NC_PROGRESS_WAIT;
	if (op->over)
		return NC_PROGRESS_SENT;
	return full ? NC_PROGRESS_FULL : NC_PROGRESS_AGAIN;
}

void nc_send_op_release(struct NC_send_op *op)
{
	nc_message_close(&op->message);
	op->spec.range_count = 0;
}

void nc_send_op_free(struct NC_send_op *op)
{
	atomic_fetch_sub_explicit(&op->all->open, 1, memory_order_relaxed);
	nc_send_op_release(op);
	free(op);
}

void nc_send_op_abandon(struct NC_send_op *op)
{
	struct nc_send_ops *all = op->all;

	if (!nc_send_op_busy(op)) {
		nc_send_op_free(op);
		return;
	}
	/*
	 * The kernel may still read what a submission in flight refers to.  It
	 * keeps the pages that a socket refers to, but these must not be written
	 * again: recycled memory, and the header here.
	 */
	for (unsigned i = 0; i < op->spec.range_count && !op->in_flight; i++)
		if (op->message.views[i].unit->store->kind != NC_KIND_RECYCLED)
			(void)nc_index_release(op->transmit->index, op->message.views[i].id);
	op->next = atomic_load_explicit(&all->abandoned, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&all->abandoned, &op->next, op,
						      memory_order_release, memory_order_relaxed))
		;
	atomic_fetch_sub_explicit(&all->open, 1, memory_order_relaxed);
}

void nc_send_ops_fini(struct nc_send_ops *all)
{
	struct NC_send_op *op = atomic_load_explicit(&all->abandoned, memory_order_acquire);

	while (op) {
		struct NC_send_op *next = op->next;

		free(op);
		op = next;
	}
}
