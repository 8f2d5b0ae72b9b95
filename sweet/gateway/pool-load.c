/* SPDX-License-Identifier: MIT */
/*
 * pool-load.c - counts the requests of a process of all threads, and for how long it has ended none;
 * see pool-process.h.
 */
#include <stdatomic.h>
#include <stdint.h>

#include "gateway/pool-process.h"

void pool_process_takes(struct pool_process *process, uint64_t now_ms)
{
	if (atomic_fetch_add_explicit(&process->load, 1, memory_order_relaxed) == 0)
		atomic_store_explicit(&process->moved_ms, now_ms, memory_order_relaxed);
}

void pool_process_leaves(struct pool_process *process, uint64_t now_ms)
{
	/*
	 * The caller looks for waiting requests next: sequentially consistent, like has_room() of
	 * worker.c, which first says that one waits and then reads this.
	 */
	atomic_fetch_sub_explicit(&process->load, 1, memory_order_seq_cst);
	atomic_store_explicit(&process->moved_ms, now_ms, memory_order_relaxed);
}

void pool_process_loses(struct pool_process *process)
{
	atomic_fetch_sub_explicit(&process->load, 1, memory_order_relaxed);
}

uint64_t pool_process_stalled_ms(const struct pool_process *process, uint64_t now_ms)
{
	uint64_t moved_ms = atomic_load_explicit(&process->moved_ms, memory_order_relaxed);

	/* The clock of another thread may be ahead of this one's. */
	if (!atomic_load_explicit(&process->load, memory_order_relaxed) || moved_ms > now_ms)
		return 0;
	return now_ms - moved_ms;
}
