/* SPDX-License-Identifier: MIT */
/*
 * async.c - queues, order and completions of the library's ring; see async.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "send/async.h"
#include "send/splice.h"

/* --- channels --------------------------------------------------------------- */

static struct nc_channel **bucket(const struct NC_ring *ring, int socket)
{
	return &ring->buckets[((unsigned)socket * 2654435761u >> 8) & ring->mask];
}

struct nc_channel *nc_async_channel_locked(const struct NC_ring *ring, int socket)
{
	struct nc_channel *channel = *bucket(ring, socket);

	while (channel && channel->socket != socket)
		channel = channel->next;
	return channel;
}

/* There are as many as messages, so one is spare. */
static struct nc_channel *channel_open_locked(struct NC_ring *ring, int socket)
{
	struct nc_channel *channel = ring->spare;
	struct nc_channel **home = bucket(ring, socket);

	ring->spare = channel->next;
	*channel = (struct nc_channel){.socket = socket, .next = *home};
	channel->last = &channel->first;
	*home = channel;
	return channel;
}

static void channel_close_locked(struct NC_ring *ring, struct nc_channel *channel)
{
	struct nc_channel **link = bucket(ring, channel->socket);

	if (ring->backend->forget)
		ring->backend->forget(ring, channel);
	while (*link != channel)
		link = &(*link)->next;
	*link = channel->next;
	channel->next = ring->spare;
	ring->spare = channel;
}

static void make_ready_locked(struct NC_ring *ring, struct nc_channel *channel)
{
	if (channel->ready)
		return;
	channel->ready = true;
	channel->next_ready = NULL;
	*ring->ready_last = channel;
	ring->ready_last = &channel->next_ready;
}

/* --- messages --------------------------------------------------------------- */

/* Makes the descriptor readable for what no event will tell of. */
static void announce_locked(struct NC_ring *ring)
{
	uint64_t one = 1;

	if (!ring->announced)
		ring->announced = write(ring->news, &one, sizeof(one)) == sizeof(one);
}

static void hush_locked(struct NC_ring *ring)
{
	uint64_t count;

	if (ring->announced && read(ring->news, &count, sizeof(count)) == sizeof(count))
		ring->announced = false;
}

/* The channel's first message is over. */
static void finish_locked(struct NC_ring *ring, struct nc_channel *channel, int error)
{
	struct NC_operation *operation = channel->first;

	channel->first = operation->next;
	if (!channel->first)
		channel->last = &channel->first;
	operation->error = error;
	operation->next = NULL;
	nc_operation_release(operation);
	*ring->done_last = operation;
	ring->done_last = &operation->next;
	ring->done++;
}

/* The next step of a message by plain calls.  1: it is over; 0: the socket is full. */
static int send_directly(struct NC_operation *operation)
{
	struct NC_send spec = operation->spec;
	ssize_t sent;

	spec.skip = operation->message.at;
	/* The operation holds the units, whatever becomes of them. */
	spec.flags |= NC_SEND_HELD | (operation->splice ? 0 : NC_SEND_DONTWAIT);
	sent = nc_transmit_send(operation->transmit, operation->socket, &spec);
	if (sent == -EAGAIN)
		return 0;
	if (sent < 0)
		return (int)sent;
	nc_message_advance(&operation->message, (size_t)sent);
	return operation->message.at == operation->message.total;
}

/* Not now: the next reap tries again. */
static bool passes_with_time(int error)
{
	return error == -EAGAIN || error == -EBUSY || error == -ENOMEM;
}

/* Sends the channel's messages until one has to wait. */
static void start_locked(struct NC_ring *ring, struct nc_channel *channel)
{
	while (channel->first) {
		struct NC_operation *operation = channel->first;
		int result = 0;

		if (operation->cancelled) {
			finish_locked(ring, channel, -ECANCELED);
			continue;
		}
		if (!operation->direct && ring->backend->send &&
		    ring->backend->send(ring, channel) == 0)
			break;
		result = send_directly(operation);
		if (result) {
			finish_locked(ring, channel, result < 0 ? result : 0);
			continue;
		}
		result = ring->backend->await(ring, channel);
		if (result == 0)
			break;
		if (passes_with_time(result)) {
			make_ready_locked(ring, channel);
			announce_locked(ring);
			return;
		}
		finish_locked(ring, channel, result);
	}
	if (channel->first) {
		channel->started = true;
		ring->started++;
	} else {
		channel_close_locked(ring, channel);
	}
}

static void start_ready_locked(struct NC_ring *ring)
{
	struct nc_channel *channel = ring->ready_first;

	/* What has to be tried again goes to a new list. */
	ring->ready_first = NULL;
	ring->ready_last = &ring->ready_first;
	while (channel) {
		struct nc_channel *next = channel->next_ready;

		channel->ready = false;
		start_locked(ring, channel);
		channel = next;
	}
}

static void stopped_locked(struct NC_ring *ring, struct nc_channel *channel)
{
	channel->started = false;
	ring->started--;
	make_ready_locked(ring, channel);
}

void nc_async_writable_locked(struct NC_ring *ring, struct nc_channel *channel)
{
	stopped_locked(ring, channel);
}

void nc_async_completed_locked(struct NC_ring *ring, struct nc_channel *channel, int32_t result,
			       uint32_t flags)
{
	int progress = nc_operation_complete(channel->first, result, flags);

	stopped_locked(ring, channel);
	/* A kernel that does not wait for room. */
	if (progress == NC_PROGRESS_FULL)
		channel->first->direct = true;
	else if (progress == NC_PROGRESS_DONE)
		finish_locked(ring, channel, 0);
	else if (progress < 0)
		finish_locked(ring, channel, progress);
}

/*
 * Whether the fast methods of nc_transmit_send() would take some of it.  They
 * splice on non-blocking sockets alone, since sendfile() cannot be told; the
 * kernel module can.
 */
static void choose(struct NC_operation *operation)
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
	operation->direct = splice || kernel || nc_operation_may_zerocopy(operation);
	/* Nobody is kept waiting anyway; io_uring may as well wait for room. */
	spec->flags &= ~NC_SEND_DONTWAIT;
}

int nc_async_send(struct NC_ring *ring, int socket, const struct NC_send *spec, void *data)
{
	struct NC_operation *operation;
	struct nc_channel *channel;
	int error = nc_operation_open(ring->all, ring->transmit, socket, spec,
				      NC_OPERATION_UNLINKED, &operation);

	if (error)
		return error;
	operation->data = data;
	operation->next = NULL;
	choose(operation);
	pthread_mutex_lock(&ring->lock);
	if (ring->accepted == ring->depth) {
		pthread_mutex_unlock(&ring->lock);
		nc_operation_free(operation);
		return -EAGAIN;
	}
	ring->accepted++;
	channel = nc_async_channel_locked(ring, socket);
	if (!channel) {
		channel = channel_open_locked(ring, socket);
		make_ready_locked(ring, channel);
	}
	*channel->last = operation;
	channel->last = &operation->next;
	pthread_mutex_unlock(&ring->lock);
	return 0;
}

static int submit_locked(struct NC_ring *ring)
{
	int error;

	start_ready_locked(ring);
	error = ring->backend->submit ? ring->backend->submit(ring) : 0;
	/* What the kernel did not take now is tried at the next reap. */
	if (error)
		announce_locked(ring);
	return error;
}

int nc_async_submit(struct NC_ring *ring)
{
	int result;

	pthread_mutex_lock(&ring->lock);
	result = submit_locked(ring);
	if (ring->done) {
		announce_locked(ring);
		result = (int)ring->done;
	}
	pthread_mutex_unlock(&ring->lock);
	return result;
}

static void take_done_locked(struct NC_ring *ring, struct NC_completion *completion)
{
	struct NC_operation *operation = ring->done_first;

	ring->done_first = operation->next;
	if (!ring->done_first)
		ring->done_last = &ring->done_first;
	ring->done--;
	ring->accepted--;
	*completion = (struct NC_completion){.data = operation->data,
					     .sent = operation->message.at - operation->spec.skip,
					     .sock_fd = operation->socket,
					     .error = -operation->error};
	nc_operation_free(operation);
}

int nc_async_reap(struct NC_ring *ring, struct NC_completion *done, unsigned count)
{
	unsigned taken = 0;
	int error = 0;

	pthread_mutex_lock(&ring->lock);
	if (!ring->done) {
		error = ring->backend->collect(ring, false);
		(void)submit_locked(ring);
		/* Silenced only now, one reap late: a busy ring stays announced. */
		if (!ring->done && !ring->ready_first)
			hush_locked(ring);
	}
	while (taken < count && ring->done)
		take_done_locked(ring, &done[taken++]);
	if (ring->done)
		announce_locked(ring);
	pthread_mutex_unlock(&ring->lock);
	return taken ? (int)taken : error;
}

/* --- ending ----------------------------------------------------------------- */

static int cancel_locked(struct NC_ring *ring, struct nc_channel *channel)
{
	int count = 0;

	if (channel->started && !channel->first->cancelled) {
		int result = ring->backend->cancel(ring, channel);

		if (result < 0)
			return result;
		if (result)
			stopped_locked(ring, channel);
	}
	for (struct NC_operation *each = channel->first; each; each = each->next) {
		each->cancelled = true;
		count++;
	}
	return count;
}

int nc_async_cancel(struct NC_ring *ring, int socket)
{
	struct nc_channel *channel;
	int count;

	pthread_mutex_lock(&ring->lock);
	channel = nc_async_channel_locked(ring, socket);
	count = channel ? cancel_locked(ring, channel) : 0;
	(void)submit_locked(ring);
	if (ring->done)
		announce_locked(ring);
	pthread_mutex_unlock(&ring->lock);
	return count;
}

/* Until the backend has nothing more; false: it never will. */
static bool wind_up_locked(struct NC_ring *ring)
{
	for (;;) {
		int error;

		for (unsigned i = 0; i < ring->depth; i++)
			if (ring->channels[i].first)
				(void)cancel_locked(ring, &ring->channels[i]);
		(void)submit_locked(ring);
		if (!ring->started)
			return true;
		error = ring->backend->collect(ring, true);
		if (error && error != -EINTR && !passes_with_time(error))
			return false;
	}
}

void nc_async_close(struct NC_ring *ring)
{
	struct NC_completion forgotten;
	struct nc_operations *all = ring->all;
	bool good;

	pthread_mutex_lock(&ring->lock);
	good = wind_up_locked(ring);
	for (unsigned i = 0; i < ring->depth && !good; i++)
		while (ring->channels[i].first) {
			struct NC_operation *operation = ring->channels[i].first;

			ring->channels[i].first = operation->next;
			nc_operation_abandon(operation);
		}
	while (ring->done)
		take_done_locked(ring, &forgotten);
	pthread_mutex_unlock(&ring->lock);
	ring->backend->close(ring);
	pthread_mutex_destroy(&ring->lock);
	nc_async_dismantle(ring);
	atomic_fetch_sub_explicit(&all->open, 1, memory_order_relaxed);
}
