/* SPDX-License-Identifier: MIT */
/*
 * stranger.h - the owner's view of a member whose table of units the target writes:
 * for the targets of libnabc/cache/remote-member.c.
 */
#ifndef FUZZ_STRANGER_H
#define FUZZ_STRANGER_H

#include <stddef.h>
#include <stdint.h>

#include "base/fragment.h"
#include "base/id.h"
#include "cache/remote-member.h"
#include "os/segment.h"
#include "store/store.h"
#include "store/unit.h"

#include "fuzz.h"

#define STRANGER_PAGE ((size_t)4096)
#define STRANGER_SIZE (16 * STRANGER_PAGE)
#define STRANGER_SLOTS 8u

static struct nc_remote_member *stranger;
static size_t stranger_first;

static inline void stranger_admit(void)
{
	MUST(nc_remote_member_admit(stranger, STRANGER_SIZE, STRANGER_SLOTS, &stranger_first) == 0);
}

static inline void stranger_open(void)
{
	stranger = nc_remote_member_create(7, 1);
	MUST(stranger);
	stranger_admit();
}

static inline struct nc_unit_shared *stranger_entry(uint32_t slot)
{
	return (struct nc_unit_shared *)(void *)stranger->store->segment.base + slot;
}

/* The owner's copy is inside the area of units; all of it is readable. */
static inline void stranger_check(const struct nc_unit *unit)
{
	volatile char sum = 0;

	MUST(unit->at >= stranger_first && unit->at % STRANGER_PAGE == 0);
	MUST(unit->layout.size > 0 && unit->layout.size <= unit->layout.extent);
	MUST(unit->at <= STRANGER_SIZE && unit->layout.extent <= STRANGER_SIZE - unit->at);
	MUST(unit->layout.fraglen > 0 && unit->layout.fragments > 0);
	for (size_t at = 0, run; at < unit->layout.size; at += run) {
		sum += nc_unit_base(unit)[nc_layout_at(&unit->layout, at, &run)];
		MUST(run > 0);
	}
	(void)sum;
}

#endif
