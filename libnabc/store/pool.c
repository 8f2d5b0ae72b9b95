/* SPDX-License-Identifier: MIT */
/* pool.c - keeps stores and units consistent; see pool.h for the locks. */

#include <nabc.h>
#include <stdatomic.h>

#include "os/segment.h"
#include "policy/cleaning.h"
#include "store/memory-wait.h"
#include "store/pool.h"
#include "store/store.h"

void nc_pool_lock(struct nc_member *member)
{
	pthread_mutex_lock(&member->lock);
}

/*
 * The reason was written under the lock, or is a hold that was released.  nc_maintenance_step()
 * clears the flag before it takes the lock, and looks at holds as nc_search_idle() does: so either
 * it sees the reason, or this finds the flag cleared.
 */
void nc_pool_wake(struct nc_member *member)
{
	if (member->wake && !atomic_exchange(&member->woken, true))
		member->wake(member->wake_context);
}

void nc_pool_unlock(struct nc_member *member)
{
	struct nc_store *store = member->closing;
	bool due = member->due;

	member->closing = NULL;
	member->due = false;
	pthread_mutex_unlock(&member->lock);
	/* Freeing pages takes long; therefore the lock is not held. */
	while (store) {
		struct nc_store *next = store->next;

		nc_store_close(store);
		store = next;
	}
	if (due)
		nc_pool_wake(member);
}

static bool is_run(const struct nc_store *store)
{
	return store->kind == NC_KIND_RECYCLED && !store->alone;
}

void nc_pool_add_store(struct nc_member *member, struct nc_store *store)
{
	store->weight.opened = ++member->opened;
	store->weight.size = store->segment.size;
	store->previous = NULL;
	store->next = member->stores;
	if (store->next)
		store->next->previous = store;
	else
		member->oldest = store;
	member->stores = store;
	if (is_run(store)) {
		store->next_run = member->runs;
		member->runs = store;
		member->empties++;
	}
	if (member->used > member->high)
		nc_pool_due(member);
}

void nc_pool_close_store(struct nc_member *member, struct nc_store *store)
{
	if (store->next)
		store->next->previous = store->previous;
	else
		member->oldest = store->previous;
	if (store->previous)
		store->previous->next = store->next;
	else
		member->stores = store->next;
	if (is_run(store)) {
		struct nc_store **link = &member->runs;

		while (*link != store)
			link = &(*link)->next_run;
		*link = store->next_run;
		member->empties--;
		if (member->hint == store)
			member->hint = NULL;
	}
	if (member->appended == store)
		member->appended = NULL;
	if (member->weighing == store)
		member->weighing = store->next;
	nc_pool_discharge(member, store->segment.size + store->copied, store->counted);
	member->closed++;
	store->next = member->closing;
	member->closing = store;
}

void nc_pool_grow_log(struct nc_member *member, struct nc_store *store)
{
	struct nc_store *old = member->appended;

	member->appended = store;
	if (!old)
		return;
	/* From now on only its units keep it open. */
	old->full = true;
	nc_pool_settle(member, old);
}

void nc_pool_enter(struct nc_member *member, struct nc_store *store, struct nc_unit *unit,
		   uint64_t at)
{
	if (is_run(store) && store->count == 0)
		member->empties--;
	nc_store_enter(store, &member->units, unit, at);
}

void nc_pool_leave(struct nc_member *member, struct nc_unit *unit)
{
	struct nc_store *store = unit->store;

	nc_store_leave(store, &member->units, unit);
	if (is_run(store) && store->count == 0 && ++member->empties > 1)
		nc_pool_due(member);
}

void nc_pool_settle(struct nc_member *member, struct nc_store *store)
{
	if (!store->full || atomic_load_explicit(&store->filling, memory_order_acquire))
		return;
	/* An empty log segment is useless; empty recycled pages will be used again. */
	if (store->count == 0 && !store->busy) {
		nc_pool_close_store(member, store);
	} else if (store->kind == NC_KIND_APPENDED && !store->sealed) {
		store->sealed = true;
		(void)nc_segment_seal(&store->segment);
	}
}

struct nc_replacement *nc_pool_order(struct nc_member *member, const struct nc_unit *unit)
{
	unsigned priority = atomic_load_explicit(&unit->priority, memory_order_relaxed);

	return member->shared || priority >= NC_PRIORITIES ? NULL : &member->orders[priority];
}

bool nc_pool_expiry_valid(const struct nc_expiring *entry, void *context)
{
	const struct nc_member *member = context;
	const struct nc_unit *unit = nc_units_at(&member->units, entry->slot);
	uint64_t word = nc_unit_word(unit);

	return nc_word_generation(word) == entry->generation &&
	       nc_word_state(word) == NC_UNIT_LIVE &&
	       atomic_load_explicit(&unit->expires, memory_order_relaxed) == entry->tick;
}

void nc_pool_give(struct nc_member *member, struct nc_unit *unit)
{
	struct nc_store *store = unit->store;
	struct nc_replacement *order = nc_pool_order(member, unit);
	bool expires = atomic_load_explicit(&unit->expires, memory_order_relaxed) != 0;

	if (order)
		nc_replacement_remove(order, &unit->order);
	else if (!member->shared)
		member->pinned--;
	nc_pool_leave(member, unit);
	nc_units_give(&member->units, unit);
	if (expires)
		nc_expiry_forget(&member->expiry, nc_pool_expiry_valid, member);
	nc_pool_settle(member, store);
	nc_memory_wake(member->waiting);
}

void nc_pool_notify_if_granted(struct nc_member *member, const struct nc_unit *unit,
			       unsigned generation)
{
	/* Sequentially consistent, like nc_unit_unlink(), and still_there() of grant-ops.c. */
	if (member->gone && atomic_load(&unit->granted))
		member->gone(member->gone_context, unit, generation);
}

void nc_pool_notify_evicted(struct nc_member *member, const struct nc_unit *unit,
			    unsigned generation, enum NC_eviction why)
{
	if (!member->evicted)
		return;
	member->evicted(member->evicted_context, unit, generation, why);
	/* The thread that dispatches reports it. */
	nc_pool_due(member);
}

bool nc_pool_evict(struct nc_member *member, struct nc_unit *unit)
{
	unsigned generation;

	if (!nc_unit_unlink_idle(unit))
		return false;
	generation = nc_word_generation(nc_unit_word(unit));
	nc_pool_notify_if_granted(member, unit, generation);
	nc_pool_notify_evicted(member, unit, generation, NC_EVICTION_MEMORY);
	member->evictions++;
	nc_pool_give(member, unit);
	return true;
}

void nc_pool_drop(struct nc_member *member, struct nc_unit *unit, unsigned generation,
		  enum NC_eviction why)
{
	int last = nc_unit_unlink(unit, generation);

	if (last < 0)
		return;
	if (why == NC_EVICTION_CORRUPT)
		member->corrupt++;
	else
		member->expired++;
	nc_pool_notify_if_granted(member, unit, generation);
	nc_pool_notify_evicted(member, unit, generation, why);
	if (last > 0)
		nc_pool_give(member, unit);
}
