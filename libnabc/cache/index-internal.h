/* SPDX-License-Identifier: MIT */
/*
 * index-internal.h - what the parts of index.h share: for index*.c alone.
 */
#ifndef NC_INDEX_INTERNAL_H
#define NC_INDEX_INTERNAL_H

#include "cache/index.h"

static inline void nc_index_count_one(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

#endif
