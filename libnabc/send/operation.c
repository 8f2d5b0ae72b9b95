/* SPDX-License-Identifier: MIT */
/*
 * operation.c - a message as steps on an io_uring; see operation.h.
 *
 * A step is IORING_OP_SENDMSG of all that is left, or of as many pieces as
 * iovecs go; IORING_OP_SENDMSG_ZC where the route is one without a copy.  The
 * kernel itself waits for room (MSG_WAITALL), so that one step is the rule.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "send/operation.h"

#define IOVECS 64u

/* The structure, then iovecs, views, ranges and the header's bytes. */
static struct NC_operation *create(const struct nc_message *message)
{
	const struct NC_send *spec = message->spec;
	unsigned count = spec->range_count;
	struct NC_operation *operation;
	struct NC_range *ranges;

	/* No overflow: the message found the length of the message to be sane. */
	operation =
		malloc(sizeof(*operation) + IOVECS * sizeof(struct iovec) +
		       count * (sizeof(struct nc_view) + sizeof(*ranges)) + spec->header_length);
	if (!operation)
		return NULL;
	*operation = (struct NC_operation){.message = *message, .spec = *spec};
	operation->iov = (struct iovec *)(operation + 1);
	operation->message.spec = &operation->spec;
	operation->message.views = (struct nc_view *)(operation->iov + IOVECS);
	ranges = (struct NC_range *)(operation->message.views + count);
	operation->spec.ranges = ranges;
	operation->spec.header = ranges + count;
	if (count) {
		memcpy(operation->message.views, message->views, count * sizeof(*message->views));
		memcpy(ranges, spec->ranges, count * sizeof(*ranges));
	}
	if (spec->header_length)
		memcpy(ranges + count, spec->header, spec->header_length);
	return operation;
}

/* The class of the largest range, if all are runs of memory; 0: none that matters. */
static unsigned largest_class(const struct NC_operation *operation)
{
	const struct NC_send *spec = &operation->spec;
	unsigned largest = 0;

	for (unsigned i = 0; i < spec->range_count; i++) {
		unsigned class = nc_route_class(spec->ranges[i].length);

		if (!nc_layout_gapless(&operation->message.views[i].unit->layout) ||
		    !nc_unit_present(operation->message.views[i].unit))
			return 0;
		if (class > largest)
			largest = class;
	}
	return largest;
}

bool nc_operation_may_zerocopy(const struct NC_operation *operation)
{
	const struct nc_route_use *route = &operation->route;
	unsigned class = largest_class(operation);

	if (!class || !route->route || !operation->transmit->zerocopy.ring.usable ||
	    operation->spec.flags & NC_SEND_COPY)
		return false;
	if (nc_route_fixed(route) != NC_ROUTE_LEARN)
		return nc_route_fixed(route) == NC_METHOD_ZEROCOPY;
	return class >= NC_ZEROCOPY_CLASS_MIN && !route->local;
}

void nc_operation_consider_zerocopy(struct NC_operation *operation)
{
	static _Thread_local unsigned ticks;
	const struct nc_route_use *route = &operation->route;
	bool sampled;

	if (!nc_operation_may_zerocopy(operation))
		return;
	sampled = ++ticks % NC_ROUTE_SAMPLE == 0;
	operation->zerocopy =
		nc_route_fixed(route) != NC_ROUTE_LEARN ||
		(nc_route_tries_zerocopy(route, sampled) &&
		 nc_route_tries(route, NC_METHOD_ZEROCOPY, largest_class(operation), sampled));
}

/* Whether the module is to be asked; an index of the ring's it does not know. */
static bool may_ask_kernel(const struct NC_operation *operation)
{
	int fixed = nc_route_fixed(&operation->route);

	return !operation->fixed && !operation->route.strange &&
	       (fixed == NC_ROUTE_LEARN || fixed == NC_METHOD_KERNEL);
}

int nc_operation_open(struct nc_operations *all, struct nc_transmit *transmit, int socket,
		      const struct NC_send *spec, unsigned flags, struct NC_operation **operation)
{
	struct nc_view views[NC_RANGES_MAX];
	struct nc_message message;
	struct NC_operation *made;
	int error;

	/* The index of a registered file is nothing that shutdown() knows. */
	if ((flags & ~(NC_OPERATION_FIXED_FILE | NC_OPERATION_UNLINKED)) ||
	    (flags & NC_OPERATION_FIXED_FILE && spec && (spec->flags & NC_SEND_CLOSE)))
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
	made->fixed = flags & NC_OPERATION_FIXED_FILE;
	/* What is no socket is for the send to find out. */
	if (!made->fixed)
		(void)nc_transmit_route(transmit, socket, &made->message, &made->route);
	made->kernel = flags & NC_OPERATION_UNLINKED && may_ask_kernel(made);
	atomic_fetch_add_explicit(&all->open, 1, memory_order_relaxed);
	/* Now, since preparing a step does not fail. */
	error = made->kernel ? 0 : nc_message_fetch(&made->message, spec->range_count);
	if (error) {
		nc_operation_free(made);
		return error;
	}
	*operation = made;
	return 0;
}

/* The first range, from where the message is, that the module is to send. */
static unsigned kernel_from(const struct NC_operation *operation)
{
	unsigned range = operation->message.range;

	while (range < operation->spec.range_count &&
	       !(operation->kernel && nc_kernel_has(operation->message.views[range].unit)))
		range++;
	return range;
}

/* Nothing to wait for: its completion is the time to try. */
static void prep_kernel(struct NC_operation *operation, struct io_uring_sqe *sqe)
{
	operation->planned = 0;
	if (operation->spec.flags & NC_SEND_DONTWAIT)
		io_uring_prep_nop(sqe);
	else
		io_uring_prep_poll_add(sqe, operation->socket, POLLOUT);
	operation->in_flight = true;
}

int nc_operation_prep(struct NC_operation *operation, struct io_uring_sqe *sqe)
{
	struct nc_message *message = &operation->message;
	unsigned flags = MSG_NOSIGNAL | MSG_WAITALL, end;

	if (operation->in_flight || operation->error || operation->over)
		return -EINVAL;
	if (message->at == operation->spec.skip && !operation->fixed)
		nc_transmit_begin(operation->transmit, operation->socket, message);
	operation->by_kernel = operation->kernel && nc_kernel_next(message);
	if (operation->by_kernel) {
		prep_kernel(operation, sqe);
		return 0;
	}
	end = kernel_from(operation);
	operation->header = (struct msghdr){.msg_iov = operation->iov};
	operation->header.msg_iovlen =
		nc_message_plan(message, end, operation->iov, IOVECS, &operation->planned);
	operation->as_zerocopy = operation->zerocopy && operation->planned >= NC_ZEROCOPY_MIN;
	operation->level = nc_route_level(&operation->route);
	if (nc_message_more(message, operation->planned))
		flags |= MSG_MORE;
	if (operation->spec.flags & NC_SEND_DONTWAIT)
		flags |= MSG_DONTWAIT;
	if (operation->planned == 0) {
		/* An empty message: something must complete all the same. */
		io_uring_prep_nop(sqe);
	} else if (operation->as_zerocopy) {
		io_uring_prep_sendmsg_zc(sqe, operation->socket, &operation->header, flags);
		sqe->ioprio |= IORING_SEND_ZC_REPORT_USAGE;
	} else {
		io_uring_prep_sendmsg(sqe, operation->socket, &operation->header, flags);
	}
	if (operation->fixed && operation->planned)
		sqe->flags |= IOSQE_FIXED_FILE;
	operation->in_flight = true;
	return 0;
}

bool nc_operation_busy(const struct NC_operation *operation)
{
	return operation->in_flight || operation->notifications;
}

static void notified(struct NC_operation *operation, int32_t result)
{
	bool copied = (uint32_t)result & IORING_NOTIF_USAGE_ZC_COPIED;

	operation->notifications--;
	if (operation->failed) {
		operation->failed--;
		return;
	}
	nc_route_notified(&operation->route, operation->level, copied);
	atomic_fetch_add_explicit(
		copied ? &nc_index_counters(operation->transmit->index)->zerocopy_copied
		       : &nc_transmit_counts(operation->transmit)->kept,
		1, memory_order_relaxed);
}

static void sent(struct NC_operation *operation, enum NC_method method, size_t bytes, bool closed)
{
	struct nc_message *message = &operation->message;
	size_t before = message->at, head = operation->spec.header_length;
	struct nc_route_tally tally = {0};

	nc_message_moved(message, method, bytes);
	if (operation->route.route && message->at > head) {
		tally.sends[method] = 1;
		tally.bytes[method] = message->at - (before > head ? before : head);
		nc_route_count(&operation->route, &tally, 1);
	}
	operation->over = message->at == message->total;
	if (operation->over && !operation->fixed)
		operation->error = nc_transmit_end(operation->transmit, operation->socket,
						   operation->spec.flags, closed);
}

/* What a kernel, a socket or a limit may have against zero-copy sends alone. */
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

/* The socket takes bytes, or is at its end, which sending will tell.  true: it was full. */
static bool step_kernel(struct NC_operation *operation)
{
	struct nc_transmit *transmit = operation->transmit;
	struct nc_kernel_step step;
	ssize_t result =
		nc_kernel_send(&operation->message, operation->socket, NC_SEND_DONTWAIT, &step);

	if (result == -EOPNOTSUPP) {
		operation->kernel = false;
		operation->error =
			nc_message_fetch(&operation->message, operation->spec.range_count);
		nc_route_estranged(&transmit->routes, &operation->route);
		atomic_fetch_add_explicit(&nc_transmit_counts(transmit)->reasons[NC_KERNEL_REFUSED],
					  1, memory_order_relaxed);
	} else if (result >= 0) {
		sent(operation, NC_METHOD_KERNEL, (size_t)result, step.closed);
	} else if (result != -EAGAIN) {
		operation->error = (int)result;
	}
	/* The socket is full, and who waits for it should hear of room. */
	if (result != -EOPNOTSUPP && !operation->over && !operation->error)
		nc_cork_push(operation->socket);
	return result == -EAGAIN && operation->spec.flags & NC_SEND_DONTWAIT;
}

/* The step is over; true: the socket was full. */
static bool stepped(struct NC_operation *operation, int32_t result)
{
	operation->in_flight = false;
	if (operation->by_kernel && result >= 0)
		return step_kernel(operation);
	if (result >= 0 && (result || operation->planned == 0)) {
		sent(operation, operation->as_zerocopy ? NC_METHOD_ZEROCOPY : NC_METHOD_COPY,
		     (size_t)result, false);
	} else if (operation->as_zerocopy && declined(result)) {
		operation->zerocopy = false;
		nc_route_refused(&operation->route, operation->level);
	} else if (result == -EAGAIN) {
		return true;
	} else if (result != -EINTR) {
		operation->error = result ? result : -EIO;
	}
	return false;
}

int nc_operation_complete(struct NC_operation *operation, int32_t result, uint32_t flags)
{
	bool notification = flags & IORING_CQE_F_NOTIF, full = false;

	if (notification ? operation->notifications == 0
			 : !operation->in_flight || (result > 0 && !operation->by_kernel &&
						     (size_t)result > operation->planned))
		return -EINVAL;
	if (notification) {
		notified(operation, result);
	} else {
		if (flags & IORING_CQE_F_MORE) {
			operation->notifications++;
			operation->failed += result < 0;
		}
		full = stepped(operation, result);
	}
	if (operation->error)
		return nc_operation_busy(operation) ? NC_PROGRESS_WAIT : operation->error;
	if (operation->over && operation->notifications == 0)
		return NC_PROGRESS_DONE;
	if (notification)
		return NC_PROGRESS_WAIT;
	if (operation->over)
		return NC_PROGRESS_SENT;
	return full ? NC_PROGRESS_FULL : NC_PROGRESS_AGAIN;
}

void nc_operation_release(struct NC_operation *operation)
{
	nc_message_close(&operation->message);
	operation->spec.range_count = 0;
}

void nc_operation_free(struct NC_operation *operation)
{
	atomic_fetch_sub_explicit(&operation->all->open, 1, memory_order_relaxed);
	nc_operation_release(operation);
	free(operation);
}

void nc_operation_abandon(struct NC_operation *operation)
{
	struct nc_operations *all = operation->all;

	if (!nc_operation_busy(operation)) {
		nc_operation_free(operation);
		return;
	}
	/*
	 * A submission under way may still be read from, whatever it reads.  What
	 * a socket refers to is kept by the kernel, but may not be written again:
	 * recycled memory, and the header here.
	 */
	for (unsigned i = 0; i < operation->spec.range_count && !operation->in_flight; i++)
		if (operation->message.views[i].unit->store->kind != NC_KIND_RECYCLED)
			(void)nc_index_release(operation->transmit->index,
					       operation->message.views[i].id);
	operation->next = atomic_load_explicit(&all->abandoned, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&all->abandoned, &operation->next, operation,
						      memory_order_release, memory_order_relaxed))
		;
	atomic_fetch_sub_explicit(&all->open, 1, memory_order_relaxed);
}

void nc_operations_fini(struct nc_operations *all)
{
	struct NC_operation *operation =
		atomic_load_explicit(&all->abandoned, memory_order_acquire);

	while (operation) {
		struct NC_operation *next = operation->next;

		free(operation);
		operation = next;
	}
}
