/* SPDX-License-Identifier: MIT */
/*
 * registered-slots.c - a ring's sparse table of registered buffers: its slots, and how much
 * they keep pinned; see registered.h.
 */
#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <linux/types.h>
#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "os/registered-internal.h"
#include "os/registered.h"

#define KEPT_SHARE 8u

/* Linux 6.14, the first feature after buffers were counted one by one; absent from 2.3's header. */
#ifndef IORING_FEAT_RW_ATTR
#define IORING_FEAT_RW_ATTR (1u << 16)
#endif

void nc_registered_budget_init(struct nc_registered_budget *budget, const struct io_uring *uring,
			       size_t memory)
{
	*budget = (struct nc_registered_budget){
		.limit = uring && uring->features & IORING_FEAT_RW_ATTR ? UINT64_MAX
									: memory / KEPT_SHARE};
}

static void charge(struct nc_registered *table, uint64_t bytes)
{
	atomic_fetch_add_explicit(&table->budget->used, bytes, memory_order_relaxed);
}

static void discharge(struct nc_registered *table, uint64_t bytes)
{
	atomic_fetch_sub_explicit(&table->budget->used, bytes, memory_order_relaxed);
}

bool nc_registered_is_owner(const struct nc_registered *table)
{
	return !table->owned || pthread_equal(table->owner, pthread_self());
}

int nc_registered_update(const struct nc_registered *table, unsigned slot, void *base,
			 size_t length)
{
	const struct iovec range = {.iov_base = base, .iov_len = length};
	const __u64 tag = 0;
	int done = io_uring_register_buffers_update_tag(table->uring, slot, &range, &tag, 1);

	if (done < 0)
		return done;
	return done == 1 ? 0 : -EINVAL;
}

int nc_registered_open_slots(struct nc_registered *table)
{
	int error;

	if (table->slots)
		return 0;
	table->slots = calloc(table->slot_count, sizeof(*table->slots));
	if (!table->slots)
		return -EAGAIN;
	error = io_uring_register_buffers_sparse(table->uring, table->slot_count);
	if (error < 0) {
		free(table->slots);
		table->slots = NULL;
		return error;
	}
	for (unsigned i = 0; i < table->slot_count; i++)
		table->slots[i].free = i + 1 < table->slot_count ? i + 2 : 0;
	table->free = 1;
	return 0;
}

void nc_registered_enter(struct nc_registered *table, const struct nc_registered_slot *slot)
{
	unsigned number = table->free - 1;

	table->free = table->slots[number].free;
	table->slots[number] = *slot;
	slot->of->blocks[slot->block].slot = number + 1;
	table->counts.bytes += slot->length;
	table->counts.blocks++;
	charge(table, slot->length);
}

/* Tries to unpin the slot's memory; if that is not possible now, later once more. */
static void unpin(struct nc_registered *table, struct nc_registered_slot *slot)
{
	unsigned number = (unsigned)(slot - table->slots);

	if (!nc_registered_is_owner(table) || nc_registered_update(table, number, NULL, 0))
		return;
	table->uncleared--;
	table->counts.bytes -= slot->length;
	discharge(table, slot->length);
	*slot = (struct nc_registered_slot){.free = table->free};
	table->free = number + 1;
}

static void forget_kept(struct nc_registered *table, unsigned period)
{
	discharge(table, table->kept[period]);
	table->kept[period] = 0;
}

void nc_registered_turn(struct nc_registered *table)
{
	unsigned before = !table->period;

	if (table->sends[before])
		return;
	forget_kept(table, before);
	table->period = before;
	if (table->sends[!before] == 0)
		forget_kept(table, !before);
}

bool nc_registered_fits(struct nc_registered *table, size_t length)
{
	nc_registered_turn(table);
	return atomic_load_explicit(&table->budget->used, memory_order_relaxed) + length <=
	       table->budget->limit;
}

void nc_registered_clear_slot(struct nc_registered *table, struct nc_registered_slot *slot)
{
	assert(slot->users == 0);
	if (table->sends[0] || table->sends[1]) {
		table->kept[table->period] += slot->length;
		charge(table, slot->length);
	}
	slot->of->blocks[slot->block] = (struct nc_registered_block){0};
	slot->of = NULL;
	slot->uncleared = true;
	table->uncleared++;
	unpin(table, slot);
}

void nc_registered_clear_rest(struct nc_registered *table)
{
	for (unsigned i = 0; table->uncleared && i < table->slot_count; i++)
		if (table->slots[i].uncleared)
			unpin(table, &table->slots[i]);
}

bool nc_registered_clear_oldest(struct nc_registered *table, uint64_t now)
{
	struct nc_registered_slot *oldest = NULL;

	for (unsigned i = 0; i < table->slot_count; i++) {
		struct nc_registered_slot *slot = &table->slots[i];

		if (slot->of && !slot->users && now - slot->used >= table->idle &&
		    (!oldest || slot->used < oldest->used))
			oldest = slot;
	}
	if (oldest)
		nc_registered_clear_slot(table, oldest);
	return oldest != NULL;
}

void nc_registered_clear(struct nc_registered *table)
{
	pthread_mutex_lock(&table->lock);
	nc_registered_clear_rest(table);
	pthread_mutex_unlock(&table->lock);
}

void nc_registered_ended(struct nc_registered *table, unsigned period)
{
	pthread_mutex_lock(&table->lock);
	if (--table->sends[period] == 0 && !table->closed)
		nc_registered_turn(table);
	nc_registered_unreference(table);
}

static void free_slots(struct nc_registered *table)
{
	for (unsigned i = 0; table->slots && i < table->slot_count; i++)
		if (table->slots[i].of)
			nc_registered_clear_slot(table, &table->slots[i]);
	/* What could not be cleared ends with the ring. */
	discharge(table, table->counts.bytes + table->kept[0] + table->kept[1]);
	free(table->slots);
	table->slots = NULL;
}

void nc_registered_unreference(struct nc_registered *table)
{
	bool last = --table->references == 0;

	pthread_mutex_unlock(&table->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&table->lock);
	free(table);
}

void nc_registered_close(struct nc_registered *table)
{
	pthread_mutex_lock(&table->lock);
	free_slots(table);
	table->closed = true;
	nc_registered_unreference(table);
}
