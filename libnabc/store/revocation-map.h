/* SPDX-License-Identifier: MIT */
/*
 * revocation-map.h - shared memory in which the owner marks which of the units
 * exported to a member are still valid.
 *
 * The member checks it before each use, so a revoked or destroyed unit is refused
 * without a message.  Only the owner can write to it.  (A process that bypasses the
 * library keeps what it has already mapped: the owner cannot unmap that, but it
 * gets nothing new.)
 */
#ifndef NC_REVOCATION_MAP_H
#define NC_REVOCATION_MAP_H

#include <stdatomic.h>
#include <stdint.h>

#include "os/segment.h"

#define NC_REVOCATION_MAP_SLOTS 4096u
#define NC_REVOCATION_MAP_SIZE (NC_REVOCATION_MAP_SLOTS * sizeof(uint64_t))

/*
 * Values of a slot; any other value is the id of a valid unit.  Neither of these is
 * an id: ids have a generation in their lowest bits (id.h).
 */
#define NC_REVOCATION_DESTROYED UINT64_C(0)
#define NC_REVOCATION_REVOKED (UINT64_C(1) << 63)

struct nc_revocation_map {
	struct nc_segment segment; /* base NULL: not opened */
	uint64_t used[NC_REVOCATION_MAP_SLOTS / 64];
	uint32_t hint;
};

static inline _Atomic uint64_t *nc_revocation_map_slot(const struct nc_segment *segment,
						       uint32_t slot)
{
	return (_Atomic uint64_t *)(void *)segment->base + slot;
}

/* The owner's end; the caller locks. */
int nc_revocation_map_open(struct nc_revocation_map *map);
void nc_revocation_map_close(struct nc_revocation_map *map);

/* Returns a slot that contains the id, or -ENOSPC. */
int nc_revocation_map_add(struct nc_revocation_map *map, uint64_t id);

/* Marks the unit as invalid for that reason; the slot remains occupied. */
void nc_revocation_map_revoke(struct nc_revocation_map *map, uint32_t slot, uint64_t reason);
void nc_revocation_map_free(struct nc_revocation_map *map, uint32_t slot);

/*
 * The member's end: returns the value of a slot.  Pairs with the releases in
 * nc_revocation_map_add() and _revoke().
 */
static inline uint64_t nc_revocation_map_read(const struct nc_segment *segment, uint32_t slot)
{
	return atomic_load_explicit(nc_revocation_map_slot(segment, slot), memory_order_acquire);
}

#endif
