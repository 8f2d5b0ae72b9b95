/* SPDX-License-Identifier: MIT */
/*
 * collector.c - eventfd, timerfd and thread around maintenance.c; see collector.h.
 *
 * After fork() the child has neither the thread nor the cache.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "cache/index.h"
#include "membership/collector.h"
#include "membership/serve.h"
#include "os/descriptor.h"
#include "os/queue.h"
#include "os/thread.h"
#include "store/pool.h"

static void collector_announce(void *context)
{
	const struct nc_collector *collector = context;

	nc_doorbell_ring(collector->event);
}

static void drain(int fd)
{
	uint64_t count;
	ssize_t got = read(fd, &count, sizeof(count));

	(void)got;
}

int nc_collector_init(struct nc_collector *collector, struct nc_index *index,
		      struct nc_serve *serve, size_t scrub_rate)
{
	struct nc_member *member = &index->own;
	int error;

	*collector = (struct nc_collector){.event = -1, .timer = -1, .epoll = serve->epoll};
	pthread_mutex_init(&collector->step, NULL);
	pthread_mutex_init(&collector->dispatching, NULL);
	if (!index->owner)
		return 0;
	nc_maintenance_init(&collector->maintenance, member, scrub_rate);
	collector->event = nc_descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
	error = collector->event < 0 ? collector->event : 0;
	if (!error) {
		collector->timer =
			nc_descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
		error = collector->timer < 0 ? collector->timer : 0;
	}
	if (!error)
		error = nc_serve_watch(serve, collector->event);
	if (!error)
		error = nc_serve_watch(serve, collector->timer);
	if (error) {
		nc_collector_fini(collector);
		return error;
	}
	member->wake = collector_announce;
	member->wake_context = collector;
	return 0;
}

static void *collector_run(void *context)
{
	struct nc_collector *collector = context;
	struct pollfd wait = {.fd = collector->epoll, .events = POLLIN};

	while (!atomic_load(&collector->stop)) {
		if (poll(&wait, 1, -1) < 0)
			continue;
		if (atomic_load(&collector->stop))
			break;
		pthread_mutex_lock(&collector->dispatching);
		(void)collector->dispatch(collector->context);
		pthread_mutex_unlock(&collector->dispatching);
	}
	return NULL;
}

int nc_collector_start(struct nc_collector *collector, int (*dispatch)(void *context),
		       void *context)
{
	int error;

	collector->dispatch = dispatch;
	collector->context = context;
	error = nc_thread_start(&collector->thread, "nabc-collector", collector_run, collector);
	if (error)
		return error;
	collector->threaded = true;
	return 0;
}

void nc_collector_fini(struct nc_collector *collector)
{
	if (collector->threaded) {
		atomic_store(&collector->stop, true);
		collector_announce(collector);
		pthread_join(collector->thread, NULL);
	}
	if (collector->event >= 0) {
		collector->maintenance.member->wake = NULL;
		close(collector->event);
	}
	if (collector->timer >= 0)
		close(collector->timer);
	nc_maintenance_fini(&collector->maintenance);
	pthread_mutex_destroy(&collector->step);
	pthread_mutex_destroy(&collector->dispatching);
}

static void set_timer(struct nc_collector *collector, uint64_t next)
{
	struct itimerspec when = {.it_value = {.tv_sec = (time_t)(next / 1000000000u),
					       .tv_nsec = (long)(next % 1000000000u)}};

	if (next == collector->next)
		return;
	collector->next = next;
	(void)timerfd_settime(collector->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

int nc_collector_step(struct nc_collector *collector)
{
	struct pollfd look[2] = {{.fd = collector->event, .events = POLLIN},
				 {.fd = collector->timer, .events = POLLIN}};
	uint64_t next;

	if (collector->event < 0 || pthread_mutex_trylock(&collector->step))
		return 0;
	if (poll(look, 2, 0) <= 0) {
		pthread_mutex_unlock(&collector->step);
		return 0;
	}
	/*
	 * Drain before the step, so that an event during the step makes the eventfd
	 * readable again.
	 */
	drain(collector->event);
	if (look[1].revents) {
		drain(collector->timer);
		collector->next = 0;
	}
	if (nc_maintenance_step(&collector->maintenance, &next))
		collector_announce(collector);
	set_timer(collector, next);
	pthread_mutex_unlock(&collector->step);
	return 1;
}
