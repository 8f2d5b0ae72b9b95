/* SPDX-License-Identifier: MIT */
/*
 * intake.c - see intake.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/intake.h"

#define ROOM_FIRST 8u

void nc_intake_init(struct nc_intake *intake)
{
	*intake = (struct nc_intake){0};
	intake->last = &intake->first;
}

void nc_intake_fini(struct nc_intake *intake)
{
	while (nc_intake_next(intake))
		;
	for (unsigned i = 0; i < intake->count; i++)
		free(intake->open[i].inbox);
	free(intake->blank);
	free(intake->spare);
	free(intake->open);
}

int nc_intake_grow(struct nc_intake *intake)
{
	unsigned room = intake->room ? 2 * intake->room : ROOM_FIRST;
	struct nc_open_request *open;

	if (!intake->spare)
		intake->spare = calloc(1, sizeof(*intake->spare));
	if (!intake->spare)
		return -ENOMEM;
	if (intake->count < intake->room)
		return 0;
	open = realloc(intake->open, room * sizeof(*open));
	if (!open)
		return -ENOMEM;
	intake->open = open;
	intake->room = room;
	return 0;
}

void nc_intake_add(struct nc_intake *intake, uint32_t lane, const struct nc_wire_request *wire)
{
	struct nc_open_request request = {.tag = wire->tag, .lane = lane};

	if (wire->kind == NC_WIRE_REQUEST_BODY) {
		request.inbox = intake->spare;
		intake->spare = NULL;
	}
	intake->open[intake->count++] = request;
}

struct nc_open_request *nc_intake_find(struct nc_intake *intake, uint32_t lane, uint64_t tag)
{
	/* Most workers answer what they accepted last. */
	for (unsigned i = intake->count; i-- > 0;)
		if (intake->open[i].tag == tag && intake->open[i].lane == lane)
			return &intake->open[i];
	return NULL;
}

void nc_intake_remove(struct nc_intake *intake, struct nc_open_request *request)
{
	intake->begun -= request->begun;
	free(request->inbox);
	*request = intake->open[--intake->count];
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

int nc_intake_note(struct nc_intake *intake, uint32_t lane, const struct nc_wire_request *wire,
		   const void *what)
{
	struct nc_open_request *request = nc_intake_find(intake, lane, wire->tag);

	/* Said before the server saw the answer. */
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

int nc_intake_blank(struct nc_intake *intake, size_t limit, struct nc_kept **blank)
{
	if (intake->kept + limit > NC_INTAKE_KEPT_MAX)
		return -ENOBUFS;
	if (!intake->blank)
		intake->blank = malloc(sizeof(*intake->blank) + limit);
	*blank = intake->blank;
	return intake->blank ? 0 : -ENOMEM;
}

void nc_intake_keep(struct nc_intake *intake, uint32_t lane, size_t length)
{
	struct nc_kept *kept = realloc(intake->blank, sizeof(*kept) + length);

	/* Smaller than it was: if that fails it is as good. */
	if (!kept)
		kept = intake->blank;
	intake->blank = NULL;
	kept->next = NULL;
	kept->lane = lane;
	kept->length = length;
	*intake->last = kept;
	intake->last = &kept->next;
	intake->kept += length;
}

void nc_intake_forget(struct nc_intake *intake)
{
	free(intake->current);
	intake->current = NULL;
}

/* The one that link leads to. */
static struct nc_kept *unlink_kept(struct nc_intake *intake, struct nc_kept **link)
{
	struct nc_kept *kept = *link;

	*link = kept->next;
	if (!kept->next)
		intake->last = link;
	intake->kept -= kept->length;
	return kept;
}

struct nc_kept *nc_intake_next(struct nc_intake *intake)
{
	nc_intake_forget(intake);
	if (intake->first)
		intake->current = unlink_kept(intake, &intake->first);
	return intake->current;
}

struct nc_kept *nc_intake_take(struct nc_intake *intake, uint32_t lane)
{
	struct nc_kept **link = &intake->first;

	while (*link && (*link)->lane != lane)
		link = &(*link)->next;
	return *link ? unlink_kept(intake, link) : NULL;
}
