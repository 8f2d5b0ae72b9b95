/* SPDX-License-Identifier: MIT */
/*
 * responder-fixture.h - shared by the tests of responder*.c: both ends of a backend in one
 * process, the server's as bare queues.
 */
#ifndef RESPONDER_FIXTURE_H
#define RESPONDER_FIXTURE_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include <nabc.h>

#include "cache/index.h"
#include "membership/serve.h"
#include "os/peer.h"
#include "os/queue.h"
#include "os/segment.h"
#include "wire/channel.h"
#include "wire/wire.h"
#include "worker/responder.h"

#include "suite.h"

#define MIB ((size_t)1 << 20)

static struct nc_index own, attached;
static struct nc_serve serve;
static struct nc_guest *guest;
static struct nc_segment queues;
static struct nc_responder *responder;
static int watch, ring, bell, ends[2];
static struct nc_channel channel;
static size_t own_memory = 256 << 10; /* of the worker's segment */

/* What nc_backend_open() passes to a worker, with space for errors. */
static inline int open_pair(unsigned channels, uint32_t queue_size, size_t queue_memory)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = MIB);
	int extra[4], error;
	struct nc_serve_offer offer = {.memory = own_memory,
				       .channels = channels,
				       .queue_size = queue_size,
				       .extra = extra};

	ck_assert_int_eq(nc_index_init_owner(&own, &options), 0);
	ck_assert_int_eq(nc_segment_create(&queues, queue_memory, false, true), 0);
	ck_assert_int_eq(nc_doorbell_open_pipe(&watch, &ring), 0);
	bell = nc_doorbell_open();
	ck_assert_int_eq(nc_peer_pair(ends), 0);
	extra[0] = queues.fd;
	extra[1] = watch;
	extra[2] = extra[3] = bell;
	ck_assert_int_eq(nc_serve_init(&serve, &own), 0);
	ck_assert_int_eq(nc_serve_offer(&serve, ends[0], &offer, &guest), 0);
	error = nc_responder_open(&attached, ends[1], &responder);
	nc_channel_init(&channel, queues.base, 0, NC_CHANNEL_QUEUE);
	nc_queue_set_claims(&channel.requests, NC_CHANNEL_CLAIMS);
	return error;
}

static inline void close_owner(void)
{
	close(bell);
	close(watch);
	if (ring >= 0)
		close(ring);
	nc_serve_dismiss(&serve, guest);
	close(ends[1]);
	nc_segment_close(&queues);
	nc_serve_fini(&serve);
	nc_index_fini(&own);
}

static inline void submit_here(uint64_t tag)
{
	struct nc_wire_request request = {.tag = tag};

	ck_assert_int_eq(nc_queue_push(&channel.requests, &request, sizeof(request), NULL, 0), 0);
	if (nc_queue_must_ring(&channel.requests))
		nc_doorbell_ring(ring);
}

/* Returns the rings of the doorbell since the last call. */
static inline uint64_t rings(void)
{
	uint64_t count = 0;

	return read(bell, &count, sizeof(count)) == sizeof(count) ? count : 0;
}

static inline void close_ends(void)
{
	nc_responder_close(responder);
	nc_index_fini(&attached);
	close_owner();
}

/* Waits until that many threads wait in the library. */
static inline void await_waiting(unsigned count)
{
	unsigned waiting;

	do {
		sched_yield();
		waiting = 0;
		nc_responder_lock(responder);
		for (struct nc_wait *wait = responder->first; wait; wait = wait->next)
			waiting += !wait->woken;
		pthread_mutex_unlock(&responder->lock);
	} while (waiting < count);
}

#endif
