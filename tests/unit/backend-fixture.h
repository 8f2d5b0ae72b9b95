/* SPDX-License-Identifier: MIT */
/*
 * backend-fixture.h - what the tests of backend.c share: a cache, and the
 * program worker-fixture, which does as each request says, good or bad.
 */
#ifndef BACKEND_FIXTURE_H
#define BACKEND_FIXTURE_H

#include <stddef.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include <nabc-worker.h>

#include "api/registry.h"
#include "os/peer.h"
#include "wire/pending.h"
#include "worker/backend.h"

#include "suite.h"

#define MIB ((size_t)1 << 20)

/* As in worker.c, to see the queues. */
struct NC_exchange {
	struct NC_cache *cache;
	struct nc_backend *backend;
};

static NC_cache *cache;
static NC_exchange *exchange;
static int pollers[NC_LANES_MAX];
static unsigned exchange_flags; /* of exchanges that are started */

static inline NC_exchange *start_program(char *const *argv, char *const *environment,
					 unsigned lanes, size_t memory)
{
	struct NC_exchange_options options = {.argv = argv,
					      .environment = environment,
					      .lanes = lanes,
					      .memory = memory,
					      .flags = exchange_flags};

	return NC_exchange_start(cache, &options);
}

static inline NC_exchange *start_worker(unsigned lanes, size_t memory)
{
	char *const argv[] = {(char *)helper_path("WORKER_FIXTURE", "worker-fixture"), NULL};

	return start_program(argv, NULL, lanes, memory);
}

static inline void open_cache(void)
{
	struct NC_cache_options options = {
		.size = 4 * MIB, .member_size = MIB, .flags = NC_CACHE_NO_THREAD};

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
}

static inline void open_all(unsigned lanes, size_t memory)
{
	open_cache();
	exchange = start_worker(lanes, memory);
	ck_assert_ptr_nonnull(exchange);
	for (unsigned i = 0; i < lanes; i++) {
		struct epoll_event event = {.events = EPOLLIN | EPOLLET};

		/* The doorbell is never reset, so its edges are what counts. */
		pollers[i] = epoll_create1(EPOLL_CLOEXEC);
		ck_assert_int_ge(pollers[i], 0);
		ck_assert_int_eq(
			epoll_ctl(pollers[i], EPOLL_CTL_ADD, NC_exchange_fd(exchange, i), &event),
			0);
	}
}

static inline void close_all(void)
{
	unsigned lanes = exchange->backend->lanes;

	ck_assert_int_eq(NC_cache_close(cache), -1);
	ck_assert_int_eq(errno, EBUSY);
	ck_assert_int_eq(NC_exchange_close(exchange), 0);
	ck_assert_int_eq(NC_cache_close(cache), 0);
	for (unsigned i = 0; i < lanes; i++)
		close(pollers[i]);
	/* No worker is left, not even as a zombie. */
	ck_assert_int_lt(waitpid(-1, NULL, WNOHANG), 0);
	ck_assert_int_eq(errno, ECHILD);
}

/* One request of strings, of which the last is NULL. */
static inline int submit(unsigned lane, uint64_t tag, const char *first, const char *second,
			 const char *third)
{
	const char *part[3] = {first, second, third};
	char variables[512];
	size_t length = 0;

	for (unsigned i = 0; i < 3 && part[i]; i++) {
		strcpy(variables + length, part[i]);
		length += strlen(part[i]) + 1;
	}
	if (NC_exchange_submit(exchange, lane, tag, variables, length, 0) < 0)
		return -1;
	return NC_exchange_kick(exchange, lane);
}

/* The ring of a lane's doorbell; false: none in a minute. */
static inline bool rung(unsigned lane)
{
	struct pollfd wait[2] = {{.fd = pollers[lane], .events = POLLIN},
				 {.fd = NC_cache_fd(cache), .events = POLLIN}};
	struct epoll_event event;
	int count;

	for (;;) {
		count = poll(wait, 2, 60000);
		/* Also without signals: the end of an earlier cache's io_uring interrupts. */
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return false;
		/* What the worker asks is answered meanwhile. */
		if (wait[1].revents)
			ck_assert_int_ge(NC_cache_dispatch(cache), 0);
		if (wait[0].revents)
			return epoll_wait(pollers[lane], &event, 1, 0) == 1;
	}
}

/* All requests have left the queue of the first lane. */
static inline void await_empty(void)
{
	struct nc_queue *queue = &exchange->backend->lane[0].queues.requests;

	for (unsigned i = 0; queue->shared->tail != queue->own; i++) {
		ck_assert_uint_lt(i, 60000);
		poll(NULL, 0, 1);
	}
}

/* Sleeps as a server does until there is a response, or the end of the worker. */
static inline int reap(unsigned lane, uint64_t *tag, struct NC_response *response)
{
	for (;;) {
		int got = NC_exchange_reap(exchange, lane, tag, response);

		if (got)
			return got;
		got = NC_exchange_arm(exchange, lane);
		ck_assert_int_ge(got, 0);
		if (!got && !rung(lane))
			ck_abort_msg("no response in a minute");
	}
}

static inline void release_all(const struct NC_response *response)
{
	for (unsigned i = 0; i < response->range_count; i++)
		ck_assert_int_eq(NC_release(response->ranges[i].id), 0);
}

/* Reads a body the way a client would get it, and lets go of it; its bytes. */
static inline size_t take_body(const struct NC_response *response, char *to)
{
	struct NC_send message = {.ranges = response->ranges,
				  .range_count = response->range_count,
				  .flags = NC_SEND_HELD};
	size_t length = 0;
	int pair[2];

	for (unsigned i = 0; i < response->range_count; i++)
		length += response->ranges[i].length;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 1 << 20, 1 << 20);
	ck_assert_int_eq(NC_socksendv(pair[0], &message), (ssize_t)length);
	read_exactly(pair[1], to, length);
	release_all(response);
	close_pair(pair);
	return length;
}

static inline void check_echo(unsigned lane, uint64_t tag)
{
	struct NC_response response;
	char got[16], header[64];
	uint64_t told;

	ck_assert_int_eq(submit(lane, tag, "DO=echo", "VALUE=still there", NULL), 0);
	ck_assert_int_eq(reap(lane, &told, &response), 1);
	ck_assert_uint_eq(told, tag);
	ck_assert_int_eq(response.status, 200);
	ck_assert_uint_eq(response.body.length, 11);
	snprintf(header, sizeof(header), "X-Lane: %u\r\n", lane);
	ck_assert_uint_eq(response.headers_length, strlen(header));
	ck_assert_mem_eq(response.headers, header, strlen(header));
	take_body(&response, got);
	ck_assert_mem_eq(got, "still there", 11);
}

#endif
