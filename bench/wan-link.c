/* SPDX-License-Identifier: MIT */
/*
 * wan-link.c - see wan-link.h.  Packets are in a ring of bytes, each after its time; a
 * record that does not fit before the ring's end begins at its start.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wan-link.h"

#define SECOND UINT64_C(1000000000)

struct record {
	uint64_t due;
	uint64_t length; /* of the packet after it; 0: the rest of the ring is void */
};

#define RECORD_MAX (sizeof(struct record) + WAN_PACKET_MAX)

static size_t record_size(uint64_t length)
{
	return sizeof(struct record) + (((size_t)length + 7) & ~(size_t)7);
}

static struct record *record_at(const struct wan_link *link, size_t at)
{
	return (struct record *)(void *)(link->ring + at);
}

/* splitmix64: good for any seed, and neighbours give different numbers. */
static uint64_t random_next(uint64_t *state)
{
	uint64_t mixed = *state += UINT64_C(0x9e3779b97f4a7c15);

	mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
	return mixed ^ mixed >> 31;
}

static bool draw(uint64_t *state, double share)
{
	return (double)(random_next(state) >> 11) * 0x1p-53 < share;
}

/* Drawn for each packet, so that other events do not change its fate. */
static bool is_lost(struct wan_link *link)
{
	return draw(&link->random, link->settings.loss);
}

int wan_link_init(struct wan_link *link, const struct wan_settings *settings)
{
	size_t size = (size_t)(settings->room & ~UINT64_C(7));

	*link = (struct wan_link){
		.settings = *settings, .random = settings->seed, .disorder = ~settings->seed};
	/* One beyond the end, for packets that are read only to be dropped. */
	link->size = size < 2 * RECORD_MAX ? 2 * RECORD_MAX : size;
	link->ring = malloc(link->size + RECORD_MAX);
	if (settings->reorder > 0)
		link->late = malloc(WAN_LATE_MAX * sizeof(*link->late));
	if (link->ring && (link->late || !(settings->reorder > 0)))
		return 0;
	wan_link_fini(link);
	return -ENOMEM;
}

void wan_link_fini(struct wan_link *link)
{
	free(link->ring);
	free(link->late);
	link->ring = NULL;
	link->late = NULL;
}

static bool is_empty(const struct wan_link *link)
{
	return link->head == link->tail && !link->wrapped;
}

/* Returns where a record of any length fits; the link's size if nowhere. */
static size_t place(struct wan_link *link)
{
	if (is_empty(link))
		link->head = link->tail = 0;
	if (!link->wrapped && link->size - link->tail < RECORD_MAX) {
		if (link->head < RECORD_MAX)
			return link->size;
		if (link->size - link->tail >= sizeof(struct record))
			record_at(link, link->tail)->length = 0;
		link->tail = 0;
		link->wrapped = true;
	}
	if (link->wrapped && link->head - link->tail < RECORD_MAX)
		return link->size;
	return link->tail;
}

void *wan_link_room(struct wan_link *link)
{
	return record_at(link, place(link)) + 1;
}

/* Returns the time for bytes on the wire. */
static uint64_t wire_time(const struct wan_link *link, uint64_t bytes)
{
	return bytes * 8 * SECOND / link->settings.rate;
}

/* Queues for the wire.  Returns false if the queue is full. */
static bool queue(struct wan_link *link, uint64_t now, size_t length)
{
	uint64_t start = link->free_at > now ? link->free_at : now;

	if (link->settings.rate) {
		if (start - now > wire_time(link, link->settings.queue))
			return false;
		start += wire_time(link, length);
	}
	link->free_at = start;
	return true;
}

/* Appends a packet after all in flight; its bytes are at `at`. */
static void append(struct wan_link *link, size_t at, uint64_t due, size_t length)
{
	record_at(link, at)->due = due;
	record_at(link, at)->length = length;
	link->tail = at + record_size(length);
}

/* Stores a packet that others overtake.  Returns false if too many are stored. */
static bool set_aside(struct wan_link *link, const void *packet, uint64_t due, size_t length)
{
	struct wan_late *late;

	if (link->late_count == WAN_LATE_MAX)
		return false;
	late = &link->late[link->late_count++];
	late->due = due + random_next(&link->disorder) % (link->settings.late + 1);
	late->length = length;
	memcpy(late->packet, packet, length);
	link->counts.late++;
	return true;
}

/* Sends a packet a second time, if there is space. */
static void repeat(struct wan_link *link, const void *packet, uint64_t due, size_t length)
{
	size_t at = place(link);

	if (at == link->size)
		return;
	memmove(record_at(link, at) + 1, packet, length);
	append(link, at, due, length);
	link->counts.duplicated++;
}

void wan_link_put(struct wan_link *link, uint64_t now, size_t length)
{
	const void *packet;
	uint64_t due;
	size_t at = place(link);

	link->counts.packets++;
	link->counts.bytes += length;
	if (is_lost(link)) {
		link->counts.lost++;
		return;
	}
	if (at == link->size || !queue(link, now, length)) {
		link->counts.overflowed++;
		return;
	}
	due = link->free_at + link->settings.delay;
	packet = record_at(link, at) + 1;
	if (!draw(&link->disorder, link->settings.reorder) || !set_aside(link, packet, due, length))
		append(link, at, due, length);
	if (draw(&link->disorder, link->settings.duplicate))
		repeat(link, packet, due, length);
}

static uint64_t head_due(const struct wan_link *link)
{
	return is_empty(link) ? UINT64_MAX : record_at(link, link->head)->due;
}

/* Returns the late one that leaves next; NULL: the next is in the ring. */
static struct wan_late *late_first(const struct wan_link *link)
{
	uint64_t due = head_due(link);
	struct wan_late *first = NULL;

	for (unsigned i = 0; i < link->late_count; i++) {
		if (link->late[i].due >= due)
			continue;
		first = &link->late[i];
		due = first->due;
	}
	return first;
}

uint64_t wan_link_due(const struct wan_link *link)
{
	const struct wan_late *late = late_first(link);

	return late ? late->due : head_due(link);
}

const void *wan_link_first(const struct wan_link *link, uint64_t now, size_t *length)
{
	const struct wan_late *late = late_first(link);
	const struct record *record = record_at(link, link->head);

	if (late) {
		*length = late->length;
		return late->due > now ? NULL : late->packet;
	}
	if (is_empty(link) || record->due > now)
		return NULL;
	*length = record->length;
	return record + 1;
}

/* If the end of the ring is void, the next record is at its start. */
void wan_link_drop(struct wan_link *link)
{
	const struct record *record = record_at(link, link->head);
	struct wan_late *late = late_first(link);

	link->counts.delivered++;
	link->counts.delivered_bytes += late ? late->length : record->length;
	if (late) {
		struct wan_late *last = &link->late[--link->late_count];

		if (late != last)
			*late = *last;
		return;
	}
	link->head += record_size(record->length);
	if (!link->wrapped)
		return;
	if (link->size - link->head < sizeof(struct record) ||
	    !record_at(link, link->head)->length) {
		link->head = 0;
		link->wrapped = false;
	}
}
