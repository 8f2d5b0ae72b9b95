/* SPDX-License-Identifier: MIT */
/*
 * expiry.h - when units end by themselves: ticks, and a heap of what comes next.
 *
 * A tick is 2^24 ns, about 17 ms, of CLOCK_MONOTONIC; it has 32 bits and
 * wraps, so two ticks are compared by their distance, which a lifetime of at
 * most a year keeps below half the circle.  0 means never.  The heap is under
 * its owner's lock and knows names of units only: what was destroyed before
 * its time is told by number, and swept out when it is more than half.
 */
#ifndef NC_EXPIRY_H
#define NC_EXPIRY_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NC_TICK_SHIFT 24u
#define NC_LIFETIME_MAX_MS (UINT64_C(365) * 24 * 3600 * 1000)

struct nc_expiring {
	uint32_t tick, slot, generation;
};

struct nc_expiry {
	struct nc_expiring *heap; /* the first is the next to expire */
	uint32_t count, room;
	uint32_t stale; /* entries whose unit is gone or has another time */
};

/* Whether the entry still says what its unit says. */
typedef bool nc_expiry_valid(const struct nc_expiring *entry, void *context);

static inline uint64_t nc_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline bool nc_tick_passed(uint32_t tick, uint64_t now_ns)
{
	return (int32_t)((uint32_t)(now_ns >> NC_TICK_SHIFT) - tick) >= 0;
}

/* The first tick that is not before that time; never 0. */
uint32_t nc_tick_after(uint64_t ns);

void nc_expiry_fini(struct nc_expiry *expiry);

/* 0 or -ENOMEM. */
int nc_expiry_add(struct nc_expiry *expiry, const struct nc_expiring *entry);

/* One entry more is stale; sweeps when most are. */
void nc_expiry_forget(struct nc_expiry *expiry, nc_expiry_valid *valid, void *context);

/* Takes the next valid entry whose tick has passed. */
bool nc_expiry_pop(struct nc_expiry *expiry, uint64_t now_ns, nc_expiry_valid *valid, void *context,
		   struct nc_expiring *entry);

/* When the first entry expires, in ns of CLOCK_MONOTONIC; 0: there is none. */
uint64_t nc_expiry_next(const struct nc_expiry *expiry, uint64_t now_ns);

#endif
