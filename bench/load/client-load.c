/* SPDX-License-Identifier: MIT */
/*
 * client-load.c - the loop around the simulated clients; see client-load.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "client-histogram.h"
#include "client-load.h"
#include "client-pause.h"
#include "client-schedule.h"

#define EVENTS 256
#define SWEEP 100000u /* microseconds between two checks for timeouts */
#define WAKING 100u   /* microseconds that a sleeping client may wake too late */
#define SEED 1	      /* of the instants at which requests are due */

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int load_open(struct load *load, const struct settings *settings)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	load->epoll = epoll_create1(EPOLL_CLOEXEC);
	load->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (load->epoll < 0 || load->timer < 0 ||
	    epoll_ctl(load->epoll, EPOLL_CTL_ADD, load->timer, &event))
		return -errno;
	load->buffer = malloc(LOAD_DROP);
	load->clients = calloc(settings->clients, sizeof(load->clients[0]));
	if (!load->buffer || !load->clients || !pauses_open(&load->pauses, settings->clients))
		return -ENOMEM;
	for (uint32_t i = 0; i < settings->clients; i++) {
		load->clients[i].fd = -1;
		load->clients[i].number = i;
	}
	return 0;
}

static void load_close(struct load *load)
{
	for (uint32_t i = 0; load->clients && i < load->settings->clients; i++)
		client_close(load, &load->clients[i]);
	pauses_close(&load->pauses);
	free(load->clients);
	free(load->buffer);
	if (load->timer >= 0)
		close(load->timer);
	if (load->epoll >= 0)
		close(load->epoll);
}

/*
 * Sets the timer to that time, unless it is set to an earlier one.  It wakes epoll to
 * the microsecond, and is rarely set: only for an earlier time.
 */
static void ring(struct load *load, uint64_t until, uint64_t now)
{
	struct itimerspec when = {
		.it_value = {(time_t)(until / 1000000), (long)(until % 1000000) * 1000}};

	if (load->armed > now && load->armed <= until)
		return;
	load->armed = until;
	timerfd_settime(load->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Waits for events, the next wake-up, a sweep or the end; returns -errno. */
static int wait_for(struct load *load, struct epoll_event *events, uint64_t until, uint64_t now)
{
	uint64_t next = pauses_next(&load->pauses);
	bool sleeps;
	int count;

	if (next < until)
		until = next;
	/* A due request is sent at its exact instant: the last moments are busy waiting. */
	if (load->settings->rate > 0)
		until -= WAKING;
	sleeps = until > now;
	if (sleeps)
		ring(load, until, now);
	count = epoll_wait(load->epoll, events, EVENTS, sleeps ? -1 : 0);
	if (count < 0)
		return errno == EINTR ? 0 : -errno;
	return count;
}

static int run(struct load *load, uint64_t start)
{
	const struct settings *settings = load->settings;
	uint64_t end = start + settings->duration, sweep = start + SWEEP, now = start;
	struct epoll_event events[EVENTS];

	for (uint32_t i = 0; i < settings->clients; i++)
		client_next(load, &load->clients[i], now);
	while (load->stopped < settings->clients && (now = now_us()) < end) {
		int count = wait_for(load, events, sweep < end ? sweep : end, now);
		uint32_t who;

		if (count < 0)
			return count;
		for (int i = 0; i < count; i++)
			if (events[i].data.ptr) /* not the timer */
				client_event(load, events[i].data.ptr, events[i].events, now_us());
		now = now_us();
		/*
		 * Only clients that slept before: a client with a pause of zero waits for others.
		 */
		for (uint32_t i = load->pauses.count; i && pauses_take(&load->pauses, now, &who);
		     i--)
			client_wake(load, &load->clients[who], now);
		if (now < sweep)
			continue;
		sweep = now + SWEEP;
		for (uint32_t i = 0; i < settings->clients; i++)
			client_expire(load, &load->clients[i], now);
	}
	return 0;
}

/* Due requests without a response have waited at least until now. */
static void count_late(struct load *load, uint64_t now)
{
	const struct settings *settings = load->settings;
	struct results *results = load->results;
	uint64_t due;

	for (uint32_t i = 0; i < settings->clients; i++) {
		const struct client *client = &load->clients[i];

		if (!client->request || client->state == CLIENT_LEAVING || client->due_at >= now)
			continue;
		results->late++;
		latency_record(&results->latency, now - client->due_at);
	}
	while ((!settings->requests || load->given++ < settings->requests) &&
	       (due = load->began + schedule_next(&load->schedule)) < now) {
		results->late++;
		latency_record(&results->latency, now - due);
	}
}

int load_run(const struct settings *settings, struct workload *workload, struct results *results)
{
	struct load load = {.settings = settings,
			    .workload = workload,
			    .results = results,
			    .epoll = -1,
			    .timer = -1};
	int error = load_open(&load, settings);

	if (!error) {
		uint64_t start = now_us();

		load.began = start;
		if (settings->rate > 0)
			schedule_begin(&load.schedule, settings->rate, SEED);
		error = run(&load, start);
		results->duration = now_us() - start;
		if (settings->rate > 0)
			count_late(&load, start + results->duration);
		/* A client without its response has waited for the whole time. */
		if (settings->requests)
			results->errors[ERROR_TIMEOUT] += settings->clients - load.stopped;
	}
	load_close(&load);
	return error;
}
