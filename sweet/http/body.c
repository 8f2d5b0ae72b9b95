/* SPDX-License-Identifier: MIT */
/*
 * body.c - see body.h.  A body belongs to one connection and its thread; all share
 * the budget.
 *
 * The content is collected in memory that grows with the bytes received, not with
 * the announced length, so a client that announces much and sends little uses
 * little.  When a window is complete and its size is known, the content is copied
 * into a unit; so the cache evicts nothing for a body that never arrives
 * completely.  The memory stays allocated from one window to the next.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <nabc.h>

#include "base/budget.h"
#include "base/slice.h"
#include "http/body.h"

#define ROOM_FIRST 1024 /* bytes: the client may send no more than a few */
#define ROOM_SHORT 4096 /* where memory is short */

void body_expect(struct body *body, const struct request *request, uint64_t limit)
{
	*body = (struct body){.limit = limit};
	if (request->chunked) {
		body->framing = BODY_CHUNKED;
		chunked_init(&body->chunked);
	} else {
		body->framing = BODY_LENGTH;
		body->left = request->content_length;
	}
}

static void free_content(struct body *body)
{
	if (body->budget)
		budget_give(body->budget, body->room);
	free(body->content);
	body->budget = NULL;
	body->content = NULL;
	body->gathered = body->room = 0;
}

int body_keep(struct body *body, uint64_t limit, size_t window, struct budget *budget)
{
	body->limit = limit;
	if (body_is_too_long(body))
		return -413;
	/* A smaller window needs less memory. */
	if (body->room > window)
		free_content(body);
	body->window = window;
	body->budget = budget;
	return 0;
}

bool body_is_too_long(const struct body *body)
{
	uint64_t due = body->framing == BODY_LENGTH    ? body->left
		       : body->framing == BODY_CHUNKED ? chunked_due(&body->chunked)
						       : 0;

	return due > body->limit - body->length;
}

/* Allocates memory for that many bytes of content; anyhow: even beyond the budget. */
static bool grow(struct body *body, size_t need, bool anyhow)
{
	struct budget *budget = body->budget;
	size_t room = body->room ? body->room : ROOM_FIRST;
	char *content;

	while (room < need)
		room *= 2;
	/* Never allocate more than can arrive. */
	if (room > body->window)
		room = body->window;
	if (body->framing == BODY_LENGTH && room > body->gathered + body->left)
		room = (size_t)(body->gathered + body->left);
	if (anyhow)
		budget_take_anyhow(budget, room - body->room);
	else if (!budget_take(budget, room - body->room))
		return false;
	content = realloc(body->content, room);
	if (!content) {
		budget_give(budget, room - body->room);
		return false;
	}
	body->content = content;
	body->room = room;
	return true;
}

static int keep(struct body *body, struct slice run)
{
	if (run.length > body->limit - body->length)
		return -413;
	if (body->budget && run.length) {
		if (body->gathered + run.length > body->room &&
		    !grow(body, body->gathered + run.length, false))
			return -503;
		memcpy(body->content + body->gathered, run.at, run.length);
		body->gathered += run.length;
	}
	body->length += run.length;
	return 0;
}

/*
 * Returns how many of length bytes the window can take.  If memory is short, a body
 * that is passed on in windows gets smaller ones, so that it need not be refused;
 * each body gets a first page regardless of the budget.
 */
static size_t fitting_length(struct body *body, size_t length)
{
	size_t room;

	if (!body->budget)
		return length;
	room = body->window - body->gathered;
	if (length > room)
		length = room;
	if (length == 0 || body->window == BODY_WHOLE || body->gathered + length <= body->room ||
	    grow(body, body->gathered + length, false))
		return length;
	if (!body->room && !grow(body, ROOM_SHORT, true))
		return length; /* keep() refuses it */
	room = body->room - body->gathered;
	if (room == 0)
		body->window = body->gathered;
	return length < room ? length : room;
}

static ssize_t take_length(struct body *body, const char *data, size_t length)
{
	size_t now = fitting_length(body, body->left < length ? (size_t)body->left : length);
	int error = keep(body, (struct slice){data, now});

	if (error)
		return error;
	body->left -= now;
	if (body->left == 0)
		body->framing = BODY_NONE;
	return (ssize_t)now;
}

static ssize_t take_chunked(struct body *body, const char *data, size_t length)
{
	size_t at = 0, now;

	while (!chunked_is_over(&body->chunked) && (now = fitting_length(body, length - at)) > 0) {
		struct slice run;
		ssize_t used = chunked_decode(&body->chunked, data + at, now, &run);
		int error = used < 0 ? (int)used : keep(body, run);

		/*
		 * The size of a chunk is known before its content: refuse it as
		 * soon as possible.
		 */
		if (!error && body_is_too_long(body))
			error = -413;
		if (error)
			return error;
		at += (size_t)used;
	}
	if (chunked_is_over(&body->chunked))
		body->framing = BODY_NONE;
	return (ssize_t)at;
}

static ssize_t take_open(struct body *body, const char *data, size_t length)
{
	size_t now = fitting_length(body, length);
	int error = keep(body, (struct slice){data, now});

	return error ? error : (ssize_t)now;
}

ssize_t body_take(struct body *body, const char *data, size_t length)
{
	switch (body->framing) {
	case BODY_LENGTH:
		return take_length(body, data, length);
	case BODY_CHUNKED:
		return take_chunked(body, data, length);
	case BODY_OPEN:
		return take_open(body, data, length);
	default:
		return 0;
	}
}

int body_unit(struct body *body, size_t *id, struct NC_hold *hold)
{
	struct NC_insert_options options = NC_INSERT_OPTIONS_INIT(.hold = hold);
	size_t length = body->gathered;
	NC_handle handle;
	int error = 0;

	assert(body_is_ready(body) && (body->budget || body->length == 0));
	*id = 0;
	body->gathered = 0;
	if (length == 0)
		return 0;
	if (NC_unit_alloc(NULL, &handle, length, 0, NC_KIND_SEALED, NC_UNIT_UNSUMMED) < 0)
		return -errno;
	if (NC_write(&handle, body->content, length, 0) != (ssize_t)length ||
	    NC_unit_insert_with(&handle, NC_WHOLE, &options) < 0)
		error = -errno;
	else
		*id = NC_cache_id(&handle);
	(void)NC_free(&handle);
	return error;
}

void body_drop(struct body *body, uint64_t limit)
{
	free_content(body);
	body->limit = limit < UINT64_MAX - body->length ? body->length + limit : UINT64_MAX;
}

void body_end(struct body *body)
{
	free_content(body);
	*body = (struct body){.framing = BODY_NONE};
}
