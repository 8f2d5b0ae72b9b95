/* SPDX-License-Identifier: MIT */
/*
 * responder-wait.c - how the threads of a worker wait for its server.
 *
 * One of them, the leader, sleeps at the pipe that wakes the worker; the others, its
 * followers, at their own conditions.  Before a thread sleeps it announces to the server
 * what it waits for.  The leader looks at its own condition again when it wakes.  A thread
 * that leaves the library, or sleeps again, looks at the queues for all: it takes out what
 * came, wakes those whose condition may hold now, and one of them to be the next leader.
 *
 * While others wait, an announcement is never withdrawn, since the leader may rely on it:
 * for each record that came after its announcement, it is woken.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/single_threaded.h>
#include <unistd.h>

#include <nabc-worker.h>

#include "os/queue.h"
#include "wire/channel.h"
#include "wire/pending.h"
#include "worker/responder.h"

void nc_responder_lock(struct nc_responder *responder)
{
	pthread_mutex_lock(&responder->lock);
}

/* The leader is not woken here, since the server rings for what it waits for. */
static void wake(struct nc_responder *responder, struct nc_wait *wait)
{
	if (wait->woken || wait == responder->leader)
		return;
	wait->woken = true;
	responder->woken++;
	pthread_cond_signal(&wait->changed);
}

static void wake_all(struct nc_responder *responder)
{
	for (struct nc_wait *wait = responder->first; wait; wait = wait->next)
		wake(responder, wait);
}

/* Wakes one of those that wait for a request. */
static void wake_for_request(struct nc_responder *responder)
{
	struct nc_wait *wait = responder->first;

	while (wait && (wait->kind != NC_WAIT_REQUEST || wait->woken || wait == responder->leader))
		wait = wait->next;
	if (wait)
		wake(responder, wait);
}

/* Wakes one of those that wait for events. */
static void wake_for_event(struct nc_responder *responder)
{
	struct nc_wait *wait = responder->first;

	while (wait && (!wait->events || wait->woken || wait == responder->leader))
		wait = wait->next;
	if (wait)
		wake(responder, wait);
}

static bool waits_for(const struct nc_wait *wait, uint32_t channel, uint64_t tag)
{
	return wait->kind == NC_WAIT_NEWS && wait->channel == channel && wait->tag == tag;
}

void nc_responder_kept(struct nc_responder *responder)
{
	if (responder->first)
		wake_for_request(responder);
}

void nc_responder_noted(struct nc_responder *responder, uint32_t channel, uint64_t tag)
{
	struct nc_open_request *open = nc_pending_find(&responder->pending, channel, tag);

	if (open)
		nc_responder_has_news(responder, open);
	if (responder->pending.events.first)
		wake_for_event(responder);
	for (struct nc_wait *wait = responder->first; wait; wait = wait->next)
		if (waits_for(wait, channel, tag))
			wake(responder, wait);
}

void nc_responder_over(struct nc_responder *responder, uint32_t channel, uint64_t tag)
{
	for (struct nc_wait *wait = responder->first; wait; wait = wait->next) {
		if (wait->kind == NC_WAIT_REQUEST || wait->channel != channel || wait->tag != tag)
			continue;
		if (wait == responder->leader && responder->interrupt >= 0)
			nc_doorbell_ring(responder->interrupt);
		wake(responder, wait);
	}
}

/* Whether a thread or a loop may rely on announcements that were made before. */
static bool is_shared(const struct nc_responder *responder)
{
	return responder->first || responder->poll >= 0;
}

/* Announces that records of the channel are awaited; true: there are some. */
static bool arm_channel(struct nc_responder *responder, uint32_t channel)
{
	struct nc_queue *queue = &responder->channel[channel].queues.requests;
	bool work, shared = is_shared(responder);

	work = shared ? nc_queue_arm_shared(queue, 1) : nc_queue_arm(queue, 1);
	responder->channel[channel].armed = shared || !work;
	return work;
}

static bool arm_room(struct nc_responder *responder, const struct nc_wait *wait)
{
	struct nc_queue *queue = &responder->channel[wait->channel].queues.responses;

	return is_shared(responder) ? nc_queue_arm_room_shared(queue, wait->length)
				    : nc_queue_arm_room(queue, wait->length);
}

/* Announces what a thread waits for; true: it is there after all. */
static bool arm(struct nc_responder *responder, const struct nc_wait *wait)
{
	bool work = false;

	switch (wait->kind) {
	case NC_WAIT_REQUEST:
		for (unsigned i = 0; i < responder->channels && !work; i++)
			work = arm_channel(responder, i);
		return work;
	case NC_WAIT_NEWS:
		return arm_channel(responder, wait->channel);
	default:
		return arm_room(responder, wait);
	}
}

/* Takes the records of a channel that no thread may have announced to wait for. */
static void settle_channel(struct nc_responder *responder, uint32_t channel)
{
	if (responder->channel[channel].armed || !arm_channel(responder, channel) ||
	    !nc_responder_pump(responder, channel))
		return;
	/* The others learn why when they look; too many kept requests may be fewer then. */
	responder->channel[channel].armed = false;
	for (struct nc_wait *wait = responder->first; wait; wait = wait->next)
		if (responder->broken || (wait->kind == NC_WAIT_NEWS && wait->channel == channel))
			wake(responder, wait);
}

void nc_responder_settle(struct nc_responder *responder)
{
	for (unsigned i = 0; i < responder->channels; i++)
		settle_channel(responder, i);
	for (struct nc_wait *wait = responder->first; wait; wait = wait->next)
		if (wait->kind == NC_WAIT_ROOM && arm_room(responder, wait))
			wake(responder, wait);
	if (responder->poll >= 0)
		nc_responder_signal(responder);
}

void nc_responder_unlock(struct nc_responder *responder)
{
	if (is_shared(responder))
		nc_responder_settle(responder);
	if (responder->first && !responder->leader && !responder->woken)
		wake(responder, responder->first);
	pthread_mutex_unlock(&responder->lock);
}

static void enter(struct nc_responder *responder, struct nc_wait *wait)
{
	wait->woken = false;
	pthread_cond_init(&wait->changed, NULL);
	wait->next = NULL;
	wait->previous = responder->last;
	if (responder->last)
		responder->last->next = wait;
	else
		responder->first = wait;
	responder->last = wait;
}

static void leave(struct nc_responder *responder, struct nc_wait *wait)
{
	if (wait->previous)
		wait->previous->next = wait->next;
	else
		responder->first = wait->next;
	if (wait->next)
		wait->next->previous = wait->previous;
	else
		responder->last = wait->previous;
	responder->woken -= wait->woken;
	pthread_cond_destroy(&wait->changed);
}

int nc_responder_rung(struct nc_responder *responder, int result)
{
	/* The server may have seen any of the announcements. */
	for (unsigned i = 0; i < responder->channels; i++)
		responder->channel[i].armed = false;
	if (result > 0)
		return 0;
	responder->ended = result == 0;
	wake_all(responder);
	return result;
}

/*
 * Waits as nc_doorbell_wait(), or until another thread ends the request that the leader
 * waits for, of which the server says no more.
 */
static int wait_for_either(int watch, int interrupt)
{
	struct pollfd fds[2] = {{.fd = watch, .events = POLLIN},
				{.fd = interrupt, .events = POLLIN}};
	uint64_t count;

	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return -errno;
	if (fds[1].revents && read(interrupt, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return -errno;
	return fds[0].revents ? nc_doorbell_wait(watch) : 1;
}

/* Whether another thread may end what this one waits for. */
static bool may_be_over(struct nc_responder *responder, const struct nc_wait *wait)
{
	if (wait->kind == NC_WAIT_REQUEST || __libc_single_threaded)
		return false;
	if (responder->interrupt < 0)
		responder->interrupt = nc_doorbell_open();
	/* Without the descriptor, the thread notices it when the server rings next. */
	return responder->interrupt >= 0;
}

/* Sleeps until the server rings.  Returns 0 or -errno. */
static int lead(struct nc_responder *responder, struct nc_wait *wait)
{
	bool either = may_be_over(responder, wait);
	int result;

	responder->leader = wait;
	pthread_mutex_unlock(&responder->lock);
	result = either ? wait_for_either(responder->watch, responder->interrupt)
			: nc_doorbell_wait(responder->watch);
	pthread_mutex_lock(&responder->lock);
	responder->leader = NULL;
	return nc_responder_rung(responder, result);
}

static int sleep_until_woken(struct nc_responder *responder, struct nc_wait *wait)
{
	int result = 0;

	enter(responder, wait);
	if (wait->previous || responder->poll >= 0)
		nc_responder_settle(responder);
	if (!wait->woken && !responder->leader)
		result = lead(responder, wait);
	else
		while (!wait->woken)
			pthread_cond_wait(&wait->changed, &responder->lock);
	leave(responder, wait);
	return result;
}

int nc_responder_wait(struct nc_responder *responder, struct nc_wait *wait)
{
	if (arm(responder, wait))
		return 0;
	if (responder->broken)
		return -EPROTO;
	if (responder->ended)
		return -EPIPE;
	if (wait->nowait)
		return nc_responder_refuse(responder, wait);
	nc_responder_ring_all(responder);
	return sleep_until_woken(responder, wait);
}
