/* SPDX-License-Identifier: MIT */
/*
 * file-cache-variant.c - compressed variants of files: entries outside of the table,
 * which only the entry of their file refers to.
 *
 * A variant is made once for a version of a file, and ends with it.  If its unit was
 * evicted, its file leaves the table, and the next request begins again.
 */
#include <glib.h>
#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/holds.h"
#include "files/compressor.h"
#include "files/docroot.h"
#include "files/file-cache-internal.h"
#include "files/file-cache.h"
#include "files/filehead.h"
#include "http/accept.h"

#define AGAIN_NS UINT64_C(10000000000) /* time between two attempts that fail */

struct variant_job {
	struct compress_job job;
	struct file_cache_entry *entry; /* referenced */
	bool held;			/* its unit is held */
	struct NC_range range;
	struct NC_hold hold;
};

/* Only where requests for a path share one entry and one unit. */
static bool can_code(const struct file_cache_entry *entry)
{
	return entry->cache->options.compressor && file_cache_keeps(entry->cache) &&
	       entry->view.id && !entry->view.coded;
}

const struct file_cache_entry *file_cache_variant_peek(const struct file_cache_entry *entry,
						       enum coding coding)
{
	return atomic_load_explicit(&entry->variants[coding], memory_order_acquire);
}

struct file_cache_entry *file_cache_variant(struct file_cache_entry *entry, enum coding coding)
{
	struct file_cache *cache = entry->cache;
	/* The caller has a reference to entry, which has one to it. */
	struct file_cache_entry *variant =
		atomic_load_explicit(&entry->variants[coding], memory_order_acquire);

	if (!variant)
		return NULL;
	if (!file_cache_hold(variant)) {
		file_cache_drop(cache, entry);
		return NULL;
	}
	pthread_mutex_lock(&cache->lock);
	variant->references++;
	pthread_mutex_unlock(&cache->lock);
	return variant;
}

unsigned file_cache_variants(const struct file_cache_entry *entry)
{
	unsigned all = (1u << CODINGS) - 1;

	return can_code(entry) ? all & ~atomic_load_explicit(&entry->unfit, memory_order_relaxed)
			       : 0;
}

static void publish(struct file_cache_entry *entry, const struct compress_job *job)
{
	struct file_cache_entry *variant = file_cache_entry_new(entry->cache, entry->path);

	variant->state = ENTRY_GONE; /* from the table */
	variant->owner = true;
	variant->view.id = job->id;
	variant->view.hold = job->hold;
	variant->view.version = entry->view.version;
	variant->view.version.size = (off_t)job->length;
	variant->view.type = entry->view.type;
	variant->view.coded = true;
	filehead_write_coded(&variant->head, &entry->view.version, entry->cache->options.etag,
			     job->length, compressor_revision(job->coding), entry->view.type,
			     time(NULL));
	variant->view.head = &variant->head;
	/* Each user has a hold of its own. */
	holds_release(&job->hold, 1);
	/* Pairs with the acquires in file_cache_variant() and _peek(). */
	atomic_store_explicit(&entry->variants[job->coding], variant, memory_order_release);
}

static bool file_variant_begin(struct compress_job *job)
{
	struct variant_job *made = container_of(job, struct variant_job, job);

	made->held = file_cache_hold(made->entry);
	return made->held;
}

static void file_variant_done(struct compress_job *job)
{
	struct variant_job *made = container_of(job, struct variant_job, job);
	struct file_cache_entry *entry = made->entry;
	struct file_cache *cache = entry->cache;

	if (job->result == COMPRESS_GOOD)
		publish(entry, job);
	else if (job->result == COMPRESS_UNFIT)
		atomic_fetch_or_explicit(&entry->unfit, 1u << job->coding, memory_order_relaxed);
	else if (job->result == COMPRESS_FAILED)
		atomic_store_explicit(&entry->code_again_ns, clock_monotonic_ns() + AGAIN_NS,
				      memory_order_relaxed);
	atomic_store_explicit(&entry->coding, false, memory_order_release);
	if (made->held)
		holds_release(&made->hold, 1);
	file_cache_entry_unref(cache, entry);
	file_cache_close(cache);
	g_free(made);
}

void file_cache_compress(struct file_cache_entry *entry, enum coding coding)
{
	struct file_cache *cache = entry->cache;
	uint64_t again = atomic_load_explicit(&entry->code_again_ns, memory_order_relaxed);
	struct variant_job *made;

	if (!(file_cache_variants(entry) & 1u << coding) ||
	    file_cache_variant_peek(entry, coding) || (again && again > clock_monotonic_ns()) ||
	    atomic_exchange_explicit(&entry->coding, true, memory_order_acquire))
		return;
	made = g_new0(struct variant_job, 1);
	made->entry = entry;
	made->range =
		(struct NC_range){.id = entry->view.id, .length = (size_t)entry->view.version.size};
	made->hold = entry->view.hold;
	made->job = (struct compress_job){.coding = coding,
					  .ranges = &made->range,
					  .holds = &made->hold,
					  .range_count = 1,
					  .begin = file_variant_begin,
					  .done = file_variant_done};
	pthread_mutex_lock(&cache->lock);
	entry->references++;
	pthread_mutex_unlock(&cache->lock);
	(void)file_cache_ref(cache);
	/* It may exist already: the exchange pairs with the release in file_variant_done(). */
	if (!file_cache_variant_peek(entry, coding) &&
	    compressor_submit(cache->options.compressor, &made->job))
		return;
	atomic_store_explicit(&entry->coding, false, memory_order_release);
	file_cache_entry_unref(cache, entry);
	file_cache_close(cache);
	g_free(made);
}
