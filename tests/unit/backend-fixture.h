/* SPDX-License-Identifier: MIT */
/*
 * backend-fixture.h - shared by the tests of backend.c: a cache, and the program
 * worker-fixture, which does what each request says, correct or not.
 */
#ifndef BACKEND_FIXTURE_H
#define BACKEND_FIXTURE_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "api/registry.h"
#include "os/peer.h"
#include "os/queue.h"
#include "wire/channel.h"
#include "wire/pending.h"
#include "worker/backend.h"

#include "suite.h"
#include "unit-holds.h"

#define MIB ((size_t)1 << 20)

static NC_cache *cache;
static NC_backend *backend;
static int pollers[NC_CHANNELS_MAX];
static unsigned backend_flags; /* flags for the backends that are started */

static inline NC_backend *start_program(char *const *argv, char *const *environment,
					unsigned channels, size_t memory)
{
	struct NC_backend_options options =
		NC_BACKEND_OPTIONS_INIT(.argv = argv, .environment = environment,
					.channels = channels, .memory = memory,
					.flags = backend_flags);

	return NC_backend_start(cache, &options);
}

static inline NC_backend *start_worker(unsigned channels, size_t memory)
{
	char *const argv[] = {(char *)helper_path("WORKER_FIXTURE", "worker-fixture"), NULL};

	return start_program(argv, NULL, channels, memory);
}

static inline void open_cache(void)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB, .member_size = MIB,
				      .flags = NC_CACHE_NO_THREAD);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
}

static inline void open_all(unsigned channels, size_t memory)
{
	open_cache();
	backend = start_worker(channels, memory);
	ck_assert_ptr_nonnull(backend);
	for (unsigned i = 0; i < channels; i++) {
		struct epoll_event event = {.events = EPOLLIN | EPOLLET};

		/* The doorbell is never reset, so only its edges count. */
		pollers[i] = epoll_create1(EPOLL_CLOEXEC);
		ck_assert_int_ge(pollers[i], 0);
		ck_assert_int_eq(
			epoll_ctl(pollers[i], EPOLL_CTL_ADD, NC_backend_fd(backend, i), &event), 0);
	}
}

static inline void close_all(void)
{
	unsigned channels = backend->channels;

	ck_assert_int_eq(NC_cache_close(cache), -1);
	ck_assert_int_eq(errno, EBUSY);
	ck_assert_int_eq(NC_backend_close(backend), 0);
	ck_assert_int_eq(NC_cache_close(cache), 0);
	for (unsigned i = 0; i < channels; i++)
		close(pollers[i]);
	/* Asserts that no worker is left, not even as a zombie. */
	ck_assert_int_lt(waitpid(-1, NULL, WNOHANG), 0);
	ck_assert_int_eq(errno, ECHILD);
}

/* Sends one request with these strings; the last one is NULL. */
static inline int submit(unsigned channel, uint64_t tag, const char *first, const char *second,
			 const char *third)
{
	const char *part[3] = {first, second, third};
	char variables[512];
	size_t length = 0;

	for (unsigned i = 0; i < 3 && part[i]; i++) {
		strcpy(variables + length, part[i]);
		length += strlen(part[i]) + 1;
	}
	if (NC_backend_submit(backend, channel, tag, variables, length, 0) < 0)
		return -1;
	return NC_backend_kick(backend, channel);
}

/* Waits for a channel's doorbell; returns false after one minute. */
static inline bool rung(unsigned channel)
{
	struct pollfd wait[2] = {{.fd = pollers[channel], .events = POLLIN},
				 {.fd = NC_cache_fd(cache), .events = POLLIN}};
	struct epoll_event event;
	int count;

	for (;;) {
		count = poll(wait, 2, 60000);
		/*
		 * A signal is not the only cause: the end of an earlier cache's
		 * io_uring interrupts too.
		 */
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return false;
		/* Meanwhile serves the worker's requests to the cache. */
		if (wait[1].revents)
			ck_assert_int_ge(NC_cache_dispatch(cache), 0);
		if (wait[0].revents)
			return epoll_wait(pollers[channel], &event, 1, 0) == 1;
	}
}

/* Waits until all requests have left the queue of the first channel. */
static inline void await_empty(void)
{
	struct nc_queue *queue = &backend->channel[0].queues.requests;

	for (unsigned i = 0; queue->shared->tail != queue->own; i++) {
		ck_assert_uint_lt(i, 60000);
		poll(NULL, 0, 1);
	}
}

/* Sleeps as a server does until a response arrives or the worker ends. */
static inline int reap(unsigned channel, uint64_t *tag, struct NC_response *response)
{
	for (;;) {
		int got = NC_backend_reap(backend, channel, tag, response, sizeof(*response));

		if (got > 0)
			remember_response(response);
		if (got)
			return got;
		got = NC_backend_arm(backend, channel, 1);
		ck_assert_int_ge(got, 0);
		if (!got && !rung(channel))
			ck_abort_msg("no response in a minute");
	}
}

static inline void release_all(const struct NC_response *response)
{
	for (unsigned i = 0; i < response->range_count; i++) {
		struct NC_hold hold = response->holds[i];

		ck_assert_int_eq(NC_release(&hold), 0);
	}
}

/* Reads a body as a client would receive it, and releases it; returns its bytes. */
static inline size_t take_body(const struct NC_response *response, char *to)
{
	struct NC_send message = NC_SEND_INIT(.ranges = response->ranges, .holds = response->holds,
					      .range_count = response->range_count,
					      .hold_count = response->range_count);
	size_t length = 0;
	int pair[2];

	for (unsigned i = 0; i < response->range_count; i++)
		length += response->ranges[i].length;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 1 << 20, 1 << 20);
	ck_assert_int_eq(NC_send(NULL, pair[0], &message), (ssize_t)length);
	read_exactly(pair[1], to, length);
	release_all(response);
	close_pair(pair);
	return length;
}

static inline void check_echo(unsigned channel, uint64_t tag)
{
	struct NC_response response;
	char got[16], header[64];
	uint64_t told;

	ck_assert_int_eq(submit(channel, tag, "DO=echo", "VALUE=still there", NULL), 0);
	ck_assert_int_eq(reap(channel, &told, &response), 1);
	ck_assert_uint_eq(told, tag);
	ck_assert_int_eq(response.status, 200);
	ck_assert_uint_eq(response.body.length, 11);
	snprintf(header, sizeof(header), "X-Channel: %u\r\n", channel);
	ck_assert_uint_eq(response.headers_length, strlen(header));
	ck_assert_mem_eq(response.headers, header, strlen(header));
	take_body(&response, got);
	ck_assert_mem_eq(got, "still there", 11);
}

#endif
