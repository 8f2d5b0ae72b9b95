/* SPDX-License-Identifier: MIT */
/* inspect.c - reports units and counters; see inspect.h. */
#include <nabc-worker.h>
#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/fragment.h"
#include "base/hash-table.h"
#include "base/id.h"
#include "cache/grant.h"
#include "cache/import.h"
#include "cache/index.h"
#include "cache/inspect.h"
#include "cache/remote-member.h"
#include "os/pin.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

static void describe(const struct nc_layout *layout, enum NC_kind kind, size_t id,
		     struct NC_stat *stat)
{
	/* Clear the padding too: it is sent to other processes. */
	memset(stat, 0, sizeof(*stat));
	stat->id = id;
	stat->size = layout->size;
	stat->fraglen = layout->fraglen;
	stat->fragments = layout->fragments;
	stat->kind = kind;
	stat->member = nc_id_member(id);
}

static void describe_held(const struct nc_unit *unit, size_t id, struct NC_stat *stat)
{
	const struct nc_store *store = unit->store;
	/* The module had no memory when the unit left its buffer. */
	bool outside = store->kind == NC_KIND_KERNEL && !store->device;

	describe(&unit->layout, outside ? NC_KIND_RECYCLED : store->kind, id, stat);
	/* Do not count the hold of this function. */
	stat->holds = nc_word_holds(nc_unit_word(unit)) - 1;
}

int nc_inspect_unit(struct nc_index *index, size_t id, struct NC_stat *stat)
{
	struct nc_view view;
	int error = nc_index_hold(index, id, false, &view);

	if (error)
		return error;
	describe_held(view.unit, id, stat);
	stat->session = nc_grants_session(&index->grants, id, &stat->since);
	return nc_index_release(index, id);
}

/* A position in the list of places: as an id with generation 0, which no unit has. */
static size_t place(unsigned member, uint32_t slot)
{
	return nc_id(member, slot, 0);
}

static unsigned list_own(struct nc_index *index, uint32_t *slot, struct NC_stat *units,
			 unsigned count)
{
	struct nc_member *own = &index->own;
	unsigned filled = 0;
	uint32_t end;

	pthread_mutex_lock(&own->lock);
	end = own->units.count;
	pthread_mutex_unlock(&own->lock);
	for (; *slot < end && filled < count; ++*slot) {
		struct nc_unit *unit = nc_units_at(&own->units, *slot);
		unsigned generation = unit ? nc_word_generation(nc_unit_word(unit)) : 0;

		/* Listing is not a use: the eviction order does not change. */
		if (!unit || nc_unit_hold(unit, generation, false))
			continue;
		if (nc_unit_expired(unit)) {
			(void)nc_member_release(own, unit, generation);
			continue;
		}
		describe_held(unit, nc_index_id(index, *slot, generation), &units[filled++]);
		(void)nc_member_release(own, unit, generation);
	}
	if (*slot >= end)
		*slot = NC_UNIT_NONE;
	return filled;
}

static unsigned list_remote(struct nc_remote_member *remote, uint32_t *slot, struct NC_stat *units,
			    unsigned count)
{
	struct nc_unit_description description;
	unsigned generation, filled = 0;

	while (filled < count && nc_remote_member_next(remote, slot, &generation, &description)) {
		describe(&description.layout,
			 description.kernel ? NC_KIND_KERNEL : NC_KIND_RECYCLED,
			 nc_id(remote->number, *slot, generation), &units[filled]);
		filled++;
		++*slot;
	}
	if (filled < count)
		*slot = NC_UNIT_NONE;
	return filled;
}

unsigned nc_inspect_list(struct nc_index *index, size_t *cursor, struct NC_stat *units,
			 unsigned count)
{
	unsigned member = nc_id_member(*cursor), filled = 0, last;
	uint32_t slot = nc_id_slot(*cursor);

	if (!index->owner) {
		filled = list_own(index, &slot, units, count);
		*cursor = slot == NC_UNIT_NONE ? 0 : place(index->own.number, slot);
		return filled;
	}
	pthread_mutex_lock(&index->lock);
	last = index->numbers;
	pthread_mutex_unlock(&index->lock);
	for (; member < last && filled < count; member++, slot = 0) {
		struct nc_remote_member *remote =
			member ? atomic_load_explicit(&index->remotes[member], memory_order_acquire)
			       : NULL;

		if (!remote && member)
			continue;
		filled += remote ? list_remote(remote, &slot, units + filled, count - filled)
				 : list_own(index, &slot, units + filled, count - filled);
		if (slot != NC_UNIT_NONE)
			break;
	}
	*cursor = member < last ? place(member, slot == NC_UNIT_NONE ? 0 : slot) : 0;
	return filled;
}

void nc_inspect_counters(struct nc_index *index, struct NC_cache_stat *stat)
{
	struct NC_method_count *const by[] = {
		[NC_METHOD_COPY] = &stat->by_copy,
		[NC_METHOD_SPLICE] = &stat->by_splice,
		[NC_METHOD_ZEROCOPY] = &stat->by_zerocopy,
		[NC_METHOD_KERNEL] = &stat->by_kernel,
	};
	struct nc_member *own = &index->own;

	*stat = (struct NC_cache_stat){0};
	pthread_mutex_lock(&own->lock);
	stat->size = own->budget;
	stat->used = own->used;
	/*
	 * These are all the ways in which an owner's units end; a member's units
	 * can also end in the owner.
	 */
	stat->units = index->owner ? own->inserts - own->destroys - own->evictions - own->expired -
					     own->corrupt
				   : own->units.live;
	stat->inserts = own->inserts;
	stat->destroys = own->destroys;
	stat->evictions = own->evictions;
	stat->segments_closed = own->closed;
	stat->failures = own->failures;
	stat->failures_table = own->failures_table;
	stat->failures_system = own->failures_system;
	stat->pinned = own->pinned;
	stat->expired = own->expired;
	stat->cleaned = own->cleaned;
	stat->copied_units = own->copied_units;
	stat->copied_bytes = own->copied_bytes;
	stat->scrubbed = own->scrubbed;
	stat->corrupt = own->corrupt;
	pthread_mutex_unlock(&own->lock);
	stat->locked_bytes = atomic_load_explicit(&index->pin.locked, memory_order_relaxed);
	stat->unlocked_bytes = atomic_load_explicit(&index->pin.unlocked, memory_order_relaxed);
	if (!index->owner) {
		pthread_mutex_lock(&index->imports.lock);
		stat->units += index->imports.table.count;
		stat->inserts += index->imports.inserts;
		pthread_mutex_unlock(&index->imports.lock);
	}
	pthread_mutex_lock(&index->lock);
	stat->members = index->members;
	pthread_mutex_unlock(&index->lock);
	for (unsigned i = 0; i < NC_COUNTER_SHARDS; i++) {
		struct nc_counters *counters = &index->counters[i];

		for (unsigned method = 0; method < 4; method++) {
			by[method]->sends += atomic_load_explicit(&counters->sends[method],
								  memory_order_relaxed);
			by[method]->bytes += atomic_load_explicit(&counters->bytes[method],
								  memory_order_relaxed);
		}
		stat->hits += atomic_load_explicit(&counters->hits, memory_order_relaxed);
		stat->stale += atomic_load_explicit(&counters->stale, memory_order_relaxed);
		stat->denied += atomic_load_explicit(&counters->denied, memory_order_relaxed);
		stat->kernel_memory +=
			atomic_load_explicit(&counters->kernel_memory, memory_order_relaxed);
		stat->kernel_copies +=
			atomic_load_explicit(&counters->kernel_copies, memory_order_relaxed);
		stat->kernel_copied_bytes +=
			atomic_load_explicit(&counters->kernel_copied_bytes, memory_order_relaxed);
		stat->zerocopy_copied +=
			atomic_load_explicit(&counters->zerocopy_copied, memory_order_relaxed);
	}
}
