/* SPDX-License-Identifier: MIT */
/*
 * send-window.h - the server's end of flow control: which responses of a channel a worker
 * has begun, and how many of their pieces have not left.
 *
 * A worker that keeps the rules waits for its window; one that does not is detected here,
 * so what it can make the server keep is bounded.  Pure; a channel's windows belong to its
 * thread.
 */
#ifndef NC_SEND_WINDOW_H
#define NC_SEND_WINDOW_H

#include <stdbool.h>

#include "wire/wire.h"

struct nc_send_window {
	uint64_t tag;
	uint64_t number; /* of a request that has a body: the channel's requests, counted from 1 */
	uint8_t unsent;	 /* pieces that the worker knows not to have left */
	uint8_t credit;	 /* pieces that left and of which it was not told */
	bool begun;
	bool broken;	/* over for the caller; what still comes is dropped */
	bool body;	/* the request has one that comes in pieces */
	bool ended;	/* all of it was given to the worker */
	uint8_t pieces; /* of it, that the worker has not taken */
};

struct nc_send_windows {
	struct nc_send_window *all;
	unsigned count, room;
	unsigned begun;
};

enum nc_verdict { NC_SEND_WINDOW_DROP, NC_SEND_WINDOW_PASS };

void nc_send_windows_fini(struct nc_send_windows *windows);

/* NULL: that tag has none. */
struct nc_send_window *nc_send_windows_find(struct nc_send_windows *windows, uint64_t tag);

/* A request that has a body.  0; -EINVAL: the tag is under way; -ENOMEM. */
int nc_send_windows_open(struct nc_send_windows *windows, uint64_t tag, uint64_t number);
void nc_send_windows_close(struct nc_send_windows *windows, uint64_t tag);

/* Closes those of requests with the numbers first to last: the server has withdrawn them. */
void nc_send_windows_withdraw(struct nc_send_windows *windows, uint64_t first, uint64_t last);

/* What to do with a record that was checked: an nc_verdict, or -EPROTO, -ENOMEM. */
int nc_send_windows_judge(struct nc_send_windows *windows, const struct nc_wire_response *record);

/* The caller is told that it is over. */
void nc_send_windows_break(struct nc_send_windows *windows, uint64_t tag);

/* A piece has left.  The window, if the worker should be told of its credit by now, or NULL. */
struct nc_send_window *nc_send_windows_sent(struct nc_send_windows *windows, uint64_t tag);

#endif
