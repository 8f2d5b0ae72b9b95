/* SPDX-License-Identifier: MIT */
/*
 * send-window.h - the server's end of flow control: which responses of a channel a
 * worker has begun, and how many of their pieces are not yet sent.
 *
 * A correct worker waits for its window; a worker that does not is detected here,
 * so the memory that it can occupy in the server is bounded.  No I/O; the windows
 * of a channel belong to its thread.
 */
#ifndef NC_SEND_WINDOW_H
#define NC_SEND_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash-table.h"

struct nc_wire_response;

struct nc_send_window {
	struct nc_hash_entry entry;  /* first; by its tag */
	struct nc_send_window *next; /* spare */
	uint64_t number; /* if the request has a body: its number in the channel, from 1 */
	uint8_t unsent;	 /* pieces that the worker counts as unsent */
	uint8_t credit;	 /* pieces that were sent, but not yet reported to the worker */
	bool begun;
	bool broken;	/* over for the caller; further pieces are dropped */
	bool body;	/* the request has a body in pieces, or the response is 101 */
	bool ended;	/* the worker has been given all of it */
	bool switched;	/* the response is 101 */
	uint8_t pieces; /* of the body, not yet taken by the worker */
};

/* Zeros: none. */
struct nc_send_windows {
	struct nc_hash_table table;
	struct nc_send_window *spare; /* for the next ones */
	unsigned begun;		      /* responses, without 101 */
};

enum nc_verdict { NC_SEND_WINDOW_DROP, NC_SEND_WINDOW_PASS };

void nc_send_windows_fini(struct nc_send_windows *windows);

static inline bool nc_send_windows_any(const struct nc_send_windows *windows)
{
	return windows->table.count;
}

/* Iterate as nc_hash_table_next(). */
struct nc_send_window *nc_send_windows_next(const struct nc_send_windows *windows,
					    const struct nc_send_window *window);

/* Returns NULL if the tag has none. */
struct nc_send_window *nc_send_windows_find(struct nc_send_windows *windows, uint64_t tag);

/* Adds a request with a body.  Returns 0, -EINVAL (the tag is in use), or -ENOMEM. */
int nc_send_windows_open(struct nc_send_windows *windows, uint64_t tag, uint64_t number);
void nc_send_windows_close(struct nc_send_windows *windows, uint64_t tag);

/* Closes the windows of requests first to last, which the server has withdrawn. */
void nc_send_windows_withdraw(struct nc_send_windows *windows, uint64_t first, uint64_t last);

/* Decides what to do with a checked record: returns an nc_verdict, -EPROTO or -ENOMEM. */
int nc_send_windows_judge(struct nc_send_windows *windows, const struct nc_wire_response *record);

/* Marks the response as over: the caller knows it. */
void nc_send_windows_break(struct nc_send_windows *windows, uint64_t tag);

/*
 * Counts a sent piece.  Returns the window if its credit should be reported to the
 * worker now, else NULL.
 */
struct nc_send_window *nc_send_windows_sent(struct nc_send_windows *windows, uint64_t tag);

#endif
