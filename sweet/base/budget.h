/* SPDX-License-Identifier: MIT */
/*
 * budget.h - bytes of memory that all threads together may use for one purpose.  Any thread.
 *
 * All zeros: nothing is used, and nothing may be.
 */
#ifndef SWEET_BUDGET_H
#define SWEET_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct budget {
	_Atomic uint64_t used;
	uint64_t most; /* set before it is used */
};

static inline bool budget_has_room(const struct budget *budget)
{
	return atomic_load_explicit(&budget->used, memory_order_relaxed) < budget->most;
}

static inline void budget_give(struct budget *budget, uint64_t bytes)
{
	atomic_fetch_sub_explicit(&budget->used, bytes, memory_order_relaxed);
}

/* Takes the bytes even if that is more than there is. */
static inline void budget_take_anyhow(struct budget *budget, uint64_t bytes)
{
	atomic_fetch_add_explicit(&budget->used, bytes, memory_order_relaxed);
}

/* Takes all of the bytes, or returns false. */
static inline bool budget_take(struct budget *budget, uint64_t bytes)
{
	uint64_t before = atomic_fetch_add_explicit(&budget->used, bytes, memory_order_relaxed);

	if (before + bytes <= budget->most)
		return true;
	budget_give(budget, bytes);
	return false;
}

#endif
