/* SPDX-License-Identifier: MIT */
/*
 * registered-fixture.h - a ring, a table of registered buffers, and a segment that is sent
 * from.  Without io_uring, the tests are skipped, with one line.
 */
#ifndef REGISTERED_FIXTURE_H
#define REGISTERED_FIXTURE_H

#include <nabc.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/diagnostics.h"
#include "os/registered.h"
#include "os/ring.h"
#include "os/segment.h"

#include "pinned.h"
#include "ring-fixture.h"
#include "suite.h"

#define PAGE ((size_t)4096)
#define MIB ((size_t)1 << 20)
#define BLOCK (2 * MIB)

static struct nc_registered *table;
static struct nc_registered_budget budget;
static struct nc_diagnostics diagnostics;
static struct nc_segment segment;
static unsigned lines;
static char line[512];

static inline void hear(void *context, int level, const char *text)
{
	(void)context;
	(void)level;
	lines++;
	snprintf(line, sizeof(line), "%s", text);
}

/* Returns false if io_uring is unavailable. */
static inline bool open_table(size_t memory)
{
	if (!open_ring())
		return false;
	lines = 0;
	nc_diagnostics_init(&diagnostics, hear, NULL);
	budget = (struct nc_registered_budget){.limit = UINT64_MAX};
	table = nc_registered_open(&ring.uring, &budget, memory, &diagnostics);
	ck_assert_ptr_nonnull(table);
	table->after = 0;
	return true;
}

static inline void close_table(void)
{
	nc_registered_close(table);
	ck_assert_uint_eq(budget.used, 0);
	nc_ring_fini(&ring);
}

static inline struct nc_registered_counts counts(void)
{
	struct nc_registered_counts now;

	nc_registered_stat(table, &now);
	return now;
}

/* Takes and puts; returns the length that is registered, 0: none. */
static inline size_t take_of(struct nc_segment *of, size_t at, size_t length)
{
	struct nc_registered_use use;

	if (!nc_registered_take(table, of, at, length, &use))
		return 0;
	nc_registered_put(&use);
	nc_registered_ended(table, use.period);
	return use.length;
}

static inline size_t take(size_t at, size_t length)
{
	return take_of(&segment, at, length);
}

static inline void create(size_t size)
{
	ck_assert_int_eq(nc_segment_create(&segment, size, false, false), 0);
	pattern_fill(segment.base, 1, 0, size);
}

static inline void sent(void *context, uint64_t token, bool copied)
{
	(void)copied;
	ck_assert_ptr_null(context);
	ck_assert_uint_eq(token, 1);
}

/* Sends registered bytes and compares with the pattern of the seed. */
static inline void check_bytes(size_t at, size_t length, uint64_t seed)
{
	struct nc_registered_use use;
	struct nc_ring_piece piece = {.data = segment.base + at, .registered = &use};
	char *got = must_alloc(length);
	bool notify;
	int pair[2];

	ck_assert(nc_registered_take(table, &segment, at, length, &use));
	ck_assert_uint_eq(use.length, length);
	piece.length = length;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
	ck_assert_int_eq(nc_ring_send(&ring, pair[0], &piece, 1, &notify, sent, NULL),
			 (ssize_t)length);
	nc_registered_put(&use);
	read_exactly(pair[1], got, length);
	ck_assert_uint_eq(pattern_match(got, seed, at, length), length);
	while (nc_ring_waits(&ring)) {
		await(nc_ring_fd(&ring), POLLIN);
		(void)nc_ring_reap(&ring, sent, NULL);
	}
	nc_registered_ended(table, use.period);
	free(got);
	close_pair(pair);
}

#endif
