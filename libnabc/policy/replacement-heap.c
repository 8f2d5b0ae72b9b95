/* SPDX-License-Identifier: MIT */
/*
 * replacement-heap.c - the heap of the policies that rank by a key: LRU and GDSF.
 *
 * It is lazy: a use only raises the entry's key, and the heap remains ordered by
 * remembered keys.  Since keys never decrease, an entry whose remembered key is the
 * least and still current is the least of all; one whose key has grown first moves
 * down.  It owns the heap's array.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "policy/replacement-internal.h"
#include "policy/replacement.h"

#define HEAP_ROOM_MIN 64u
#define HEAP_ROOM_MAX (UINT32_MAX / 2)

static void put(struct nc_replacement *order, uint32_t place, struct nc_replaceable *entry)
{
	order->heap[place] = entry;
	entry->ranked.place = place;
}

static void rise(struct nc_replacement *order, struct nc_replaceable *entry)
{
	uint32_t place = entry->ranked.place;

	while (place) {
		struct nc_replaceable *above = order->heap[(place - 1) / 2];

		if (above->ranked.remembered <= entry->ranked.remembered)
			break;
		put(order, place, above);
		place = (place - 1) / 2;
	}
	put(order, place, entry);
}

static void sink(struct nc_replacement *order, struct nc_replaceable *entry)
{
	uint32_t place = entry->ranked.place;

	for (;;) {
		uint32_t next = 2 * place + 1;

		if (next >= order->count)
			break;
		if (next + 1 < order->count &&
		    order->heap[next + 1]->ranked.remembered < order->heap[next]->ranked.remembered)
			next++;
		if (order->heap[next]->ranked.remembered >= entry->ranked.remembered)
			break;
		put(order, place, order->heap[next]);
		place = next;
	}
	put(order, place, entry);
}

static int heap_reserve(struct nc_replacement *order)
{
	struct nc_replaceable **heap;
	uint32_t room;

	if (order->count < order->room)
		return 0;
	if (order->room > HEAP_ROOM_MAX)
		return -ENOMEM;
	/* By a quarter: unused elements count as overhead per unit. */
	room = order->room < HEAP_ROOM_MIN ? HEAP_ROOM_MIN : order->room + order->room / 4;
	heap = reallocarray(order->heap, room, sizeof(heap[0]));
	if (!heap)
		return -ENOMEM;
	order->heap = heap;
	order->room = room;
	return 0;
}

int nc_replacement_heap_add(struct nc_replacement *order, struct nc_replaceable *entry, double key)
{
	int error = heap_reserve(order);

	if (error)
		return error;
	nc_replacement_store(&entry->ranked.key, key);
	entry->ranked.remembered = key;
	entry->ranked.place = order->count++;
	rise(order, entry);
	return 0;
}

void nc_replacement_heap_remove(struct nc_replacement *order, struct nc_replaceable *entry)
{
	uint32_t place = entry->ranked.place;
	struct nc_replaceable *last = order->heap[--order->count];

	if (last == entry)
		return;
	put(order, place, last);
	rise(order, last);
	sink(order, last);
}

struct nc_replaceable *nc_replacement_heap_least(struct nc_replacement *order)
{
	for (;;) {
		struct nc_replaceable *entry = order->heap[0];
		double key = nc_replacement_load(&entry->ranked.key);

		if (key <= entry->ranked.remembered)
			return entry;
		entry->ranked.remembered = key;
		sink(order, entry);
	}
}

struct nc_replaceable *nc_replacement_heap_victim(struct nc_replacement *order,
						  bool (*may_evict)(struct nc_replaceable *entry,
								    void *context),
						  void *context)
{
	struct nc_replaceable *entry = NULL;
	uint32_t all = order->count;

	while (order->count) {
		entry = nc_replacement_heap_least(order);
		if (may_evict(entry, context))
			break;
		/* Set it aside, in the place behind the heap that its removal frees. */
		nc_replacement_heap_remove(order, entry);
		put(order, order->count, entry);
		entry = NULL;
	}
	while (order->count < all)
		rise(order, order->heap[order->count++]);
	return entry;
}
