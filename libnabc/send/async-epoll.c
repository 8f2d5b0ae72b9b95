/* SPDX-License-Identifier: MIT */
/*
 * async-epoll.c - the library's sender if io_uring is unavailable: sockets that are
 * full are in the epoll set that the caller polls.
 */
#include <errno.h>
#include <nabc-async.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>

#include "send/async.h"

#define EVENTS 64

static int epoll_async_open(struct NC_sender *sender)
{
	(void)sender;
	return 0;
}

static void epoll_async_close(struct NC_sender *sender)
{
	(void)sender;
}

static int epoll_async_await(struct NC_sender *sender, struct nc_send_queue *queue)
{
	/* Identify the socket by its number, so that a late event never refers to freed memory. */
	struct epoll_event event = {.events = EPOLLOUT | EPOLLONESHOT, .data.fd = queue->socket};
	int step = queue->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (epoll_ctl(sender->epoll, step, queue->socket, &event) < 0)
		return -errno;
	queue->watched = true;
	return 0;
}

static void epoll_async_forget(struct NC_sender *sender, struct nc_send_queue *queue)
{
	if (queue->watched)
		(void)epoll_ctl(sender->epoll, EPOLL_CTL_DEL, queue->socket, NULL);
	queue->watched = false;
}

static int epoll_async_cancel(struct NC_sender *sender, struct nc_send_queue *queue)
{
	epoll_async_forget(sender, queue);
	return 1;
}

static int epoll_async_collect(struct NC_sender *sender, bool wait)
{
	struct epoll_event events[EVENTS];
	int count = epoll_wait(sender->epoll, events, EVENTS, wait ? -1 : 0);

	if (count < 0)
		return errno == EINTR && !wait ? 0 : -errno;
	for (int i = 0; i < count; i++) {
		struct nc_send_queue *queue = nc_async_send_queue_locked(sender, events[i].data.fd);

		if (queue && queue->started && queue->watched)
			nc_async_writable_locked(sender, queue);
	}
	return 0;
}

const struct nc_async_backend nc_async_epoll = {
	.name = "epoll",
	.open = epoll_async_open,
	.close = epoll_async_close,
	.await = epoll_async_await,
	.cancel = epoll_async_cancel,
	.forget = epoll_async_forget,
	.collect = epoll_async_collect,
};
