/* SPDX-License-Identifier: MIT */
/*
 * pending.c - see pending.h.
 *
 * A record is read into a block for the longest one, and copied to a block of its size
 * if it is a request: a copy of about a kilobyte that the CPU has in its cache.
 */
#include <errno.h>
#include <nabc.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash-table.h"
#include "wire/pending.h"
#include "wire/wire.h"

int nc_pending_init(struct nc_pending *pending, unsigned channels)
{
	*pending = (struct nc_pending){.open = calloc(channels, sizeof(*pending->open))};
	if (!pending->open)
		return -ENOMEM;
	pending->channels = channels;
	for (unsigned i = 0; i < channels; i++)
		nc_hash_table_init(&pending->open[i]);
	return 0;
}

static struct nc_open_request *request_of(struct nc_hash_entry *entry)
{
	return (struct nc_open_request *)((char *)entry - offsetof(struct nc_open_request, entry));
}

static void free_request(struct nc_open_request *request)
{
	if (request->switched)
		free(request->inbox);
	free(request);
}

void nc_pending_fini(struct nc_pending *pending)
{
	while (pending->kept.first)
		nc_pending_remove(pending, pending->kept.first);
	for (unsigned i = 0; i < pending->channels; i++) {
		struct nc_hash_table *open = &pending->open[i];
		struct nc_hash_entry *entry = nc_hash_table_next(open, NULL);

		while (entry) {
			struct nc_hash_entry *next = nc_hash_table_next(open, entry);

			free_request(request_of(entry));
			entry = next;
		}
		nc_hash_table_fini(open);
	}
	free(pending->blank);
	free(pending->open);
}

/* Returns the bytes of a block for a record; the pieces of its body follow it. */
static size_t block_size(size_t length, bool body, size_t *inbox)
{
	size_t end = offsetof(struct nc_open_request, record) + length;

	*inbox = (end + alignof(struct nc_inbox) - 1) & ~(alignof(struct nc_inbox) - 1);
	if (body)
		return *inbox + sizeof(struct nc_inbox);
	return end > sizeof(struct nc_open_request) ? end : sizeof(struct nc_open_request);
}

int nc_pending_grow(struct nc_pending *pending)
{
	size_t inbox;

	if (!pending->blank)
		pending->blank = malloc(block_size(NC_PENDING_RECORD_MAX, true, &inbox));
	return pending->blank ? 0 : -ENOMEM;
}

static void list_append(struct nc_request_list *list, struct nc_open_request *request)
{
	request->previous = list->last;
	request->next = NULL;
	if (list->last)
		list->last->next = request;
	else
		list->first = request;
	list->last = request;
}

static void list_remove(struct nc_request_list *list, struct nc_open_request *request)
{
	if (request->previous)
		request->previous->next = request->next;
	else
		list->first = request->next;
	if (request->next)
		request->next->previous = request->previous;
	else
		list->last = request->previous;
}

/* Returns a block with the blank's record: the blank itself if there is no memory. */
static struct nc_open_request *fill(struct nc_pending *pending, uint32_t channel, bool body,
				    size_t length)
{
	size_t inbox, size = block_size(length, body, &inbox);
	struct nc_open_request *request = malloc(size);

	if (request) {
		memcpy(request->record, pending->blank->record, length);
	} else {
		request = pending->blank;
		pending->blank = NULL;
	}
	memset(request, 0, offsetof(struct nc_open_request, record));
	request->channel = channel;
	request->length = length;
	if (body) {
		request->inbox = (struct nc_inbox *)(void *)((char *)request + inbox);
		memset(request->inbox, 0, sizeof(*request->inbox));
	}
	return request;
}

struct nc_open_request *nc_pending_add(struct nc_pending *pending, uint32_t channel,
				       const struct nc_wire_request *wire, size_t length)
{
	struct nc_open_request *request = nc_pending_find(pending, channel, wire->tag);

	if (request && request->accepted)
		return NULL;
	if (request) {
		nc_hash_table_leave(&pending->open[channel], &request->entry);
		request->replaced = true;
	}
	request = fill(pending, channel, wire->kind == NC_WIRE_REQUEST_BODY, length);
	nc_hash_table_enter(&pending->open[channel], &request->entry, wire->tag);
	return request;
}

struct nc_open_request *nc_pending_find(struct nc_pending *pending, uint32_t channel, uint64_t tag)
{
	struct nc_hash_entry *entry = NULL;

	if (channel < pending->channels)
		entry = nc_hash_table_find(&pending->open[channel], tag);
	return entry ? request_of(entry) : NULL;
}

static void unkeep(struct nc_pending *pending, struct nc_open_request *request)
{
	list_remove(&pending->kept, request);
	pending->kept_bytes -= request->length;
	request->kept = false;
}

void nc_pending_remove(struct nc_pending *pending, struct nc_open_request *request)
{
	pending->begun -= request->begun && !request->switched;
	if (request->kept)
		unkeep(pending, request);
	if (request->unreported)
		nc_pending_report(pending, request);
	if (!request->replaced)
		nc_hash_table_leave(&pending->open[request->channel], &request->entry);
	free_request(request);
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

static void note_gone(struct nc_pending *pending, struct nc_open_request *request)
{
	/* A request that the worker does not have ends without it. */
	if (request->accepted && !request->gone) {
		list_append(&pending->events, request);
		request->unreported = true;
	}
	request->gone = true;
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
		note_gone(pending, request);
		return 0;
	default:
		if (wire->count > request->unsent)
			return -EPROTO;
		request->unsent -= (uint8_t)wire->count;
		return 0;
	}
}

void nc_pending_keep(struct nc_pending *pending, struct nc_open_request *request)
{
	list_append(&pending->kept, request);
	pending->kept_bytes += request->length;
	request->kept = true;
}

struct nc_open_request *nc_pending_oldest(struct nc_pending *pending, uint32_t channel)
{
	struct nc_open_request *request = pending->kept.first;

	while (request && request->channel != channel)
		request = request->next;
	return request;
}

void nc_pending_accept(struct nc_pending *pending, struct nc_open_request *request)
{
	if (request->kept)
		unkeep(pending, request);
	request->accepted = true;
}

void nc_pending_report(struct nc_pending *pending, struct nc_open_request *request)
{
	list_remove(&pending->events, request);
	request->unreported = false;
}

void nc_pending_begin(struct nc_pending *pending, struct nc_open_request *request,
		      struct nc_inbox *inbox)
{
	request->begun = true;
	request->unsent = 1;
	if (!inbox) {
		pending->begun++;
		return;
	}
	*inbox = (struct nc_inbox){0};
	request->inbox = inbox;
	request->switched = true;
}
