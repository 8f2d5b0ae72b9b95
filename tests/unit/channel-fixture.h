/* SPDX-License-Identifier: MIT */
/*
 * channel-fixture.h - shared by the tests of worker-channel*.c: the calls of
 * call-fixture.h in a channel to the program worker-fixture, as backend-fixture.h
 * starts it.
 */
#ifndef CHANNEL_FIXTURE_H
#define CHANNEL_FIXTURE_H

#include <nabc.h>
#include <stdint.h>
#include <string.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "base/budget.h"
#include "base/timer.h"
#include "core/page-memory.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/piece.h"
#include "gateway/pool-process.h"
#include "gateway/worker-channel-internal.h"
#include "gateway/worker-channel.h"
#include "http/body.h"

#include "backend-fixture.h"
#include "call-fixture.h"
#include "suite.h"

static struct worker_channel channel;
static struct pool_process process;
static struct page_memory pages;
static struct budget ahead;

/* Without a worker: what is sent to it is lost. */
static inline void begin_channel(void)
{
	begin();
	open_cache();
	process = (struct pool_process){.pool = &pool, .pidfd = -1};
	memset(&pages, 0, sizeof(pages));
	page_memory_init(&pages, MIB);
	ahead = (struct budget){.most = MIB};
	pool.pages = &pages;
	pool.ahead = &ahead;
	server.answers.most = MIB;
	memset(&channel, 0, sizeof(channel));
	channel.process = &process;
	channel.thread = &thread;
	ck_assert(worker_channel_grow(&channel));
	worker_channel_reset(&channel, NULL);
}

static inline void end_channel(void)
{
	ck_assert_uint_eq(channel.in_flight, 0);
	ck_assert_uint_eq(channel.orphaned, 0);
	ck_assert_uint_eq(channel.tunnels, 0);
	ck_assert(!timer_is_running(&channel.drain_timer));
	ck_assert_uint_eq(process.load, 0);
	ck_assert_uint_eq(process.streams, 0);
	ck_assert_uint_eq(pages.held, 0);
	ck_assert_uint_eq(ahead.used, 0);
	ck_assert_uint_eq(server.answers.used, 0);
	worker_channel_free(&channel);
	end();
}

/* As transaction_finish() does. */
static inline void finish_channel_call(struct backend_call *call)
{
	piece_release(&call->transaction->piece);
	worker_channel_finish(call);
}

/* Returns the number of holds of a range's unit. */
static inline uint64_t holds(struct NC_range range)
{
	struct NC_stat stat;

	ck_assert_int_eq(NC_stat(NULL, range.id, &stat, sizeof(stat)), 0);
	return stat.holds;
}

#endif
