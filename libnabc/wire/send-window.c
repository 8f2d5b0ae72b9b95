/* SPDX-License-Identifier: MIT */
/*
 * send-window.c - see send-window.h.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include <nabc-worker.h>

#include "wire/send-window.h"
#include "wire/wire.h"

#define ROOM_FIRST 8u
#define CREDIT_MIN (NC_WORKER_WINDOW / 2) /* half a window: one record reports several pieces */

void nc_send_windows_fini(struct nc_send_windows *windows)
{
	free(windows->all);
	*windows = (struct nc_send_windows){0};
}

struct nc_send_window *nc_send_windows_find(struct nc_send_windows *windows, uint64_t tag)
{
	for (unsigned i = 0; i < windows->count; i++)
		if (windows->all[i].tag == tag)
			return &windows->all[i];
	return NULL;
}

/* Returns NULL if out of memory. */
static struct nc_send_window *add(struct nc_send_windows *windows, uint64_t tag)
{
	if (windows->count == windows->room) {
		unsigned room = windows->room ? 2 * windows->room : ROOM_FIRST;
		struct nc_send_window *all;

		all = realloc(windows->all, room * sizeof(*all));
		if (!all)
			return NULL;
		windows->all = all;
		windows->room = room;
	}
	windows->all[windows->count] = (struct nc_send_window){.tag = tag};
	return &windows->all[windows->count++];
}

static void drop(struct nc_send_windows *windows, struct nc_send_window *window)
{
	windows->begun -= window->begun;
	*window = windows->all[--windows->count];
}

int nc_send_windows_open(struct nc_send_windows *windows, uint64_t tag, uint64_t number)
{
	struct nc_send_window *window = nc_send_windows_find(windows, tag);

	if (window)
		return -EINVAL;
	window = add(windows, tag);
	if (!window)
		return -ENOMEM;
	window->body = true;
	window->number = number;
	return 0;
}

void nc_send_windows_close(struct nc_send_windows *windows, uint64_t tag)
{
	struct nc_send_window *window = nc_send_windows_find(windows, tag);

	if (window)
		drop(windows, window);
}

void nc_send_windows_withdraw(struct nc_send_windows *windows, uint64_t first, uint64_t last)
{
	/* Backwards, since drop() moves the last window to the place of the dropped one. */
	for (unsigned i = windows->count; i-- > 0;) {
		struct nc_send_window *window = &windows->all[i];

		if (window->body && window->number >= first && window->number <= last)
			drop(windows, window);
	}
}

static int judge_taken(struct nc_send_window *window)
{
	if (!window || window->pieces == 0)
		return -EPROTO;
	window->pieces--;
	return window->broken ? NC_SEND_WINDOW_DROP : NC_SEND_WINDOW_PASS;
}

/* The response has not begun. */
static int judge_interim(const struct nc_send_window *window)
{
	return window && window->begun ? -EPROTO : NC_SEND_WINDOW_PASS;
}

int nc_send_windows_judge(struct nc_send_windows *windows, const struct nc_wire_response *record)
{
	struct nc_send_window *window = nc_send_windows_find(windows, record->tag);
	bool more = record->flags & NC_RESPONSE_MORE, broken;

	if (record->flags & NC_RESPONSE_TAKEN)
		return judge_taken(window);
	if (record->flags & NC_RESPONSE_INTERIM)
		return judge_interim(window);
	/* After the first record, a response continues with pieces, and with nothing else. */
	if (!(record->flags & NC_RESPONSE_ABORTED) &&
	    (window && window->begun) != !!(record->flags & NC_RESPONSE_PIECE))
		return -EPROTO;
	if (more && !(window && window->begun) && windows->begun == NC_WORKER_STREAMS_MAX)
		return -EPROTO;
	if (!window && more) {
		window = add(windows, record->tag);
		if (!window)
			return -ENOMEM;
	}
	if (!window)
		return NC_SEND_WINDOW_PASS;
	broken = window->broken;
	if (!more) {
		drop(windows, window);
	} else {
		if (window->unsent + window->credit == NC_WORKER_WINDOW)
			return -EPROTO;
		windows->begun += !window->begun;
		window->begun = true;
		window->unsent++;
	}
	return broken ? NC_SEND_WINDOW_DROP : NC_SEND_WINDOW_PASS;
}

void nc_send_windows_break(struct nc_send_windows *windows, uint64_t tag)
{
	struct nc_send_window *window = nc_send_windows_find(windows, tag);

	if (window)
		window->broken = true;
}

struct nc_send_window *nc_send_windows_sent(struct nc_send_windows *windows, uint64_t tag)
{
	struct nc_send_window *window = nc_send_windows_find(windows, tag);

	if (!window || window->unsent == 0)
		return NULL;
	window->unsent--;
	window->credit++;
	return window->credit >= CREDIT_MIN ? window : NULL;
}
