/* SPDX-License-Identifier: MIT */
/* counter.h - counters that one thread adds to and any thread reads. */
#ifndef SWEET_COUNTER_H
#define SWEET_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

static inline void counter_add(_Atomic uint64_t *counter, uint64_t more)
{
	/* There is one writer: no locked instruction is needed. */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
			      memory_order_relaxed);
}

static inline void counter_sub(_Atomic uint64_t *counter, uint64_t less)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) - less,
			      memory_order_relaxed);
}

#endif
