/* SPDX-License-Identifier: MIT */
/*
 * async-open.c - makes a ring with its descriptors, channels and backend, and takes
 * it apart; see async.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "send/async.h"

#define DEPTH_DEFAULT 256u

static int open_descriptors(struct NC_ring *ring)
{
	struct epoll_event event = {.events = EPOLLIN};

	ring->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (ring->epoll < 0)
		return -errno;
	ring->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ring->news < 0)
		return -errno;
	event.data.fd = ring->news;
	return epoll_ctl(ring->epoll, EPOLL_CTL_ADD, ring->news, &event) < 0 ? -errno : 0;
}

static int open_channels(struct NC_ring *ring)
{
	unsigned buckets = 16;

	while (buckets < ring->depth)
		buckets *= 2;
	ring->mask = buckets - 1;
	ring->buckets = calloc(buckets, sizeof(struct nc_channel *));
	ring->channels = calloc(ring->depth, sizeof(*ring->channels));
	if (!ring->buckets || !ring->channels)
		return -ENOMEM;
	for (unsigned i = 0; i < ring->depth; i++) {
		ring->channels[i].next = ring->spare;
		ring->spare = &ring->channels[i];
	}
	return 0;
}

static int open_backend(struct NC_ring *ring, bool uring)
{
	if (uring) {
		ring->backend = &nc_async_uring;
		if (ring->backend->open(ring) == 0)
			return 0;
		nc_diagnostics_report(
			&ring->transmit->index->diagnostics, NC_DIAGNOSTIC_URING,
			"io_uring cannot be used (%s): rings send each message by itself; allow "
			"it (sysctl kernel.io_uring_disabled=0, the container's seccomp profile) "
			"or open them with NC_RING_NO_URING",
			ring->why);
	}
	ring->backend = &nc_async_epoll;
	return ring->backend->open(ring);
}

void nc_async_dismantle(struct NC_ring *ring)
{
	if (ring->news >= 0)
		close(ring->news);
	if (ring->epoll >= 0)
		close(ring->epoll);
	free(ring->buckets);
	free(ring->channels);
	free(ring);
}

int nc_async_open(struct nc_operations *all, struct nc_transmit *transmit, unsigned depth,
		  unsigned flags, struct NC_ring **ring)
{
	bool uring = !(flags & NC_RING_NO_URING) && !(transmit->index->flags & NC_CACHE_NO_URING);
	struct NC_ring *made;
	int error;

	if (depth > NC_RING_DEPTH_MAX || (flags & ~NC_RING_NO_URING))
		return -EINVAL;
	made = malloc(sizeof(*made));
	if (!made)
		return -ENOMEM;
	*made = (struct NC_ring){.all = all,
				 .transmit = transmit,
				 .epoll = -1,
				 .news = -1,
				 .depth = depth ? depth : DEPTH_DEFAULT};
	made->done_last = &made->done_first;
	made->ready_last = &made->ready_first;
	snprintf(made->why, sizeof(made->why), "switched off by the program");
	error = open_descriptors(made);
	if (!error)
		error = open_channels(made);
	if (!error)
		error = open_backend(made, uring);
	if (error) {
		nc_diagnostics_report_error(&transmit->index->diagnostics, error);
		nc_async_dismantle(made);
		return error;
	}
	pthread_mutex_init(&made->lock, NULL);
	atomic_fetch_add_explicit(&all->open, 1, memory_order_relaxed);
	*ring = made;
	return 0;
}
