/* SPDX-License-Identifier: MIT */
/*
 * loop-send-fixture.h - a socket that sends messages of units from the thread of a
 * loop; the test is the reader.
 */
#ifndef LOOP_SEND_FIXTURE_H
#define LOOP_SEND_FIXTURE_H

#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "event/loop.h"

#include "loop-fixture.h"
#include "nabc-fixture.h"
#include "suite.h"
#include "unit-holds.h"

#define KIB ((size_t)1 << 10)
#define RANGES 5

static struct runner runner;

/* The unit is held once. */
static inline size_t insert_held(uint64_t seed, size_t size, size_t fraglen, enum NC_kind kind)
{
	size_t id = insert_as(NULL, seed, size, fraglen, kind);

	ck_assert_int_eq(hold_id(NULL, id), 0);
	return id;
}

/* A connection that sends; it receives like any connection. */
struct outlet {
	struct loop_send send; /* must be first */
	struct inlet inlet;
	struct NC_range ranges[NC_RANGES_MAX];
	struct NC_hold holds[NC_RANGES_MAX];
	int peer;
	bool started;
	bool early;   /* called back before the call returned */
	bool closes;  /* closes itself in the callback */
	size_t first; /* bytes that were sent when the call returned */
	unsigned calls;
	int result;
};

static inline void outlet_sent(struct loop_send *op, int result)
{
	struct outlet *outlet = (struct outlet *)op;

	if (outlet->closes)
		loop_close_fd(runner.loop, outlet->inlet.fd);
	EVENT(outlet->early |= !outlet->started; outlet->calls++; outlet->result = result);
}

static inline void outlet_begin(void *argument)
{
	struct outlet *outlet = argument;

	outlet->started = false;
	use_holds(&outlet->send.message, outlet->holds);
	loop_send_start(runner.loop, &outlet->send, outlet->inlet.fd);
	outlet->started = true;
	outlet->first = outlet->send.message.skip;
}

static inline void outlet_open(struct outlet *outlet, int send_size, int receive_size)
{
	int pair[2];

	memset(outlet, 0, sizeof(*outlet));
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", send_size, receive_size);
	outlet->send.sent = outlet_sent;
	outlet->send.batch = true;
	outlet->send.message.ranges = outlet->ranges;
	outlet->result = 1;
	outlet->peer = pair[1];
	inlet_init(&outlet->inlet, &runner, pair[0], 100);
	call(&runner, inlet_begin, &outlet->inlet);
}

static inline void outlet_close(struct outlet *outlet)
{
	if (!outlet->closes)
		call(&runner, inlet_end, &outlet->inlet);
	free(outlet->inlet.got);
	close(outlet->peer);
}

static inline void start_with(int kind, uint64_t flags)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 32 << 20, .flags = flags);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	runner_start(&runner, kind_of(kind));
}

static inline void start(int kind)
{
	start_with(kind, 0);
}

static inline void stop(void)
{
	runner_stop(&runner);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}

#endif
