/* SPDX-License-Identifier: MIT */
/*
 * responder-poll.c - a worker's descriptor for event loops, and calls that do not wait.
 *
 * The descriptor is an epoll set of the pipe that wakes the worker and of an eventfd.  The
 * pipe is emptied only when a call is about to fail with EAGAIN; then everything is
 * announced to the server and looked at again.  The eventfd is set while there is what the
 * pipe no longer shows: kept requests, events, and news or space for requests whose calls
 * have failed, since one call may take the records for another.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "os/descriptor.h"
#include "os/queue.h"
#include "wire/channel.h"
#include "wire/pending.h"
#include "worker/responder.h"

/* Empties the watch.  Returns whether there was something in it. */
static bool drain(struct nc_responder *responder)
{
	struct pollfd watch = {.fd = responder->watch, .events = POLLIN};

	/* The leader does it. */
	if (responder->leader || poll(&watch, 1, 0) <= 0)
		return false;
	return nc_responder_rung(responder, nc_doorbell_wait(responder->watch)) == 0;
}

static void want(struct nc_responder *responder, struct nc_open_request *open,
		 const struct nc_wait *wait)
{
	nc_responder_unwant(responder, open, wait->want);
	open->wants |= wait->want;
	if (wait->want & NC_WANT_ROOM) {
		responder->channel[open->channel].wanting++;
		if (wait->length > responder->channel[open->channel].largest)
			responder->channel[open->channel].largest = wait->length;
	}
}

static void forget_space(struct nc_responder *responder, uint32_t channel)
{
	responder->spaces -= responder->channel[channel].space;
	responder->channel[channel].space = false;
}

int nc_responder_refuse(struct nc_responder *responder, struct nc_wait *wait)
{
	struct nc_open_request *open;

	nc_responder_ring_all(responder);
	if (!wait->drained) {
		wait->drained = true;
		if (drain(responder))
			return 0;
	}
	open = wait->kind == NC_WAIT_REQUEST
		       ? NULL
		       : nc_pending_find(&responder->pending, wait->channel, wait->tag);
	if (open && open->accepted)
		want(responder, open, wait);
	/* What fitted before may no longer fit. */
	if (wait->kind == NC_WAIT_ROOM)
		forget_space(responder, wait->channel);
	return -EAGAIN;
}

void nc_responder_unwant(struct nc_responder *responder, struct nc_open_request *open,
			 unsigned wants)
{
	unsigned rooms = open->wants & wants & NC_WANT_ROOM;
	bool news = open->news;

	open->wants &= (uint8_t)~wants;
	open->news &= (uint8_t)~wants;
	responder->news -= news && !open->news;
	if (!rooms)
		return;
	responder->channel[open->channel].wanting -= (unsigned)__builtin_popcount(rooms);
	if (responder->channel[open->channel].wanting)
		return;
	responder->channel[open->channel].largest = 0;
	forget_space(responder, open->channel);
}

void nc_responder_has_news(struct nc_responder *responder, struct nc_open_request *open)
{
	unsigned fresh = open->wants & NC_WANT_NEWS;

	if (!fresh)
		return;
	responder->news += !open->news;
	open->news |= (uint8_t)fresh;
}

static void look_for_space(struct nc_responder *responder, uint32_t channel)
{
	if (!responder->channel[channel].wanting || responder->channel[channel].space ||
	    !nc_queue_arm_room_shared(&responder->channel[channel].queues.responses,
				      responder->channel[channel].largest))
		return;
	responder->channel[channel].space = true;
	responder->spaces++;
}

static bool may_get_further(const struct nc_responder *responder)
{
	const struct nc_open_request *kept = responder->pending.kept.first;

	return responder->broken || responder->news || responder->spaces ||
	       (kept && !nc_responder_is_stuck(responder, kept)) ||
	       (responder->events && responder->pending.events.first);
}

void nc_responder_signal(struct nc_responder *responder)
{
	uint64_t count;
	bool ready;

	for (unsigned i = 0; i < responder->channels; i++)
		look_for_space(responder, i);
	ready = may_get_further(responder);
	if (ready == responder->signaled)
		return;
	responder->signaled = ready;
	if (ready)
		nc_doorbell_ring(responder->signal);
	else
		/* It was set, so this does not fail. */
		(void)!read(responder->signal, &count, sizeof(count));
}

static int add(int poll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_descriptors(struct nc_responder *responder)
{
	int error;

	responder->signal = nc_doorbell_open();
	if (responder->signal < 0)
		return responder->signal;
	responder->poll = nc_descriptor(epoll_create1(EPOLL_CLOEXEC));
	if (responder->poll < 0)
		return responder->poll;
	error = add(responder->poll, responder->watch);
	return error ? error : add(responder->poll, responder->signal);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void nc_responder_fd_close(struct nc_responder *responder)
{
	close_fd(&responder->poll);
	close_fd(&responder->signal);
}

int nc_responder_fd(struct nc_responder *responder)
{
	int fd;

	nc_responder_lock(responder);
	fd = responder->poll < 0 ? open_descriptors(responder) : 0;
	if (fd < 0)
		nc_responder_fd_close(responder);
	else
		fd = responder->poll;
	nc_responder_unlock(responder);
	return fd;
}
