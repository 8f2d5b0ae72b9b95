// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checksums of chunks, kept as long as their unit lives.
 *
 * They are prefix sums, one for each 128 bytes: any range costs two lookups and the
 * bytes at its two ends, wherever segments begin and end.  They are made when first
 * needed, only for inserted units, whose bytes cannot change (rule 1).
 *
 * The hook on egress finds them by the number of the chunk's first page frame; it
 * holds RCU and an skb that refers to the page (rule 4).
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include <net/checksum.h>

#include "nabc.h"

struct nabc_sums {
	struct rcu_head rcu;
	unsigned long frame;
	u16 count;    /* number of prefixes */
	u16 prefix[]; /* [k]: the sum of bytes 0 to (k + 1) * NABC_SUM_GRAIN */
};

#define SUMS_MAX (NABC_CHUNK_SIZE / NABC_SUM_GRAIN)
static_assert(SUMS_MAX <= U16_MAX);

static DEFINE_XARRAY(frames);

static u16 fold(__wsum sum)
{
	return (__force u16)~csum_fold(sum);
}

static size_t sums_bytes(unsigned int count)
{
	return sizeof(struct nabc_sums) + count * sizeof(u16);
}

/* Makes the checksums of the first length bytes of the chunk; whole grains only. */
static int chunk_sum(struct nabc_chunk *chunk, size_t length)
{
	const u8 *data = page_address(chunk->page);
	unsigned int k, count = length / NABC_SUM_GRAIN;
	struct nabc_sums *sums;
	__wsum sum = 0;
	int ret;

	sums = kmalloc(sums_bytes(count), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!sums)
		return -ENOMEM;
	sums->frame = page_to_pfn(chunk->page);
	sums->count = count;
	for (k = 0; k < count; k++) {
		sum = csum_partial(data + k * NABC_SUM_GRAIN, NABC_SUM_GRAIN, sum);
		sums->prefix[k] = fold(sum);
	}
	ret = xa_insert(&frames, sums->frame, sums, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (ret) {
		kfree(sums);
		return ret;
	}
	chunk->sums = sums;
	atomic_long_add(sums_bytes(count), &nabc_gauges.sum_bytes);
	nabc_count(NABC_SUM_MADE, (u64)count * NABC_SUM_GRAIN);
	return 0;
}

/*
 * The caller has a reference to an inserted unit.  After an error, the checksums
 * already made remain; they are freed with the unit.
 */
int nabc_sums_make(struct nabc_unit *unit)
{
	unsigned int i;
	int ret = 0;

	/* Pairs with the release below: true means that all are made. */
	if (smp_load_acquire(&unit->summed))
		return 0;
	mutex_lock(&unit->lock);
	for (i = 0; !ret && !unit->summed && i < unit->chunk_count; i++) {
		struct nabc_chunk *chunk = unit->chunks[i];

		if (!chunk->sums)
			ret = chunk_sum(chunk, min_t(u64, NABC_CHUNK_SIZE,
						     unit->size - (u64)i * NABC_CHUNK_SIZE));
		if (fatal_signal_pending(current))
			ret = -EINTR;
		cond_resched();
	}
	if (!ret) {
		/* Pairs with the acquire above. */
		smp_store_release(&unit->summed, true);
	}
	mutex_unlock(&unit->lock);
	return ret;
}

/* Called when the unit is gone; skbs may still refer to the page. */
void nabc_sums_drop(struct nabc_chunk *chunk)
{
	struct nabc_sums *sums = chunk->sums;

	xa_erase(&frames, sums->frame);
	atomic_long_sub(sums_bytes(sums->count), &nabc_gauges.sum_bytes);
	chunk->sums = NULL;
	kfree_rcu(sums, rcu);
}

bool nabc_sums_none(void)
{
	return xa_empty(&frames);
}

/* Call it under RCU, with a reference to the page. */
bool nabc_sums_known(struct page *page)
{
	return xa_load(&frames, page_to_pfn(compound_head(page)));
}

/* Returns the sum of the first k grains. */
static __wsum prefix(const struct nabc_sums *sums, size_t k)
{
	return k ? (__force __wsum)(u32)sums->prefix[k - 1] : 0;
}

/* Consecutive packets mostly belong to one chunk. */
static const struct nabc_sums *sums_find(struct nabc_sums_near *near, struct page *head)
{
	if (near->head != head) {
		near->head = head;
		near->sums = xa_load(&frames, page_to_pfn(head));
	}
	return near->sums;
}

/*
 * Returns the sum of bytes that an skb or a unit refers to, as if they began at an
 * even offset.  offset may lie beyond the page, within the compound page.  Call it
 * under RCU, with a reference to the page, also since near was initialised; reused:
 * bytes that were not read.
 */
__wsum nabc_sums_range(struct nabc_sums_near *near, struct page *page, size_t offset, size_t length,
		       size_t *reused)
{
	struct page *head = compound_head(page);
	const struct nabc_sums *sums = sums_find(near, head);
	size_t begin = ((page - head) << PAGE_SHIFT) + offset;
	size_t first = DIV_ROUND_UP(begin, NABC_SUM_GRAIN);
	size_t last = (begin + length) / NABC_SUM_GRAIN;
	const u8 *data = page_address(head);
	__wsum sum;
	size_t edge;

	*reused = 0;
	if (sums)
		last = min_t(size_t, last, sums->count);
	if (!sums || first >= last)
		return csum_partial(data + begin, length, 0);

	*reused = (last - first) * NABC_SUM_GRAIN;
	sum = csum_sub(prefix(sums, last), prefix(sums, first));
	edge = first * NABC_SUM_GRAIN - begin;
	/* Grains have even length, so only the start of the first one matters. */
	if (edge)
		sum = csum_block_add(csum_partial(data + begin, edge, 0), sum, edge);
	edge += *reused;
	if (edge < length)
		sum = csum_block_add(sum, csum_partial(data + begin + edge, length - edge, 0),
				     edge);
	return sum;
}

int nabc_sum(struct nabc_file *file, struct nabc_sum *call)
{
	u64 offset = call->offset, left = call->length, done = 0;
	struct nabc_unit *unit;
	__wsum sum = 0;
	int ret;

	if (call->reserved)
		return -EINVAL;
	ret = nabc_access(file, call->id, NABC_RIGHT_SEND, &unit);
	if (ret)
		return ret;
	if (!nabc_within(unit, offset, left))
		ret = -ERANGE;
	/* Without memory for checksums, the bytes are read. */
	else
		nabc_sums_make(unit);
	while (!ret && left) {
		size_t at = offset % NABC_CHUNK_SIZE;
		size_t part = min_t(u64, left, NABC_CHUNK_SIZE - at), reused;
		struct nabc_sums_near near = {};
		struct nabc_chunk *chunk = unit->chunks[offset / NABC_CHUNK_SIZE];

		rcu_read_lock();
		sum = csum_block_add(sum, nabc_sums_range(&near, chunk->page, at, part, &reused),
				     done);
		rcu_read_unlock();
		offset += part;
		left -= part;
		done += part;
		cond_resched();
	}
	nabc_unit_put(unit);
	call->sum = be16_to_cpu((__force __be16)fold(sum));
	return ret;
}

void nabc_sums_exit(void)
{
	WARN_ON(!xa_empty(&frames));
	xa_destroy(&frames);
}
