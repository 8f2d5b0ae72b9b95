/* SPDX-License-Identifier: MIT */
/*
 * async-uring.c - the library's sender on io_uring: messages that are copied anyway
 * are submitted in batches, with one system call for all queued ones.
 *
 * user_data is the address of the queue, which exists as long as its first message,
 * with the kind of submission in the lowest bit; 0: no queue waits for the
 * completion.
 */
#include <errno.h>
#include <liburing.h>
#include <nabc-worker.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "os/ring.h"
#include "send/async.h"
#include "send/send-op.h"

#define ENTRIES_MAX 1024u
#define POLLING UINT64_C(1) /* marks a poll for POLLOUT, not a send */

static int watch_ring(struct NC_sender *sender, struct io_uring *uring)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = uring->ring_fd};

	return epoll_ctl(sender->epoll, EPOLL_CTL_ADD, uring->ring_fd, &event) < 0 ? -errno : 0;
}

static int uring_async_open(struct NC_sender *sender)
{
	unsigned entries = sender->depth < ENTRIES_MAX ? sender->depth : ENTRIES_MAX;
	struct io_uring *uring = malloc(sizeof(*uring));
	int error;

	if (!uring) {
		snprintf(sender->why, sizeof(sender->why), "io_uring: no memory");
		return -ENOMEM;
	}
	error = nc_ring_setup(uring, entries, sender->why, sizeof(sender->why));
	if (error == 0) {
		error = watch_ring(sender, uring);
		if (error) {
			snprintf(sender->why, sizeof(sender->why), "io_uring: epoll: %s",
				 strerror(-error));
			io_uring_queue_exit(uring);
		}
	}
	if (error) {
		free(uring);
		return error;
	}
	sender->state = uring;
	sender->why[0] = '\0';
	return 0;
}

static void uring_async_close(struct NC_sender *sender)
{
	io_uring_queue_exit(sender->state);
	free(sender->state);
}

static int uring_async_submit(struct NC_sender *sender)
{
	struct io_uring *uring = sender->state;

	while (io_uring_sq_ready(uring)) {
		int result = io_uring_submit(uring);

		if (result < 0 && result != -EINTR)
			return result;
		if (result == 0)
			return -EAGAIN;
	}
	return 0;
}

static struct io_uring_sqe *get_sqe(struct NC_sender *sender)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(sender->state);

	if (!sqe && uring_async_submit(sender) == 0)
		sqe = io_uring_get_sqe(sender->state);
	return sqe;
}

static int uring_async_send(struct NC_sender *sender, struct nc_send_queue *queue)
{
	struct io_uring_sqe *sqe = get_sqe(sender);

	if (!sqe)
		return -EBUSY;
	/* It is this message's turn and none of its steps is in flight: this cannot fail. */
	(void)nc_send_op_prep(queue->first, sqe);
	io_uring_sqe_set_data64(sqe, (uintptr_t)queue);
	return 0;
}

static int uring_async_await(struct NC_sender *sender, struct nc_send_queue *queue)
{
	struct io_uring_sqe *sqe = get_sqe(sender);

	if (!sqe)
		return -EBUSY;
	io_uring_prep_poll_add(sqe, queue->socket, POLLOUT);
	io_uring_sqe_set_data64(sqe, (uintptr_t)queue | POLLING);
	return 0;
}

static int uring_async_cancel(struct NC_sender *sender, struct nc_send_queue *queue)
{
	/* The backend's own send is marked in flight; otherwise the poll is pending. */
	uint64_t target = (uintptr_t)queue | (queue->first->in_flight ? 0 : POLLING);
	struct io_uring_sqe *sqe = get_sqe(sender);

	if (!sqe)
		return -EAGAIN;
	io_uring_prep_cancel64(sqe, target, 0);
	io_uring_sqe_set_data64(sqe, 0);
	return 0;
}

static int uring_async_collect(struct NC_sender *sender, bool wait)
{
	struct io_uring *uring = sender->state;
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
		struct nc_send_queue *queue = (struct nc_send_queue *)(uintptr_t)(token & ~POLLING);

		io_uring_cqe_seen(uring, cqe);
		if (token & POLLING)
			nc_async_writable_locked(sender, queue);
		else if (queue)
			nc_async_completed_locked(sender, queue, result, flags);
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
