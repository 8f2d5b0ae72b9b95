/* SPDX-License-Identifier: MIT */
/*
 * client-load.c - the loop around the simulated clients; see client-load.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "client-load.h"

#define EVENTS 256
#define SWEEP 100000u /* microseconds between two looks for time-outs */

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int load_open(struct load *load, const struct settings *settings)
{
	load->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (load->epoll < 0)
		return -errno;
	load->buffer = malloc(LOAD_BUFFER);
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
	if (load->epoll >= 0)
		close(load->epoll);
}

/* Waits for events, for the next sleeper, for a sweep or for the end. */
static int wait_for(struct load *load, struct epoll_event *events, uint64_t until, uint64_t now)
{
	uint64_t next = pauses_next(&load->pauses), left;
	struct timespec timeout;

	if (next < until)
		until = next;
	left = until > now ? until - now : 0;
	timeout.tv_sec = (time_t)(left / 1000000);
	timeout.tv_nsec = (long)(left % 1000000) * 1000;
	return epoll_pwait2(load->epoll, events, EVENTS, &timeout, NULL);
}

static void run(struct load *load, uint64_t start)
{
	const struct settings *settings = load->settings;
	uint64_t end = start + settings->duration, sweep = start + SWEEP, now = start;
	struct epoll_event events[EVENTS];

	for (uint32_t i = 0; i < settings->clients; i++)
		client_next(load, &load->clients[i], now);
	while (load->stopped < settings->clients && (now = now_us()) < end) {
		int count = wait_for(load, events, sweep < end ? sweep : end, now);
		uint32_t who;

		for (int i = 0; i < count; i++)
			client_event(load, events[i].data.ptr, events[i].events, now_us());
		now = now_us();
		/* Only who slept before: one who sleeps for nothing waits for others. */
		for (uint32_t i = load->pauses.count; i && pauses_take(&load->pauses, now, &who);
		     i--)
			client_wake(load, &load->clients[who], now);
		if (now < sweep)
			continue;
		sweep = now + SWEEP;
		for (uint32_t i = 0; i < settings->clients; i++)
			client_expire(load, &load->clients[i], now);
	}
}

int load_run(const struct settings *settings, struct workload *workload, struct results *results)
{
	struct load load = {.settings = settings, .workload = workload, .results = results};
	int error = load_open(&load, settings);

	if (!error) {
		uint64_t start = now_us();

		run(&load, start);
		results->duration = now_us() - start;
		/* Who was to be answered and was not has waited for all of the time. */
		if (settings->requests)
			results->errors[ERROR_TIMEOUT] += settings->clients - load.stopped;
	}
	load_close(&load);
	return error;
}
