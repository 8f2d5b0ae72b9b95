// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pooled memory back to the kernel, and the collector.
 *
 * The shrinker is called when the kernel is short.  The collector comes by
 * while files are open, orphans linger or sockets refer to memory: it ends
 * orphans whose time has come, empties files whose program is gone, finds what
 * sockets have left, and gives back of each pool what was not used since the
 * last time but one.
 */
#include <linux/workqueue.h>

#include "compat.h"
#include "nabc.h"

/* Orphans are ended so late at most; pools are looked at every so many rounds. */
#define ROUND (HZ / 4)
#define POOL_ROUNDS 8

/*
 * Frees up to so many pages of all pools; in reclaim, so without sleeping
 * locks, and what is charged is brought down later.
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
