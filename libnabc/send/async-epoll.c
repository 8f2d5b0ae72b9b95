/* SPDX-License-Identifier: MIT */
/*
 * async-epoll.c - the library's ring where io_uring is not to be had: sockets
 * that are full wait in the epoll descriptor that the caller polls.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "send/async.h"

#define EVENTS 64

static int epoll_async_open(struct NC_ring *ring)
{
	(void)ring;
	return 0;
}

static void epoll_async_close(struct NC_ring *ring)
{
	(void)ring;
}

static int epoll_async_await(struct NC_ring *ring, struct nc_channel *channel)
{
	/* By number, so that an event never finds another's memory. */
	struct epoll_event event = {.events = EPOLLOUT | EPOLLONESHOT, .data.fd = channel->socket};
	int step = channel->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (epoll_ctl(ring->epoll, step, channel->socket, &event) < 0)
		return -errno;
	channel->watched = true;
	return 0;
}

static void epoll_async_forget(struct NC_ring *ring, struct nc_channel *channel)
{
	if (channel->watched)
		(void)epoll_ctl(ring->epoll, EPOLL_CTL_DEL, channel->socket, NULL);
	channel->watched = false;
}

static int epoll_async_cancel(struct NC_ring *ring, struct nc_channel *channel)
{
	epoll_async_forget(ring, channel);
	return 1;
}

static int epoll_async_collect(struct NC_ring *ring, bool wait)
{
	struct epoll_event events[EVENTS];
	int count = epoll_wait(ring->epoll, events, EVENTS, wait ? -1 : 0);

	if (count < 0)
		return errno == EINTR && !wait ? 0 : -errno;
	for (int i = 0; i < count; i++) {
		struct nc_channel *channel = nc_async_channel_locked(ring, events[i].data.fd);

		if (channel && channel->started && channel->watched)
			nc_async_writable_locked(ring, channel);
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
