// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chunks: contiguous physical pages, and the pool of each file.
 *
 * A one-shot unit lives for a millisecond.  Clearing and charging its pages costs
 * more than sending them, so they come from the pool of the file that used them
 * before (rule 2), once no socket refers to them (rule 1).
 *
 * A chunk that sockets refer to stays in the pool, and is charged (rule 5): a
 * packet of one byte keeps the whole chunk.  There is no notification when the last
 * packet is freed, since packets do not know the module, so the collector checks.
 * A pool with such chunks keeps the structure of its file, which may have been
 * closed long ago.
 */
#include <linux/slab.h>

#include "nabc.h"

/* Number of busy chunks to check before asking the kernel for memory. */
#define BUSY_LOOKS 8

/* Number to check of each order at once where latency matters less. */
#define SWEEP_LOOKS 256

static struct kmem_cache *chunk_cache;

void nabc_pool_init(struct nabc_pool *pool)
{
	unsigned int i;

	spin_lock_init(&pool->lock);
	for (i = 0; i < NABC_ORDERS; i++) {
		INIT_LIST_HEAD(&pool->idle[i]);
		INIT_LIST_HEAD(&pool->busy[i]);
	}
}

static unsigned long pool_busy_locked(const struct nabc_pool *pool)
{
	unsigned long pages = 0;
	unsigned int i;

	for (i = 0; i < NABC_ORDERS; i++)
		pages += pool->busy_count[i] << i;
	return pages;
}

/* Call it before unlocking: updates the machine's gauges with the changes since locking. */
static void pool_publish_locked(struct nabc_pool *pool)
{
	unsigned long busy = pool_busy_locked(pool);

	if (pool->idle_pages != pool->idle_published)
		atomic_long_add(pool->idle_pages - pool->idle_published, &nabc_gauges.pooled);
	if (busy != pool->busy_published)
		atomic_long_add(busy - pool->busy_published, &nabc_gauges.in_flight);
	pool->idle_published = pool->idle_pages;
	pool->busy_published = busy;
	pool->low = min(pool->low, pool->idle_pages);
}

/* Sockets that sent from the page had references; the only one left is ours. */
static bool chunk_is_idle(const struct nabc_chunk *chunk)
{
	if (page_ref_count(chunk->page) != 1)
		return false;
	/* Their reads come before our next writes; pairs with put_page(). */
	smp_mb();
	return true;
}

/* Adds a busy chunk.  The pool keeps a reference to its file until no chunk is busy. */
static void pool_wait_locked(struct nabc_file *file, struct nabc_chunk *chunk)
{
	struct nabc_pool *pool = &file->pool;

	list_add_tail(&chunk->link, &pool->busy[chunk->order]);
	pool->busy_count[chunk->order]++;
	if (!pool->waits) {
		pool->waits = true;
		refcount_inc(&file->refs);
	}
}

static struct nabc_chunk *pool_take_locked(struct nabc_file *file, unsigned int order)
{
	struct nabc_pool *pool = &file->pool;
	struct nabc_chunk *chunk;
	unsigned int looks = 0;

	chunk = list_first_entry_or_null(&pool->idle[order], struct nabc_chunk, link);
	if (chunk) {
		list_del(&chunk->link);
		pool->idle_pages -= 1ul << order;
		if (chunk_is_idle(chunk))
			return chunk;
		/* Code that walks all pages can take a reference for a moment. */
		pool_wait_locked(file, chunk);
	}
	list_for_each_entry(chunk, &pool->busy[order], link) {
		if (chunk_is_idle(chunk)) {
			list_del(&chunk->link);
			pool->busy_count[order]--;
			return chunk;
		}
		if (++looks == BUSY_LOOKS)
			break;
	}
	return NULL;
}

/* Checks that many busy chunks; moves those that have become idle. */
static void pool_sweep_locked(struct nabc_pool *pool, unsigned int order, unsigned long looks)
{
	struct nabc_chunk *chunk;

	for (; looks && !list_empty(&pool->busy[order]); looks--) {
		chunk = list_first_entry(&pool->busy[order], struct nabc_chunk, link);
		if (chunk_is_idle(chunk)) {
			list_move_tail(&chunk->link, &pool->idle[order]);
			pool->busy_count[order]--;
			pool->idle_pages += 1ul << order;
		} else {
			list_move_tail(&chunk->link, &pool->busy[order]);
		}
	}
}

static unsigned int order_of(const struct nabc_unit *unit, unsigned int i)
{
	u64 rest = unit->size - (u64)i * NABC_CHUNK_SIZE;

	return rest >= NABC_CHUNK_SIZE ? NABC_ORDER_MAX : get_order(rest);
}

static void chunk_free(struct nabc_chunk *chunk)
{
	put_page(chunk->page);
	kmem_cache_free(chunk_cache, chunk);
}

static struct nabc_chunk *chunk_make(unsigned int order)
{
	struct nabc_chunk *chunk = kmem_cache_alloc(chunk_cache, GFP_KERNEL_ACCOUNT);

	if (!chunk)
		return NULL;
	/* Better an error than the OOM killer. */
	chunk->page = alloc_pages(GFP_KERNEL_ACCOUNT | __GFP_COMP | __GFP_ZERO | __GFP_NOWARN |
					  __GFP_RETRY_MAYFAIL,
				  order);
	if (!chunk->page) {
		kmem_cache_free(chunk_cache, chunk);
		return NULL;
	}
	chunk->sums = NULL;
	chunk->order = order;
	return chunk;
}

/* Frees up to that many idle pages; returns how many. */
unsigned long nabc_pool_drain(struct nabc_file *file, unsigned long pages)
{
	struct nabc_pool *pool = &file->pool;
	struct nabc_chunk *chunk, *next;
	unsigned long taken = 0;
	unsigned int i;
	LIST_HEAD(out);

	spin_lock(&pool->lock);
	for (i = NABC_ORDERS; i-- > 0;) {
		if (pool->idle_pages < pages)
			pool_sweep_locked(pool, i, min(pool->busy_count[i], SWEEP_LOOKS));
		while (taken < pages && !list_empty(&pool->idle[i])) {
			list_move(pool->idle[i].prev, &out);
			taken += 1ul << i;
		}
	}
	pool->idle_pages -= taken;
	pool_publish_locked(pool);
	spin_unlock(&pool->lock);
	if (!taken)
		return 0;
	list_for_each_entry_safe(chunk, next, &out, link)
		chunk_free(chunk);
	nabc_limit_give(taken);
	nabc_uncharge(file, taken);
	return taken;
}

/* Called by the collector: finds chunks that sockets have released, and frees surplus ones. */
void nabc_pool_sweep(struct nabc_file *file)
{
	struct nabc_pool *pool = &file->pool;
	unsigned long limit = nabc_pool_limit(), left, looks, much;
	bool over = false;
	unsigned int i;

	for (i = 0; i < NABC_ORDERS; i++) {
		for (left = READ_ONCE(pool->busy_count[i]); left; left -= looks) {
			looks = min(left, SWEEP_LOOKS);
			spin_lock(&pool->lock);
			pool_sweep_locked(pool, i, looks);
			pool_publish_locked(pool);
			spin_unlock(&pool->lock);
			cond_resched();
		}
	}
	spin_lock(&pool->lock);
	if (pool->closed)
		limit = 0;
	much = pool->idle_pages > limit ? pool->idle_pages - limit : 0;
	if (pool->waits && !pool_busy_locked(pool)) {
		pool->waits = false;
		over = true;
	}
	pool_publish_locked(pool);
	spin_unlock(&pool->lock);
	if (much)
		nabc_pool_drain(file, much);
	if (over)
		nabc_file_put(file);
}

/*
 * Called when the module is unloaded: pages that sockets refer to are no longer
 * counted.  The caller has a reference to the file, which is closed.
 */
void nabc_pool_forget(struct nabc_file *file)
{
	struct nabc_pool *pool = &file->pool;
	unsigned int i;

	spin_lock(&pool->lock);
	for (i = 0; i < NABC_ORDERS; i++) {
		list_splice_init(&pool->busy[i], &pool->idle[i]);
		pool->idle_pages += pool->busy_count[i] << i;
		pool->busy_count[i] = 0;
	}
	pool_publish_locked(pool);
	spin_unlock(&pool->lock);
	/* We drop our references; the pages are freed when the last socket drops its own. */
	nabc_pool_sweep(file);
}

/* Charges that many more pages, after draining the file's own pool if necessary. */
static int memory_account(struct nabc_file *file, unsigned long pages)
{
	int ret = nabc_charge(file, pages);

	if (ret == -ENOMEM && nabc_pool_drain(file, pages))
		ret = nabc_charge(file, pages);
	if (ret)
		return ret;
	ret = nabc_limit_take(pages);
	if (ret && nabc_pools_shrink(pages))
		ret = nabc_limit_take(pages);
	if (ret)
		nabc_uncharge(file, pages);
	return ret;
}

/* Allocates the unit's chunks; the caller has set size and chunk_count. */
int nabc_memory_get(struct nabc_file *file, struct nabc_unit *unit)
{
	unsigned long missing = 0;
	unsigned int i, hits = 0, dry = NABC_ORDERS;
	int ret;

	spin_lock(&file->pool.lock);
	for (i = 0; i < unit->chunk_count; i++) {
		unsigned int order = order_of(unit, i);

		if (order != dry)
			unit->chunks[i] = pool_take_locked(file, order);
		if (unit->chunks[i]) {
			unit->pages += 1ul << order;
			hits++;
		} else {
			missing += 1ul << order;
			dry = order;
		}
	}
	pool_publish_locked(&file->pool);
	spin_unlock(&file->pool.lock);
	nabc_count(NABC_POOL_HITS, hits);
	if (!missing)
		return 0;

	nabc_count(NABC_POOL_MISSES, unit->chunk_count - hits);
	ret = memory_account(file, missing);
	for (i = 0; !ret && i < unit->chunk_count; i++) {
		unsigned int order = order_of(unit, i);

		if (unit->chunks[i])
			continue;
		unit->chunks[i] = chunk_make(order);
		if (unit->chunks[i]) {
			unit->pages += 1ul << order;
			missing -= 1ul << order;
		}
		if (!unit->chunks[i] || fatal_signal_pending(current)) {
			ret = -ENOMEM;
			/* Uncharge what was not allocated; nabc_memory_put() uncharges the rest. */
			nabc_limit_give(missing);
			nabc_uncharge(file, missing);
		}
		cond_resched();
	}
	if (ret)
		nabc_memory_put(file, unit, 0);
	return ret;
}

/*
 * Returns chunks from index `from` on to the file's pool if it is not full or
 * sockets refer to them, otherwise to the kernel.
 */
void nabc_memory_put(struct nabc_file *file, struct nabc_unit *unit, unsigned int from)
{
	struct nabc_pool *pool = &file->pool;
	unsigned long limit = nabc_pool_limit();
	unsigned long freed = 0;
	struct nabc_chunk *chunk, *next;
	unsigned int i;
	LIST_HEAD(out);

	/* Rule 4: before another unit can get the chunk. */
	for (i = from; i < unit->chunk_count; i++) {
		if (unit->chunks[i] && unit->chunks[i]->sums)
			nabc_sums_drop(unit->chunks[i]);
	}
	spin_lock(&pool->lock);
	/* Backwards, so that the next unit finds them in order. */
	for (i = unit->chunk_count; i-- > from;) {
		chunk = unit->chunks[i];
		if (!chunk)
			continue;
		unit->chunks[i] = NULL;
		unit->pages -= 1ul << chunk->order;
		if (!chunk_is_idle(chunk)) {
			pool_wait_locked(file, chunk);
		} else if (pool->closed || pool->idle_pages + (1ul << chunk->order) > limit) {
			list_add(&chunk->link, &out);
			freed += 1ul << chunk->order;
		} else {
			list_add(&chunk->link, &pool->idle[chunk->order]);
			pool->idle_pages += 1ul << chunk->order;
		}
	}
	pool_publish_locked(pool);
	spin_unlock(&pool->lock);
	unit->chunk_count = min(unit->chunk_count, from);
	list_for_each_entry_safe(chunk, next, &out, link)
		chunk_free(chunk);
	if (freed) {
		nabc_limit_give(freed);
		nabc_uncharge(file, freed);
	}
}

int nabc_memory_init(void)
{
	chunk_cache = KMEM_CACHE(nabc_chunk, 0);
	return chunk_cache ? 0 : -ENOMEM;
}

void nabc_memory_exit(void)
{
	kmem_cache_destroy(chunk_cache);
}
