/* SPDX-License-Identifier: MIT */
/*
 * send-window.c - see send-window.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <nabc-worker.h>

#include "base/hash-table.h"
#include "wire/send-window.h"
#include "wire/wire.h"

#define CREDIT_MIN (NC_WORKER_WINDOW / 2) /* half a window: one record reports several pieces */

static struct nc_send_window *window_of(struct nc_hash_entry *entry)
{
	return (struct nc_send_window *)(void *)entry;
}

struct nc_send_window *nc_send_windows_next(const struct nc_send_windows *windows,
					    const struct nc_send_window *window)
{
	return window_of(nc_hash_table_next(&windows->table, window ? &window->entry : NULL));
}

void nc_send_windows_fini(struct nc_send_windows *windows)
{
	struct nc_send_window *window = nc_send_windows_next(windows, NULL), *next;

	for (; window; window = next) {
		next = nc_send_windows_next(windows, window);
		free(window);
	}
	while (windows->spare) {
		window = windows->spare;
		windows->spare = window->next;
		free(window);
	}
	nc_hash_table_fini(&windows->table);
	*windows = (struct nc_send_windows){0};
}

struct nc_send_window *nc_send_windows_find(struct nc_send_windows *windows, uint64_t tag)
{
	return window_of(nc_hash_table_find(&windows->table, tag));
}

/* Returns NULL if out of memory. */
static struct nc_send_window *add(struct nc_send_windows *windows, uint64_t tag)
{
	struct nc_send_window *window = windows->spare;

	if (window)
		windows->spare = window->next;
	else
		window = malloc(sizeof(*window));
	if (!window)
		return NULL;
	*window = (struct nc_send_window){0};
	nc_hash_table_enter(&windows->table, &window->entry, tag);
	return window;
}

static void drop(struct nc_send_windows *windows, struct nc_send_window *window)
{
	windows->begun -= window->begun && !window->switched;
	nc_hash_table_leave(&windows->table, &window->entry);
	window->next = windows->spare;
	windows->spare = window;
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
	struct nc_send_window *window = nc_send_windows_next(windows, NULL), *next;

	for (; window; window = next) {
		next = nc_send_windows_next(windows, window);
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

static int judge_more(struct nc_send_windows *windows, struct nc_send_window *window, bool switches)
{
	if (window->unsent + window->credit == NC_WORKER_WINDOW)
		return -EPROTO;
	if (!window->begun) {
		/* What the client sends follows; a request with such pieces has them already. */
		if (switches && window->body)
			return -EPROTO;
		window->switched = switches;
		window->body |= switches;
		window->begun = true;
		windows->begun += !switches;
	}
	window->unsent++;
	return 0;
}

int nc_send_windows_judge(struct nc_send_windows *windows, const struct nc_wire_response *record)
{
	struct nc_send_window *window = nc_send_windows_find(windows, record->tag);
	bool more = record->flags & NC_RESPONSE_MORE, broken;
	bool begun = window && window->begun, switches = record->status == 101;
	int error;

	if (record->flags & NC_RESPONSE_TAKEN)
		return judge_taken(window);
	if (record->flags & NC_RESPONSE_INTERIM)
		return judge_interim(window);
	/* After the first record, a response continues with pieces, and with nothing else. */
	if (!(record->flags & NC_RESPONSE_ABORTED) &&
	    begun != !!(record->flags & NC_RESPONSE_PIECE))
		return -EPROTO;
	/* The server bounds those that are 101. */
	if (more && !begun && !switches && windows->begun == NC_WORKER_STREAMS_MAX)
		return -EPROTO;
	if (!window && more) {
		window = add(windows, record->tag);
		if (!window)
			return -ENOMEM;
	}
	if (!window)
		return NC_SEND_WINDOW_PASS;
	broken = window->broken;
	error = more ? judge_more(windows, window, switches) : 0;
	if (error)
		return error;
	if (!more)
		drop(windows, window);
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
