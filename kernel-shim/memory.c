// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chunks: physical runs of pages, and the pool of each file.
 *
 * A one-shot unit lives for a millisecond.  Clearing and charging its pages
 * costs more than sending them, so they come back from the pool of the file
 * that used them before (rule 2), once no socket refers to them (rule 1).
 *
 * A chunk that sockets refer to stays in the pool, and counts (rule 5): a packet
 * of one byte keeps as much as one of all of it.  Nobody tells when the last
 * packet is gone, for none knows of the module, so the collector looks.  A pool
 * with such chunks keeps its file, which may have been closed long ago.
 */
#include <linux/slab.h>

#include "nabc.h"

/* Of busy chunks so many are looked at before the kernel is asked for memory. */
#define BUSY_LOOKS 8

/* And so many of each order at once where it matters less how long that takes. */
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

/* Before it is unlocked: what has changed since it was locked counts for the machine, too. */
static void pool_tell_locked(struct nabc_pool *pool)
{
	unsigned long busy = pool_busy_locked(pool);

	if (pool->idle_pages != pool->idle_told)
		atomic_long_add(pool->idle_pages - pool->idle_told, &nabc_gauges.pooled);
	if (busy != pool->busy_told)
		atomic_long_add(busy - pool->busy_told, &nabc_gauges.in_flight);
	pool->idle_told = pool->idle_pages;
	pool->busy_told = busy;
	pool->low = min(pool->low, pool->idle_pages);
}

/* Sockets that sent from the page had references; the one left is ours. */
static bool chunk_is_idle(const struct nabc_chunk *chunk)
{
	if (page_ref_count(chunk->page) != 1)
		return false;
	/* What they read comes before what is written next; pairs with put_page(). */
	smp_mb();
	return true;
}

/* Adds a chunk, for which the pool keeps its file until nobody refers to it. */
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
		/* It can have been borrowed for a moment by who walks all pages. */
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

/* Looks at so many busy chunks; those that are idle now go where such are. */
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
	/* Rather an error than the OOM killer. */
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

/* Frees up to so many pages that nobody refers to; how many it were. */
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
	pool_tell_locked(pool);
	spin_unlock(&pool->lock);
	if (!taken)
		return 0;
	list_for_each_entry_safe(chunk, next, &out, link)
		chunk_free(chunk);
	nabc_limit_give(taken);
	nabc_uncharge(file, taken);
	return taken;
}

/* By the collector: finds what sockets have left; what is too much is freed. */
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
			pool_tell_locked(pool);
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
	pool_tell_locked(pool);
	spin_unlock(&pool->lock);
	if (much)
		nabc_pool_drain(file, much);
	if (over)
		nabc_file_put(file);
}

/*
 * The module goes: from now on nobody counts what sockets refer to.  The caller
 * has a reference of the file, which is closed.
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
	pool_tell_locked(pool);
	spin_unlock(&pool->lock);
	/* Without a reference of ours the pages go when the last socket puts its own. */
	nabc_pool_sweep(file);
}

/* Charges and limits so many pages more, for which the own pool may have to go. */
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

/* Gives the unit its chunks; the caller has set size and chunk_count. */
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
	pool_tell_locked(&file->pool);
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
			/* What was accounted and not had; put counts the rest. */
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
 * Chunks from that one on, to the file's pool if it has room or sockets refer to
 * them, else to the kernel.
 */
void nabc_memory_put(struct nabc_file *file, struct nabc_unit *unit, unsigned int from)
{
	struct nabc_pool *pool = &file->pool;
	unsigned long limit = nabc_pool_limit();
	unsigned long freed = 0;
	struct nabc_chunk *chunk, *next;
	unsigned int i;
	LIST_HEAD(out);

	/* Rule 4: before any other unit can have the chunk. */
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
	pool_tell_locked(pool);
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
