/* SPDX-License-Identifier: MIT */
/*
 * capacity.c - see capacity.h.
 *
 * Without connections that wait, and with a limit that is not reached, nothing takes the lock.
 * The counters are read one after the other: a limit that is wrong by one is corrected as soon
 * as it matters.  Times of different threads may differ by the age of their last event.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <glib.h>

#include "upstream/capacity.h"

static unsigned get(const _Atomic unsigned *number)
{
	return atomic_load_explicit(number, memory_order_relaxed);
}

/* What the application serves, if all that may wait do so. */
static unsigned served(const struct capacity *capacity)
{
	unsigned open = get(&capacity->open), waiting = get(&capacity->waiting);

	return open > waiting ? open - waiting : 0;
}

void capacity_init(struct capacity *capacity, unsigned most)
{
	memset(capacity, 0, sizeof(*capacity));
	pthread_mutex_init(&capacity->lock, NULL);
	capacity->most = most;
	capacity_forget(capacity);
}

void capacity_clear(struct capacity *capacity)
{
	pthread_mutex_destroy(&capacity->lock);
}

uint64_t capacity_number(struct capacity *capacity)
{
	return atomic_fetch_add_explicit(&capacity->order, 1, memory_order_seq_cst) + 1;
}

void capacity_opened(struct capacity *capacity)
{
	atomic_fetch_add_explicit(&capacity->open, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&capacity->waiting, 1, memory_order_relaxed);
}

void capacity_closed(struct capacity *capacity, bool waited)
{
	atomic_fetch_sub_explicit(&capacity->open, 1, memory_order_relaxed);
	if (waited) {
		atomic_fetch_sub_explicit(&capacity->waiting, 1, memory_order_relaxed);
		return;
	}
	pthread_mutex_lock(&capacity->lock);
	capacity->closed = MIN(capacity->closed + 1, capacity->most);
	pthread_mutex_unlock(&capacity->lock);
}

void capacity_forget(struct capacity *capacity)
{
	pthread_mutex_lock(&capacity->lock);
	atomic_store_explicit(&capacity->accepted, 0, memory_order_relaxed);
	atomic_store_explicit(&capacity->raise_ms, UINT64_MAX, memory_order_relaxed);
	atomic_store_explicit(&capacity->limit, capacity->most, memory_order_relaxed);
	capacity->stuck_ms = capacity->reported_ms = capacity->tried_ms = capacity->taken_ms = 0;
	capacity->closed = capacity->found = capacity->before = 0;
	capacity->found_ms = 0;
	capacity->pause_ms = CAPACITY_RAISE_MS;
	pthread_mutex_unlock(&capacity->lock);
}

/* --- with the lock held ----------------------------------------------------------------------- */

static void set_limit_locked(struct capacity *capacity, unsigned limit, uint64_t now_ms)
{
	atomic_store_explicit(&capacity->limit, limit, memory_order_relaxed);
	atomic_store_explicit(&capacity->raise_ms,
			      limit < capacity->most ? now_ms + capacity->pause_ms : UINT64_MAX,
			      memory_order_relaxed);
}

static void find_locked(struct capacity *capacity, unsigned limit, uint64_t now_ms)
{
	/* A lower limit is uncertain: the system may be busy. */
	if (capacity->before && limit >= capacity->before)
		capacity->pause_ms = MIN(2 * capacity->pause_ms, CAPACITY_RAISE_MAX_MS);
	else
		capacity->pause_ms = CAPACITY_RAISE_MS;
	capacity->before = 0;
	set_limit_locked(capacity, limit, now_ms);
}

static bool accepted_locked(struct capacity *capacity, uint64_t opened_ms, uint64_t now_ms)
{
	unsigned found = capacity->found, limit = get(&capacity->limit), at_least;

	if (capacity->closed)
		capacity->closed--;
	capacity->found = 0;
	/* A later one shows that the other was accepted before. */
	if (found && opened_ms <= capacity->found_ms && found < limit) {
		find_locked(capacity, found, now_ms);
		return true;
	}
	at_least = MIN(served(capacity), capacity->most);
	if (at_least <= limit && !(capacity->before && at_least > capacity->before))
		return false;
	/* It has more processes. */
	capacity->before = 0;
	capacity->pause_ms = CAPACITY_RAISE_MS;
	set_limit_locked(capacity, MAX(at_least, limit), now_ms);
	return at_least > limit;
}

/* --- taking the lock -------------------------------------------------------------------------- */

bool capacity_accepted(struct capacity *capacity, uint64_t number, uint64_t opened_ms,
		       uint64_t now_ms)
{
	bool changed;

	atomic_fetch_sub_explicit(&capacity->waiting, 1, memory_order_relaxed);
	pthread_mutex_lock(&capacity->lock);
	if (number > atomic_load_explicit(&capacity->accepted, memory_order_relaxed))
		atomic_store_explicit(&capacity->accepted, number, memory_order_relaxed);
	changed = accepted_locked(capacity, opened_ms, now_ms);
	pthread_mutex_unlock(&capacity->lock);
	return changed;
}

void capacity_stuck(struct capacity *capacity, uint64_t opened_ms, uint64_t now_ms)
{
	pthread_mutex_lock(&capacity->lock);
	capacity->stuck_ms = opened_ms;
	capacity->reported_ms = now_ms;
	if (now_ms > MAX(opened_ms, capacity->taken_ms) + CAPACITY_TAKEN_MS) {
		capacity->closed = 0;
		capacity->taken_ms = now_ms;
	}
	pthread_mutex_unlock(&capacity->lock);
}

static bool yields_locked(struct capacity *capacity, uint64_t began_ms, uint64_t now_ms)
{
	unsigned waiting = get(&capacity->waiting);

	/* What waits gets the processes first, even if it has waited for a moment only. */
	if (get(&capacity->open) > get(&capacity->limit))
		return true;
	if (!capacity->reported_ms || now_ms > capacity->reported_ms + 2 * CAPACITY_STUCK_MS ||
	    capacity->closed >= waiting)
		return false;
	/* If each were closed at once, none would ever show that it has overtaken another one. */
	if (began_ms && began_ms <= capacity->stuck_ms &&
	    now_ms > capacity->tried_ms + CAPACITY_TRY_MS) {
		capacity->tried_ms = now_ms;
		return false;
	}
	/* Those that were closed leave processes for some that wait. */
	if (began_ms > capacity->stuck_ms && !capacity->found) {
		capacity->found = MAX(1, served(capacity) + capacity->closed);
		capacity->found_ms = capacity->stuck_ms;
	}
	return true;
}

bool capacity_yields(struct capacity *capacity, uint64_t began_ms, uint64_t now_ms)
{
	bool yields;

	if (!capacity_has_waiting(capacity))
		return false;
	pthread_mutex_lock(&capacity->lock);
	yields = yields_locked(capacity, began_ms, now_ms);
	pthread_mutex_unlock(&capacity->lock);
	return yields;
}

bool capacity_raise(struct capacity *capacity, uint64_t now_ms)
{
	uint64_t due_ms = atomic_load_explicit(&capacity->raise_ms, memory_order_relaxed);
	unsigned limit;

	/* One that waits shows soon whether the limit is reached, unless its request takes long. */
	if (now_ms < due_ms ||
	    (capacity_has_waiting(capacity) && now_ms - due_ms < CAPACITY_RAISE_MAX_MS))
		return false;
	pthread_mutex_lock(&capacity->lock);
	limit = get(&capacity->limit);
	due_ms = atomic_load_explicit(&capacity->raise_ms, memory_order_relaxed);
	if (now_ms < due_ms) {
		pthread_mutex_unlock(&capacity->lock);
		return false;
	}
	/* The last step was not taken back. */
	if (capacity->before)
		capacity->pause_ms = CAPACITY_RAISE_MS;
	capacity->before = limit;
	set_limit_locked(capacity, MIN(limit + MAX(1, limit / 4), capacity->most), now_ms);
	pthread_mutex_unlock(&capacity->lock);
	return true;
}
