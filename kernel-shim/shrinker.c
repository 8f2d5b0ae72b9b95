// SPDX-License-Identifier: GPL-2.0-only
/*
 * Returns pooled memory to the kernel; and the collector.
 *
 * The kernel calls the shrinker when memory is short.  The collector runs
 * periodically while files are open, orphans linger or sockets refer to memory: it
 * destroys expired orphans, empties files whose program is gone, finds chunks that
 * sockets have released, and frees of each pool what was not used during the last
 * period.
 */
#include <linux/workqueue.h>

#include "compat.h"
#include "nabc.h"

/* Orphans are destroyed at most this late; pools are checked once in POOL_ROUNDS rounds. */
#define ROUND (HZ / 4)
#define POOL_ROUNDS 8

/*
 * Frees up to that many pages of all pools.  Called in reclaim, so it takes no
 * sleeping lock; charges are reduced later.
 */
unsigned long nabc_pools_shrink(unsigned long pages)
{
	struct nabc_file *file = NULL;
	unsigned long freed = 0;

	while (freed < pages && (file = nabc_file_next(file)))
		freed += nabc_pool_drain(file, pages - freed);
	if (file)
		nabc_file_put(file);
	nabc_count(NABC_SHRUNK, (u64)freed << PAGE_SHIFT);
	return freed;
}

static unsigned long shrinker_count(struct shrinker *shrinker, struct shrink_control *control)
{
	unsigned long pages = atomic_long_read(&nabc_gauges.pooled);

	return pages ? pages : SHRINK_EMPTY;
}

static unsigned long shrinker_scan(struct shrinker *shrinker, struct shrink_control *control)
{
	unsigned long freed = nabc_pools_shrink(control->nr_to_scan);

	return freed ? freed : SHRINK_STOP;
}

static struct shrinker shrinker_like = {
	.count_objects = shrinker_count,
	.scan_objects = shrinker_scan,
	.seeks = DEFAULT_SEEKS,
};

static struct shrinker *shrinker;

static unsigned long pool_unused(struct nabc_pool *pool)
{
	unsigned long low;

	spin_lock(&pool->lock);
	low = pool->low;
	pool->low = pool->idle_pages;
	spin_unlock(&pool->lock);
	return low;
}

static void collect(struct work_struct *work);
static DECLARE_DELAYED_WORK(collector, collect);

static void collect(struct work_struct *work)
{
	static unsigned int round;
	bool orphans = nabc_orphans_collect(false);
	bool age = ++round % POOL_ROUNDS == 0;
	struct nabc_file *file = NULL;
	bool files = false;

	while ((file = nabc_file_next(file))) {
		files = true;
		nabc_file_collect(file);
		nabc_pool_sweep(file);
		if (age)
			nabc_count(NABC_AGED, (u64)nabc_pool_drain(file, pool_unused(&file->pool))
						      << PAGE_SHIFT);
		nabc_charge_trim(file);
		cond_resched();
	}
	if (files || orphans)
		schedule_delayed_work(&collector, ROUND);
}

void nabc_collector_wake(void)
{
	schedule_delayed_work(&collector, ROUND);
}

int nabc_shrinker_init(void)
{
	shrinker = nabc_shrinker_add(&shrinker_like);
	return shrinker ? 0 : -ENOMEM;
}

void nabc_shrinker_exit(void)
{
	cancel_delayed_work_sync(&collector);
	nabc_shrinker_remove(shrinker);
}
