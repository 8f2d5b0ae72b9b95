/* SPDX-License-Identifier: MIT */
/*
 * pending.c - see pending.h.
 */
#include <errno.h>
#include <nabc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/pending.h"
#include "wire/wire.h"

#define ROOM_FIRST 8u

void nc_pending_init(struct nc_pending *pending)
{
	*pending = (struct nc_pending){0};
	pending->last = &pending->first;
}

void nc_pending_fini(struct nc_pending *pending)
{
	while (nc_pending_next(pending))
		;
	for (unsigned i = 0; i < pending->count; i++)
		free(pending->open[i].inbox);
	free(pending->blank);
	free(pending->spare);
	free(pending->open);
}

int nc_pending_grow(struct nc_pending *pending)
{
	unsigned room = pending->room ? 2 * pending->room : ROOM_FIRST;
	struct nc_open_request *open;

	if (!pending->spare)
		pending->spare = calloc(1, sizeof(*pending->spare));
	if (!pending->spare)
		return -ENOMEM;
	if (pending->count < pending->room)
		return 0;
	open = realloc(pending->open, room * sizeof(*open));
	if (!open)
		return -ENOMEM;
	pending->open = open;
	pending->room = room;
	return 0;
}

void nc_pending_add(struct nc_pending *pending, uint32_t channel,
		    const struct nc_wire_request *wire)
{
	struct nc_open_request request = {.tag = wire->tag, .channel = channel};

	if (wire->kind == NC_WIRE_REQUEST_BODY) {
		request.inbox = pending->spare;
		pending->spare = NULL;
	}
	pending->open[pending->count++] = request;
}

struct nc_open_request *nc_pending_find(struct nc_pending *pending, uint32_t channel, uint64_t tag)
{
	/* Most workers answer the request that they accepted last. */
	for (unsigned i = pending->count; i-- > 0;)
		if (pending->open[i].tag == tag && pending->open[i].channel == channel)
			return &pending->open[i];
	return NULL;
}

void nc_pending_remove(struct nc_pending *pending, struct nc_open_request *request)
{
	pending->begun -= request->begun;
	free(request->inbox);
	*request = pending->open[--pending->count];
}

static int note_piece(struct nc_inbox *inbox, const struct nc_wire_request *wire, const void *what)
{
	if (!inbox || inbox->ended || (wire->length && inbox->count == NC_WORKER_WINDOW))
		return -EPROTO;
	if (wire->length)
		memcpy(&inbox->piece[(inbox->first + inbox->count++) % NC_WORKER_WINDOW], what,
		       sizeof(inbox->piece[0]));
	inbox->ended = wire->kind == NC_WIRE_LAST;
	return 0;
}

int nc_pending_note(struct nc_pending *pending, uint32_t channel,
		    const struct nc_wire_request *wire, const void *what)
{
	struct nc_open_request *request = nc_pending_find(pending, channel, wire->tag);

	/* The server sent it before it saw the response. */
	if (!request)
		return 0;
	switch (wire->kind) {
	case NC_WIRE_PIECE:
	case NC_WIRE_LAST:
		return note_piece(request->inbox, wire, what);
	case NC_WIRE_CANCEL:
		request->gone = true;
		return 0;
	default:
		if (wire->count > request->unsent)
			return -EPROTO;
		request->unsent -= (uint8_t)wire->count;
		return 0;
	}
}

int nc_pending_blank(struct nc_pending *pending, size_t limit, struct nc_kept **blank)
{
	if (pending->kept + limit > NC_PENDING_KEPT_MAX)
		return -ENOBUFS;
	if (!pending->blank)
		pending->blank = malloc(sizeof(*pending->blank) + limit);
	*blank = pending->blank;
	return pending->blank ? 0 : -ENOMEM;
}

void nc_pending_keep(struct nc_pending *pending, uint32_t channel, size_t length)
{
	struct nc_kept *kept = realloc(pending->blank, sizeof(*kept) + length);

	/* The block shrinks: if realloc() fails, the larger one serves as well. */
	if (!kept)
		kept = pending->blank;
	pending->blank = NULL;
	kept->next = NULL;
	kept->channel = channel;
	kept->length = length;
	*pending->last = kept;
	pending->last = &kept->next;
	pending->kept += length;
}

void nc_pending_forget(struct nc_pending *pending)
{
	free(pending->current);
	pending->current = NULL;
}

/* Removes the record that link points to. */
static struct nc_kept *unlink_kept(struct nc_pending *pending, struct nc_kept **link)
{
	struct nc_kept *kept = *link;

	*link = kept->next;
	if (!kept->next)
		pending->last = link;
	pending->kept -= kept->length;
	return kept;
}

struct nc_kept *nc_pending_next(struct nc_pending *pending)
{
	nc_pending_forget(pending);
	if (pending->first)
		pending->current = unlink_kept(pending, &pending->first);
	return pending->current;
}

struct nc_kept *nc_pending_take(struct nc_pending *pending, uint32_t channel)
{
	struct nc_kept **link = &pending->first;

	while (*link && (*link)->channel != channel)
		link = &(*link)->next;
	return *link ? unlink_kept(pending, link) : NULL;
}
