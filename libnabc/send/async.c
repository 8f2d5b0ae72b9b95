/* SPDX-License-Identifier: MIT */
/* async.c - queues, order and completions of the library's sender; see async.h. */
#include <errno.h>
#include <fcntl.h>
#include <nabc-async.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "base/fragment.h"
#include "cache/hold.h"
#include "cache/index.h"
#include "send/async.h"
#include "send/kernel.h"
#include "send/message.h"
#include "send/send-op.h"
#include "send/splice.h"
#include "send/transmit.h"
#include "store/store.h"
#include "store/unit.h"

/* --- queues --------------------------------------------------------------- */

static struct nc_send_queue **bucket(const struct NC_sender *sender, int socket)
{
	return &sender->buckets[((unsigned)socket * 2654435761u >> 8) & sender->mask];
}

struct nc_send_queue *nc_async_send_queue_locked(const struct NC_sender *sender, int socket)
{
	struct nc_send_queue *queue = *bucket(sender, socket);

	while (queue && queue->socket != socket)
		queue = queue->next;
	return queue;
}

/* There are as many queues as messages, so one is free. */
static struct nc_send_queue *queue_open_locked(struct NC_sender *sender, int socket)
{
	struct nc_send_queue *queue = sender->spare;
	struct nc_send_queue **home = bucket(sender, socket);

	sender->spare = queue->next;
	*queue = (struct nc_send_queue){.socket = socket, .next = *home};
	queue->last = &queue->first;
	*home = queue;
	return queue;
}

static void queue_close_locked(struct NC_sender *sender, struct nc_send_queue *queue)
{
	struct nc_send_queue **link = bucket(sender, queue->socket);

	if (sender->backend->forget)
		sender->backend->forget(sender, queue);
	while (*link != queue)
		link = &(*link)->next;
	*link = queue->next;
	queue->next = sender->spare;
	sender->spare = queue;
}

static void make_ready_locked(struct NC_sender *sender, struct nc_send_queue *queue)
{
	if (queue->ready)
		return;
	queue->ready = true;
	queue->next_ready = NULL;
	*sender->ready_last = queue;
	sender->ready_last = &queue->next_ready;
}

/* --- messages --------------------------------------------------------------- */

/* Makes the descriptor readable when no event of the backend does. */
static void announce_locked(struct NC_sender *sender)
{
	uint64_t one = 1;

	if (!sender->announced)
		sender->announced = write(sender->news, &one, sizeof(one)) == sizeof(one);
}

static void clear_event_locked(struct NC_sender *sender)
{
	uint64_t count;

	if (sender->announced && read(sender->news, &count, sizeof(count)) == sizeof(count))
		sender->announced = false;
}

/* Completes the queue's first message. */
static void finish_locked(struct NC_sender *sender, struct nc_send_queue *queue, int error)
{
	struct NC_send_op *operation = queue->first;

	queue->first = operation->next;
	if (!queue->first)
		queue->last = &queue->first;
	operation->error = error;
	operation->next = NULL;
	nc_send_op_release(operation);
	*sender->done_last = operation;
	sender->done_last = &operation->next;
	sender->done++;
}

/*
 * Sends the next part of a message with plain calls.  Returns 1 if it is complete,
 * 0 if the socket is full.
 */
static int send_directly(struct NC_send_op *operation)
{
	struct nc_message *message = &operation->message;
	struct NC_hold holds[NC_RANGES_MAX];
	struct NC_send spec = operation->spec;
	ssize_t sent;

	spec.skip = message->at;
	if (spec.limit)
		spec.limit = message->end - message->at;
	/* The operation holds the units, even if they are destroyed. */
	for (unsigned i = 0; i < spec.range_count; i++)
		nc_hold_write(&holds[i], message->index, &message->views[i]);
	spec.holds = holds;
	spec.hold_count = spec.range_count;
	spec.flags |= operation->splice ? 0 : NC_SEND_DONTWAIT;
	sent = nc_transmit_send(operation->transmit, operation->socket, &spec);
	if (sent == -EAGAIN)
		return 0;
	if (sent < 0)
		return (int)sent;
	nc_message_advance(message, (size_t)sent);
	return message->at == message->end;
}

/* Whether the error is temporary: the next reap tries again. */
static bool is_temporary(int error)
{
	return error == -EAGAIN || error == -EBUSY || error == -ENOMEM;
}

/* Sends the queue's messages until one must wait. */
static void start_locked(struct NC_sender *sender, struct nc_send_queue *queue)
{
	while (queue->first) {
		struct NC_send_op *operation = queue->first;
		int result = 0;

		if (operation->cancelled) {
			finish_locked(sender, queue, -ECANCELED);
			continue;
		}
		if (!operation->by_transmit && sender->backend->send &&
		    sender->backend->send(sender, queue) == 0)
			break;
		result = send_directly(operation);
		if (result) {
			finish_locked(sender, queue, result < 0 ? result : 0);
			continue;
		}
		result = sender->backend->await(sender, queue);
		if (result == 0)
			break;
		if (is_temporary(result)) {
			make_ready_locked(sender, queue);
			announce_locked(sender);
			return;
		}
		finish_locked(sender, queue, result);
	}
	if (queue->first) {
		queue->started = true;
		sender->started++;
	} else {
		queue_close_locked(sender, queue);
	}
}

static void start_ready_locked(struct NC_sender *sender)
{
	struct nc_send_queue *queue = sender->ready_first;

	/* Queues that must be retried go to a new list. */
	sender->ready_first = NULL;
	sender->ready_last = &sender->ready_first;
	while (queue) {
		struct nc_send_queue *next = queue->next_ready;

		queue->ready = false;
		start_locked(sender, queue);
		queue = next;
	}
}

static void stopped_locked(struct NC_sender *sender, struct nc_send_queue *queue)
{
	queue->started = false;
	sender->started--;
	make_ready_locked(sender, queue);
}

void nc_async_writable_locked(struct NC_sender *sender, struct nc_send_queue *queue)
{
	stopped_locked(sender, queue);
}

void nc_async_completed_locked(struct NC_sender *sender, struct nc_send_queue *queue,
			       int32_t result, uint32_t flags)
{
	int progress = nc_send_op_complete(queue->first, result, flags);

	stopped_locked(sender, queue);
	/* This kernel ignores MSG_WAITALL: send this message with plain calls. */
	if (progress == NC_PROGRESS_FULL)
		queue->first->by_transmit = true;
	else if (progress == NC_PROGRESS_DONE)
		finish_locked(sender, queue, 0);
	else if (progress < 0)
		finish_locked(sender, queue, progress);
}

/*
 * Selects whether nc_transmit_send() sends the message, with a faster method for
 * some of it.  It splices only on non-blocking sockets, since sendfile() has no
 * flag for that; the kernel module has.
 */
static void choose(struct NC_send_op *operation)
{
	struct NC_send *spec = &operation->spec;
	bool splice = false, kernel = false;

	for (unsigned i = 0; i < spec->range_count; i++) {
		const struct nc_unit *unit = operation->message.views[i].unit;

		kernel |= nc_kernel_has(unit);
		splice |= nc_unit_spliceable(unit) && spec->ranges[i].length >= NC_SPLICE_MIN &&
			  nc_layout_gapless(&unit->layout);
	}
	splice = splice && !(spec->flags & NC_SEND_COPY);
	if (splice) {
		int mode = fcntl(operation->socket, F_GETFL);

		splice = mode >= 0 && (mode & O_NONBLOCK);
	}
	operation->splice = splice;
	operation->by_transmit = splice || kernel || nc_send_op_may_zerocopy(operation);
	/*
	 * The caller does not block in any case, so io_uring may wait until the
	 * socket is writable.
	 */
	spec->flags &= ~NC_SEND_DONTWAIT;
}

int nc_async_send(struct NC_sender *sender, int socket, const struct NC_send *spec, void *data)
{
	struct NC_send_op *operation;
	struct nc_send_queue *queue;
	int error = nc_send_op_open(sender->all, sender->transmit, socket, spec,
				    NC_SEND_OP_UNLINKED, true, &operation);

	if (error)
		return error;
	operation->data = data;
	operation->next = NULL;
	choose(operation);
	pthread_mutex_lock(&sender->lock);
	if (sender->accepted == sender->depth) {
		pthread_mutex_unlock(&sender->lock);
		nc_send_op_free(operation);
		return -EAGAIN;
	}
	sender->accepted++;
	queue = nc_async_send_queue_locked(sender, socket);
	if (!queue) {
		queue = queue_open_locked(sender, socket);
		make_ready_locked(sender, queue);
	}
	*queue->last = operation;
	queue->last = &operation->next;
	pthread_mutex_unlock(&sender->lock);
	return 0;
}

static int submit_locked(struct NC_sender *sender)
{
	int error;

	start_ready_locked(sender);
	error = sender->backend->submit ? sender->backend->submit(sender) : 0;
	/* Submissions that failed now are retried at the next reap. */
	if (error)
		announce_locked(sender);
	return error;
}

int nc_async_submit(struct NC_sender *sender)
{
	int result;

	pthread_mutex_lock(&sender->lock);
	result = submit_locked(sender);
	if (sender->done) {
		announce_locked(sender);
		result = (int)sender->done;
	}
	pthread_mutex_unlock(&sender->lock);
	return result;
}

static void take_done_locked(struct NC_sender *sender, struct NC_completion *completion)
{
	struct NC_send_op *operation = sender->done_first;

	sender->done_first = operation->next;
	if (!sender->done_first)
		sender->done_last = &sender->done_first;
	sender->done--;
	sender->accepted--;
	*completion = (struct NC_completion){.data = operation->data,
					     .sent = operation->message.at - operation->spec.skip,
					     .sock_fd = operation->socket,
					     .error = -operation->error};
	nc_send_op_free(operation);
}

int nc_async_reap(struct NC_sender *sender, struct NC_completion *done, unsigned count)
{
	unsigned taken = 0;
	int error = 0;

	pthread_mutex_lock(&sender->lock);
	if (!sender->done) {
		error = sender->backend->collect(sender, false);
		(void)submit_locked(sender);
		/* Clear the event one reap late: a busy sender then needs fewer system calls. */
		if (!sender->done && !sender->ready_first)
			clear_event_locked(sender);
	}
	while (taken < count && sender->done)
		take_done_locked(sender, &done[taken++]);
	if (sender->done)
		announce_locked(sender);
	pthread_mutex_unlock(&sender->lock);
	return taken ? (int)taken : error;
}

/* --- ending ----------------------------------------------------------------- */

static int cancel_locked(struct NC_sender *sender, struct nc_send_queue *queue)
{
	int count = 0;

	if (queue->started && !queue->first->cancelled) {
		int result = sender->backend->cancel(sender, queue);

		if (result < 0)
			return result;
		if (result)
			stopped_locked(sender, queue);
	}
	for (struct NC_send_op *each = queue->first; each; each = each->next) {
		each->cancelled = true;
		count++;
	}
	return count;
}

int nc_async_cancel(struct NC_sender *sender, int socket)
{
	struct nc_send_queue *queue;
	int count;

	pthread_mutex_lock(&sender->lock);
	queue = nc_async_send_queue_locked(sender, socket);
	count = queue ? cancel_locked(sender, queue) : 0;
	(void)submit_locked(sender);
	if (sender->done)
		announce_locked(sender);
	pthread_mutex_unlock(&sender->lock);
	return count;
}

/* Runs until no message is with the backend; false: the backend failed permanently. */
static bool drain_locked(struct NC_sender *sender)
{
	for (;;) {
		int error;

		for (unsigned i = 0; i < sender->depth; i++)
			if (sender->queues[i].first)
				(void)cancel_locked(sender, &sender->queues[i]);
		(void)submit_locked(sender);
		if (!sender->started)
			return true;
		error = sender->backend->collect(sender, true);
		if (error && error != -EINTR && !is_temporary(error))
			return false;
	}
}

void nc_async_close(struct NC_sender *sender)
{
	struct NC_completion forgotten;
	struct nc_send_ops *all = sender->all;
	bool good;

	pthread_mutex_lock(&sender->lock);
	good = drain_locked(sender);
	for (unsigned i = 0; i < sender->depth && !good; i++)
		while (sender->queues[i].first) {
			struct NC_send_op *operation = sender->queues[i].first;

			sender->queues[i].first = operation->next;
			nc_send_op_abandon(operation);
		}
	while (sender->done)
		take_done_locked(sender, &forgotten);
	pthread_mutex_unlock(&sender->lock);
	sender->backend->close(sender);
	pthread_mutex_destroy(&sender->lock);
	nc_async_dismantle(sender);
	/* Pairs with the acquire in close_locked() of the registry. */
	atomic_fetch_sub_explicit(&all->open, 1, memory_order_release);
}
