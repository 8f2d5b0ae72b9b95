/* SPDX-License-Identifier: MIT */
/*
 * async-open.c - creates a sender with its descriptors, queues and backend, and
 * frees it; see async.h.
 */
#include <errno.h>
#include <nabc-async.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/diagnostics.h"
#include "cache/index.h"
#include "os/descriptor.h"
#include "send/async.h"
#include "send/send-op.h"
#include "send/transmit.h"

#define DEPTH_DEFAULT 256u

static int open_descriptors(struct NC_sender *sender)
{
	struct epoll_event event = {.events = EPOLLIN};

	sender->epoll = nc_descriptor(epoll_create1(EPOLL_CLOEXEC));
	if (sender->epoll < 0)
		return sender->epoll;
	sender->news = nc_descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (sender->news < 0)
		return sender->news;
	event.data.fd = sender->news;
	return epoll_ctl(sender->epoll, EPOLL_CTL_ADD, sender->news, &event) < 0 ? -errno : 0;
}

static int open_queues(struct NC_sender *sender)
{
	unsigned buckets = 16;

	while (buckets < sender->depth)
		buckets *= 2;
	sender->mask = buckets - 1;
	sender->buckets = calloc(buckets, sizeof(struct nc_send_queue *));
	sender->queues = calloc(sender->depth, sizeof(*sender->queues));
	if (!sender->buckets || !sender->queues)
		return -ENOMEM;
	for (unsigned i = 0; i < sender->depth; i++) {
		sender->queues[i].next = sender->spare;
		sender->spare = &sender->queues[i];
	}
	return 0;
}

static int open_backend(struct NC_sender *sender, bool uring)
{
	if (uring) {
		sender->backend = &nc_async_uring;
		if (sender->backend->open(sender) == 0)
			return 0;
		nc_diagnostics_report(
			&sender->transmit->index->diagnostics, NC_DIAGNOSTIC_URING,
			"io_uring cannot be used (%s): senders make a system call for each "
			"message; allow io_uring (sysctl kernel.io_uring_disabled=0, the "
			"container's seccomp profile) or open senders with NC_SENDER_NO_URING",
			sender->why);
	}
	sender->backend = &nc_async_epoll;
	return sender->backend->open(sender);
}

void nc_async_dismantle(struct NC_sender *sender)
{
	if (sender->news >= 0)
		close(sender->news);
	if (sender->epoll >= 0)
		close(sender->epoll);
	free(sender->buckets);
	free(sender->queues);
	free(sender);
}

int nc_async_open(struct nc_send_ops *all, struct nc_transmit *transmit, unsigned depth,
		  unsigned flags, struct NC_sender **sender)
{
	bool uring = !(flags & NC_SENDER_NO_URING) && !(transmit->index->flags & NC_CACHE_NO_URING);
	struct NC_sender *made;
	int error;

	if (depth > NC_SENDER_DEPTH_MAX || (flags & ~NC_SENDER_NO_URING))
		return -EINVAL;
	made = malloc(sizeof(*made));
	if (!made)
		return -ENOMEM;
	*made = (struct NC_sender){.all = all,
				   .transmit = transmit,
				   .epoll = -1,
				   .news = -1,
				   .depth = depth ? depth : DEPTH_DEFAULT};
	made->done_last = &made->done_first;
	made->ready_last = &made->ready_first;
	snprintf(made->why, sizeof(made->why), "disabled by the program");
	error = open_descriptors(made);
	if (!error)
		error = open_queues(made);
	if (!error)
		error = open_backend(made, uring);
	if (error) {
		nc_diagnostics_report_error(&transmit->index->diagnostics, error);
		nc_async_dismantle(made);
		return error;
	}
	pthread_mutex_init(&made->lock, NULL);
	atomic_fetch_add_explicit(&all->open, 1, memory_order_relaxed);
	*sender = made;
	return 0;
}
