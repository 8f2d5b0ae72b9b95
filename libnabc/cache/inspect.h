/* SPDX-License-Identifier: MIT */
/*
 * inspect.h - reports the units of a cache and its counters.  Any thread.
 */
#ifndef NC_INSPECT_H
#define NC_INSPECT_H

#include "cache/index.h"

/* What is known of one unit.  0 or the errors of hold. */
int nc_inspect_unit(struct nc_index *index, size_t id, struct NC_stat *stat);

/*
 * The units that can be named from *cursor on (0: the first), the owner's own
 * and its members'; in an attached process, those in its segment.  Their
 * number, at most count; *cursor is where to go on, 0 at the end.
 */
unsigned nc_inspect_list(struct nc_index *index, size_t *cursor, struct NC_stat *units,
			 unsigned count);

/* All but the text about io_uring. */
void nc_inspect_counters(struct nc_index *index, struct NC_cache_stat *stat);

#endif
