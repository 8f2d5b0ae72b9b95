/* SPDX-License-Identifier: MIT */
/* loop-uring-fixture.h - messages that leave together with others, and how many did. */
#ifndef LOOP_URING_FIXTURE_H
#define LOOP_URING_FIXTURE_H

#include <nabc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "event/loop.h"

#include "loop-fixture.h"
#include "loop-send-fixture.h"
#include "suite.h"

static inline struct loop_counts counts_now(void)
{
	const struct loop_counts *counts = loop_counts(runner.loop);

	return (struct loop_counts){.waits = atomic_load(&counts->waits),
				    .sends = atomic_load(&counts->sends),
				    .batched = atomic_load(&counts->batched)};
}

static inline void set_message(struct outlet *outlet, size_t id, size_t length)
{
	outlet->send.message.header = "head";
	outlet->send.message.header_length = 4;
	outlet->ranges[0] = (struct NC_range){.id = id, .length = length};
	outlet->send.message.range_count = 1;
	outlet->send.message.flags = 0;
}

static inline void expect_message(int fd, uint64_t seed, size_t length)
{
	char *got = must_alloc(length + 4);

	read_exactly(fd, got, length + 4);
	ck_assert_mem_eq(got, "head", 4);
	ck_assert_uint_eq(pattern_match(got + 4, seed, 0, length), length);
	free(got);
}

struct burst {
	struct outlet *outlets;
	unsigned count;
};

static inline void begin_burst(void *argument)
{
	const struct burst *burst = argument;

	for (unsigned i = 0; i < burst->count; i++)
		outlet_begin(&burst->outlets[i]);
}

static inline void begin_and_end(void *argument)
{
	struct outlet *outlet = argument;

	outlet_begin(outlet);
	inlet_end(&outlet->inlet);
}

#endif
