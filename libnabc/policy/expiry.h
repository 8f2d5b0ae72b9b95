/* SPDX-License-Identifier: MIT */
/*
 * expiry.h - when units expire: ticks, and a heap of the next ones.
 *
 * A tick is 2^24 ns, about 17 ms, of CLOCK_MONOTONIC.  It has 32 bits and wraps, so
 * two ticks are compared by their distance; a lifetime of at most a year keeps it
 * below half of the range.  0 means never.  The owner of the heap locks.  The heap
 * has names of units only: the caller counts entries of units that were destroyed
 * earlier, and the heap drops these when they are more than half.
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
	struct nc_expiring *heap; /* the first one expires next */
	uint32_t count, room;
	uint32_t stale;	   /* entries whose unit is gone or has a new lifetime */
	uint32_t reserved; /* places for entries that will be added */
};

/* Whether the entry still matches its unit. */
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

/* Returns the first tick not before that time; never 0. */
uint32_t nc_tick_after(uint64_t ns);

void nc_expiry_fini(struct nc_expiry *expiry);

/* Returns 0 or -ENOMEM. */
int nc_expiry_add(struct nc_expiry *expiry, const struct nc_expiring *entry);

/*
 * Reserves a place, so that adding an entry after nc_expiry_unreserve() succeeds, under the
 * same lock.  Returns 0 or -ENOMEM.
 */
int nc_expiry_reserve(struct nc_expiry *expiry);

static inline void nc_expiry_unreserve(struct nc_expiry *expiry)
{
	expiry->reserved--;
}

/* Counts one more stale entry; drops all stale ones if most are. */
void nc_expiry_forget(struct nc_expiry *expiry, nc_expiry_valid *valid, void *context);

/* Takes the next valid entry whose tick has passed. */
bool nc_expiry_pop(struct nc_expiry *expiry, uint64_t now_ns, nc_expiry_valid *valid, void *context,
		   struct nc_expiring *entry);

/* Returns when the first entry expires, in ns of CLOCK_MONOTONIC; 0: there is none. */
uint64_t nc_expiry_next(const struct nc_expiry *expiry, uint64_t now_ns);

#endif
