/* SPDX-License-Identifier: MIT */
/* index-internal.h - shared by the parts of index.h, for index*.c only. */
#ifndef NC_INDEX_INTERNAL_H
#define NC_INDEX_INTERNAL_H

#include <stdatomic.h>
#include <stdint.h>

static inline void nc_index_count_one(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

#endif
