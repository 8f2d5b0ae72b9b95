/* SPDX-License-Identifier: MIT */
/* client-pause.c - a binary heap, the earliest time on top; see client-pause.h. */
#include <stdlib.h>

#include "client-pause.h"

bool pauses_open(struct pauses *pauses, uint32_t room)
{
	*pauses = (struct pauses){.heap = calloc(room, sizeof(pauses->heap[0])), .room = room};
	return pauses->heap;
}

void pauses_close(struct pauses *pauses)
{
	free(pauses->heap);
	*pauses = (struct pauses){0};
}

void pauses_add(struct pauses *pauses, uint64_t until, uint32_t who)
{
	struct pause *heap = pauses->heap;
	uint32_t at = pauses->count++;

	while (at && heap[(at - 1) / 2].until > until) {
		heap[at] = heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap[at] = (struct pause){until, who};
}

uint64_t pauses_next(const struct pauses *pauses)
{
	return pauses->count ? pauses->heap[0].until : UINT64_MAX;
}

bool pauses_take(struct pauses *pauses, uint64_t now, uint32_t *who)
{
	struct pause *heap = pauses->heap, last;
	uint32_t at = 0, count;

	if (pauses_next(pauses) > now)
		return false;
	*who = heap[0].who;
	count = --pauses->count;
	last = heap[count];
	for (uint32_t child = 1; child < count; child = 2 * at + 1) {
		if (child + 1 < count && heap[child + 1].until < heap[child].until)
			child++;
		if (heap[child].until >= last.until)
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
	return true;
}
