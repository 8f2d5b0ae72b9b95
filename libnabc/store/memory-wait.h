/* SPDX-License-Identifier: MIT */
/*
 * memory-wait.h - threads that wait until memory of a member is released.
 *
 * There is a word for each member; it is not 0 if a thread may wait.  In an attached process it is
 * in the table that the owner sees, so that the owner wakes that thread when it returns a unit:
 * a member can only make it wake in vain.  An older owner does not, so no wait is long.
 */
#ifndef NC_MEMORY_WAIT_H
#define NC_MEMORY_WAIT_H

#include <stdatomic.h>
#include <stdint.h>

#include "os/futex.h"

/*
 * Call it before the attempt to allocate after which the thread will wait.  The fence pairs with
 * the sequentially consistent steps of those who release memory and then look at the word: the
 * attempt sees their memory, or they see the word.
 */
static inline void nc_memory_expect(_Atomic uint32_t *waiting)
{
	atomic_store(waiting, 1);
	atomic_thread_fence(memory_order_seq_cst);
}

/* Waits until memory was released since nc_memory_expect(), at most that long. */
static inline void nc_memory_wait(_Atomic uint32_t *waiting, uint64_t most_ns)
{
	nc_futex_wait_shared(waiting, 1, most_ns);
}

/* Some memory was released, or can be evicted from now on.  Any thread, with any lock. */
static inline void nc_memory_wake(_Atomic uint32_t *waiting)
{
	if (atomic_load(waiting) && atomic_exchange(waiting, 0))
		nc_futex_wake_shared(waiting);
}

#endif
