/* SPDX-License-Identifier: MIT */
/*
 * inspect.h - reports the units of a cache and its counters.  Any thread.
 */
#ifndef NC_INSPECT_H
#define NC_INSPECT_H

#include <stddef.h>

struct NC_cache_stat;
struct NC_stat;
struct nc_index;

/* Describes one unit.  Returns 0 or errors of nc_index_hold(). */
int nc_inspect_unit(struct nc_index *index, size_t id, struct NC_stat *stat);

/*
 * Lists units that can be looked up, from *cursor on (0: the first): the owner's
 * own and its members'; in an attached process, those in its segment.  Returns
 * their number, at most count; *cursor becomes the next position, 0 at the end.
 */
unsigned nc_inspect_list(struct nc_index *index, size_t *cursor, struct NC_stat *units,
			 unsigned count);

/* Fills in all but the text about io_uring. */
void nc_inspect_counters(struct nc_index *index, struct NC_cache_stat *stat);

#endif
