/* SPDX-License-Identifier: MIT */
/*
 * revocation-map.c - the owner's end of a revocation map; see revocation-map.h.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/fragment.h"
#include "base/id.h"
#include "store/revocation-map.h"
#include "wire/wire.h"

static_assert(NC_REVOCATION_REVOKED % (NC_ID_GENERATION_MAX + UINT64_C(1)) == 0, "is no id");
static_assert(NC_REVOCATION_MAP_SIZE % NC_PAGE == 0, "whole pages");
static_assert(NC_REVOCATION_MAP_SIZE == NC_WIRE_MAP_SIZE, "ABI of the revocation map");

int nc_revocation_map_open(struct nc_revocation_map *map)
{
	int error;

	*map = (struct nc_revocation_map){0};
	error = nc_segment_create(&map->segment, NC_REVOCATION_MAP_SIZE, false, false);
	if (!error) {
		/* The owner keeps its mapping; no process can create another writable one. */
		error = nc_segment_seal(&map->segment);
		if (error)
			nc_segment_close(&map->segment);
	}
	return error;
}

void nc_revocation_map_close(struct nc_revocation_map *map)
{
	if (map->segment.base)
		nc_segment_close(&map->segment);
}

int nc_revocation_map_add(struct nc_revocation_map *map, uint64_t id)
{
	for (uint32_t i = 0; i < NC_REVOCATION_MAP_SLOTS / 64; i++) {
		uint32_t word = (map->hint + i) % (NC_REVOCATION_MAP_SLOTS / 64);
		uint32_t slot;

		if (map->used[word] == UINT64_MAX)
			continue;
		slot = word * 64 + (uint32_t)__builtin_ctzll(~map->used[word]);
		map->used[word] |= UINT64_C(1) << slot % 64;
		map->hint = word;
		atomic_store_explicit(nc_revocation_map_slot(&map->segment, slot), id,
				      memory_order_release);
		return (int)slot;
	}
	return -ENOSPC;
}

void nc_revocation_map_revoke(struct nc_revocation_map *map, uint32_t slot, uint64_t reason)
{
	atomic_store_explicit(nc_revocation_map_slot(&map->segment, slot), reason,
			      memory_order_release);
}

void nc_revocation_map_free(struct nc_revocation_map *map, uint32_t slot)
{
	nc_revocation_map_revoke(map, slot, NC_REVOCATION_DESTROYED);
	map->used[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}
