/* SPDX-License-Identifier: MIT */
/*
 * gw-window.h - bytes of a program's answer as they were read: straight into a
 * unit of the cache.  One thread.
 */
#ifndef SWEET_GW_WINDOW_H
#define SWEET_GW_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include <nabc.h>

#include "base/slice.h"

/*
 * Bytes, at most: half of what a CPU's own cache holds is for others.  A page of
 * 100 KB is read and sent at once; in windows of 64 KB it costs 1.3 times as much.
 */
#define GW_WINDOW ((size_t)128 << 10)
#define GW_WINDOW_LEAST ((size_t)4 << 10)
#define GW_WINDOW_RANGES 32u

/* A unit that was read, and what of it belongs to the body. */
struct gw_window {
	struct gw_window *next;
	size_t id; /* held; 0: it is stored, see gw-spool.h */
	const char *data;
	size_t length; /* bytes */
	struct NC_range *ranges;
	unsigned range_count, range_room;
	unsigned handed;	 /* of the ranges, to the connection */
	uint64_t offset, stored; /* where, and bytes, if it is */
	struct NC_range few[GW_WINDOW_RANGES];
};

/*
 * Reads what fd has into a new window; at most one read.  NULL with *error
 * -EAGAIN: nothing is there; 0: the end of the file; other errors as they are.
 */
struct gw_window *gw_window_read(int fd, int *error);

/* One of length bytes in a unit that was not inserted; takes the handle.  NULL with *error. */
struct gw_window *gw_window_of(NC_handle *handle, size_t length, int *error);

/* One without a unit, of bytes that are stored from offset on.  NULL: no memory. */
struct gw_window *gw_window_stored(uint64_t offset);

/* One that nobody else has; may be NULL. */
void gw_window_free(struct gw_window *window);

/*
 * A run of its bytes is a range more; crumbs make many, but no more than bytes.
 * False: no memory.
 */
bool gw_window_add(struct gw_window *window, struct slice run);

/* Those of its ranges. */
uint64_t gw_window_bytes(const struct gw_window *window);

#endif
