/* SPDX-License-Identifier: MIT */
/*
 * async-uring.c - the library's ring on io_uring: messages that are copied
 * anyway leave in batches, one system call for all that were queued.
 *
 * user_data is the channel, whose first message pins it, with the kind of
 * submission in the lowest bit; 0: nobody waits for it.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "send/async.h"

#define ENTRIES_MAX 1024u
#define ROOM UINT64_C(1) /* a poll for room, not a send */

static int watch_ring(struct NC_ring *ring, struct io_uring *uring)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = uring->ring_fd};

	return epoll_ctl(ring->epoll, EPOLL_CTL_ADD, uring->ring_fd, &event) < 0 ? -errno : 0;
}

static int uring_async_open(struct NC_ring *ring)
{
	unsigned entries = ring->depth < ENTRIES_MAX ? ring->depth : ENTRIES_MAX;
	struct io_uring *uring = malloc(sizeof(*uring));
	int error = -ENOMEM;

	if (uring)
		error = io_uring_queue_init(entries, uring, IORING_SETUP_CLAMP);
	if (error == 0) {
		error = watch_ring(ring, uring);
		if (error)
			io_uring_queue_exit(uring);
	}
	if (error) {
		snprintf(ring->why, sizeof(ring->why), "io_uring_setup: %s", strerror(-error));
		free(uring);
		return error;
	}
	ring->state = uring;
	ring->why[0] = '\0';
	return 0;
}

static void uring_async_close(struct NC_ring *ring)
{
	io_uring_queue_exit(ring->state);
	free(ring->state);
}

static int uring_async_submit(struct NC_ring *ring)
{
	struct io_uring *uring = ring->state;

	while (io_uring_sq_ready(uring)) {
		int result = io_uring_submit(uring);

		if (result < 0 && result != -EINTR)
			return result;
		if (result == 0)
			return -EAGAIN;
	}
	return 0;
}

static struct io_uring_sqe *get_sqe(struct NC_ring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring->state);

	if (!sqe && uring_async_submit(ring) == 0)
		sqe = io_uring_get_sqe(ring->state);
	return sqe;
}

static int uring_async_send(struct NC_ring *ring, struct nc_channel *channel)
{
	struct io_uring_sqe *sqe = get_sqe(ring);

	if (!sqe)
		return -EBUSY;
	/* It is this message's turn, so that nothing of it is under way: no error. */
	(void)nc_operation_prep(channel->first, sqe);
	io_uring_sqe_set_data64(sqe, (uintptr_t)channel);
	return 0;
}

static int uring_async_await(struct NC_ring *ring, struct nc_channel *channel)
{
	struct io_uring_sqe *sqe = get_sqe(ring);

	if (!sqe)
		return -EBUSY;
	io_uring_prep_poll_add(sqe, channel->socket, POLLOUT);
	io_uring_sqe_set_data64(sqe, (uintptr_t)channel | ROOM);
	return 0;
}

static int uring_async_cancel(struct NC_ring *ring, struct nc_channel *channel)
{
	/* A message that the backend sends is in flight; else the poll is. */
	uint64_t target = (uintptr_t)channel | (channel->first->in_flight ? 0 : ROOM);
	struct io_uring_sqe *sqe = get_sqe(ring);

	if (!sqe)
		return -EAGAIN;
	io_uring_prep_cancel64(sqe, target, 0);
	io_uring_sqe_set_data64(sqe, 0);
	return 0;
}

static int uring_async_collect(struct NC_ring *ring, bool wait)
{
	struct io_uring *uring = ring->state;
	struct io_uring_cqe *cqe;

	if (wait) {
		int result = io_uring_submit_and_wait(uring, 1);

		if (result < 0)
			return result;
	}
	while (io_uring_peek_cqe(uring, &cqe) == 0) {
		uint64_t token = cqe->user_data;
		uint32_t flags = cqe->flags;
		int32_t result = cqe->res;
		struct nc_channel *channel = (struct nc_channel *)(uintptr_t)(token & ~ROOM);

		io_uring_cqe_seen(uring, cqe);
		if (token & ROOM)
			nc_async_writable_locked(ring, channel);
		else if (channel)
			nc_async_completed_locked(ring, channel, result, flags);
	}
	return 0;
}

const struct nc_async_backend nc_async_uring = {
	.name = "io_uring",
	.open = uring_async_open,
	.close = uring_async_close,
	.send = uring_async_send,
	.await = uring_async_await,
	.cancel = uring_async_cancel,
	.submit = uring_async_submit,
	.collect = uring_async_collect,
};
