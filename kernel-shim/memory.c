// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chunks: physical runs of pages, and the pool of each file.
 *
 * A one-shot unit lives for a millisecond.  Clearing and charging its pages
 * costs more than sending them, so they come back from the pool of the file
 * that used them before (rule 2), once no socket refers to them (rule 1).
 */
#include <linux/slab.h>

#include "nabc.h"

/* Of busy chunks so many are looked at before the kernel is asked for memory. */
#define BUSY_LOOKS 8

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

/* Sockets that sent from the page had references; the one left is ours. */
static bool chunk_is_idle(const struct nabc_chunk *chunk)
{
	if (page_ref_count(chunk->page) != 1)
		return false;
	/* What they read comes before what is written next; pairs with put_page(). */
	smp_mb();
	return true;
}

static struct nabc_chunk *pool_take_locked(struct nabc_pool *pool, unsigned int order)
{
	struct nabc_chunk *chunk;
	unsigned int looks = 0;

	chunk = list_first_entry_or_null(&pool->idle[order], struct nabc_chunk, link);
	/* Idle ones can have been borrowed for a moment by who walks all pages. */
	if (chunk && !chunk_is_idle(chunk)) {
		list_move_tail(&chunk->link, &pool->busy[order]);
		chunk = NULL;
	}
	if (!chunk) {
		struct nabc_chunk *each;

		list_for_each_entry(each, &pool->busy[order], link) {
			if (chunk_is_idle(each)) {
				chunk = each;
				break;
			}
			if (++looks == BUSY_LOOKS)
				break;
		}
	}
	if (!chunk)
		return NULL;
	list_del(&chunk->link);
	pool->pages -= 1ul << order;
	pool->low = min(pool->low, pool->pages);
	return chunk;
}

static unsigned int order_of(const struct nabc_unit *unit, unsigned int i)
{
	u64 rest = unit->size - (u64)i * NABC_CHUNK_SIZE;

	return rest >= NABC_CHUNK_SIZE ? NABC_ORDER_MAX : get_order(rest);
}

static void chunk_free(struct nabc_chunk *chunk)
{
	/* Sockets may keep the pages longer. */
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

/* Frees up to so many pages of the pool, idle ones first; how many it were. */
unsigned long nabc_pool_drain(struct nabc_file *file, unsigned long pages)
{
	struct nabc_pool *pool = &file->pool;
	struct nabc_chunk *chunk, *next;
	unsigned long taken = 0;
	unsigned int i, kind;
	LIST_HEAD(out);

	spin_lock(&pool->lock);
	for (kind = 0; kind < 2; kind++) {
		for (i = NABC_ORDERS; i-- > 0;) {
			struct list_head *list = kind ? &pool->busy[i] : &pool->idle[i];

			while (taken < pages && !list_empty(list)) {
				list_move(list->prev, &out);
				taken += 1ul << i;
			}
		}
	}
	pool->pages -= taken;
	pool->low = min(pool->low, pool->pages);
	atomic_long_sub(taken, &nabc_gauges.pooled);
	spin_unlock(&pool->lock);
	if (!taken)
		return 0;
	list_for_each_entry_safe(chunk, next, &out, link)
		chunk_free(chunk);
	nabc_limit_give(taken);
	nabc_uncharge(file, taken);
	return taken;
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
			unit->chunks[i] = pool_take_locked(&file->pool, order);
		if (unit->chunks[i]) {
			unit->pages += 1ul << order;
			hits++;
		} else {
			missing += 1ul << order;
			dry = order;
		}
	}
	atomic_long_sub(unit->pages, &nabc_gauges.pooled);
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

/* Chunks from that one on, to the file's pool if it has room, else to the kernel. */
void nabc_memory_put(struct nabc_file *file, struct nabc_unit *unit, unsigned int from)
{
	struct nabc_pool *pool = &file->pool;
	unsigned long limit = nabc_pool_limit();
	unsigned long freed = 0, pooled = 0;
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
		if (pool->closed || pool->pages + (1ul << chunk->order) > limit) {
			list_add(&chunk->link, &out);
			freed += 1ul << chunk->order;
			continue;
		}
		if (chunk_is_idle(chunk))
			list_add(&chunk->link, &pool->idle[chunk->order]);
		else
			list_add_tail(&chunk->link, &pool->busy[chunk->order]);
		pool->pages += 1ul << chunk->order;
		pooled += 1ul << chunk->order;
	}
	atomic_long_add(pooled, &nabc_gauges.pooled);
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
