/* SPDX-License-Identifier: MIT */
/* expiry.c - a binary heap by tick; see expiry.h.  It owns its array. */
#include <errno.h>
#include <stdlib.h>

#include "policy/expiry.h"

#define ROOM_MIN 64u

uint32_t nc_tick_after(uint64_t ns)
{
	uint32_t tick = (uint32_t)((ns + (UINT64_C(1) << NC_TICK_SHIFT) - 1) >> NC_TICK_SHIFT);

	return tick ? tick : 1;
}

void nc_expiry_fini(struct nc_expiry *expiry)
{
	free(expiry->heap);
	*expiry = (struct nc_expiry){0};
}

static bool before(const struct nc_expiring *a, const struct nc_expiring *b)
{
	return (int32_t)(a->tick - b->tick) < 0;
}

static void rise(struct nc_expiring *heap, uint32_t place, struct nc_expiring entry)
{
	while (place && before(&entry, &heap[(place - 1) / 2])) {
		heap[place] = heap[(place - 1) / 2];
		place = (place - 1) / 2;
	}
	heap[place] = entry;
}

static void sink(struct nc_expiring *heap, uint32_t count, uint32_t place, struct nc_expiring entry)
{
	for (;;) {
		uint32_t next = 2 * place + 1;

		if (next + 1 < count && before(&heap[next + 1], &heap[next]))
			next++;
		if (next >= count || !before(&heap[next], &entry))
			break;
		heap[place] = heap[next];
		place = next;
	}
	heap[place] = entry;
}

/* Ensures that there is a place for one more entry. */
static int grow(struct nc_expiry *expiry)
{
	uint32_t room = expiry->room ? 2 * expiry->room : ROOM_MIN;
	struct nc_expiring *heap;

	if (expiry->count + expiry->reserved < expiry->room)
		return 0;
	heap = reallocarray(expiry->heap, room, sizeof(heap[0]));
	if (!heap)
		return -ENOMEM;
	expiry->heap = heap;
	expiry->room = room;
	return 0;
}

int nc_expiry_add(struct nc_expiry *expiry, const struct nc_expiring *entry)
{
	int error = grow(expiry);

	if (!error)
		rise(expiry->heap, expiry->count++, *entry);
	return error;
}

int nc_expiry_reserve(struct nc_expiry *expiry)
{
	int error = grow(expiry);

	expiry->reserved += !error;
	return error;
}

static void sweep(struct nc_expiry *expiry, nc_expiry_valid *valid, void *context)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < expiry->count; i++)
		if (valid(&expiry->heap[i], context))
			expiry->heap[kept++] = expiry->heap[i];
	expiry->count = kept;
	expiry->stale = 0;
	for (uint32_t place = kept / 2; place--;)
		sink(expiry->heap, kept, place, expiry->heap[place]);
}

void nc_expiry_forget(struct nc_expiry *expiry, nc_expiry_valid *valid, void *context)
{
	if (++expiry->stale > ROOM_MIN && expiry->stale > expiry->count / 2)
		sweep(expiry, valid, context);
}

static void take_first(struct nc_expiry *expiry)
{
	struct nc_expiring last = expiry->heap[--expiry->count];

	if (expiry->count)
		sink(expiry->heap, expiry->count, 0, last);
}

bool nc_expiry_pop(struct nc_expiry *expiry, uint64_t now_ns, nc_expiry_valid *valid, void *context,
		   struct nc_expiring *entry)
{
	while (expiry->count && nc_tick_passed(expiry->heap[0].tick, now_ns)) {
		*entry = expiry->heap[0];
		take_first(expiry);
		if (valid(entry, context))
			return true;
		if (expiry->stale)
			expiry->stale--;
	}
	return false;
}

uint64_t nc_expiry_next(const struct nc_expiry *expiry, uint64_t now_ns)
{
	uint64_t now = now_ns >> NC_TICK_SHIFT;

	if (!expiry->count)
		return 0;
	return (now + (uint64_t)(int64_t)(int32_t)(expiry->heap[0].tick - (uint32_t)now))
	       << NC_TICK_SHIFT;
}
