/* SPDX-License-Identifier: MIT */
/*
 * file-cache.c - see file-cache.h: requests for a file, the lookup by path, and
 * waiters while a file is looked up and read.
 */
#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/holds.h"
#include "base/list.h"
#include "event/loop.h"
#include "event/thread-pool.h"
#include "files/file-cache-internal.h"
#include "files/file-cache-read.h"
#include "files/file-cache.h"
#include "files/filehead.h"

/* --- loading a path ----------------------------------------------------------- */

/* Looks the file up, and reads it if contents are cached. */
static int load_once(struct file_cache_entry *entry, bool wait)
{
	const struct file_cache_options *options = &entry->cache->options;
	struct reading *reading = &entry->reading;
	int error;

	if (reading->fd < 0)
		atomic_store_explicit(&entry->checked_ns, clock_monotonic_ns(),
				      memory_order_relaxed);
	error = reading_open(reading, options->root, entry->path, wait);
	if (!error)
		error = reading_rest(reading, wait);
	if (error || options->no_contents || !file_cache_fits(entry->cache, &reading->version))
		return error;
	error = reading_unit(reading, file_cache_way(entry->cache), wait, &entry->view.id,
			     &entry->view.hold);
	entry->owner = entry->view.id != 0;
	/* Units being sent fill the cache: send this file like one that is too large. */
	entry->no_room = error == -ENOMEM;
	if (entry->owner && options->pages != PAGE_CACHE_KEEP)
		reading_drop_pages(reading);
	return entry->no_room ? 0 : error;
}

/* Returns 0, -errno, or READING_LATER: a thread that may wait continues. */
static int load(struct file_cache_entry *entry, bool wait)
{
	int error = -EAGAIN;

	for (int i = 0; i < FILE_CACHE_TRIES; i++) {
		error = load_once(entry, wait);
		if (error != -EAGAIN)
			break;
		reading_end(&entry->reading);
		if (!wait)
			return READING_LATER; /* do not block the loop any longer */
	}
	if (error == READING_LATER)
		return error;
	entry->error = error;
	if (!error)
		file_cache_describe(entry, &entry->reading.version);
	/* If contents are not cached, each request reads from the open file. */
	if (error || !entry->cache->options.no_contents ||
	    !file_cache_fits(entry->cache, &entry->view.version))
		reading_end(&entry->reading);
	return error;
}

static void file_cache_work(struct job *job)
{
	(void)load(container_of(job, struct file_cache_entry, job), true);
}

static bool ask(struct file_cache *cache, const char *path, struct file_cache_waiter *waiter);

/* --- results for waiters ---------------------------------------------------- */

static void take_result(struct file_cache_waiter *waiter);

static void file_cache_arrive(struct loop_task *task)
{
	struct file_cache_waiter *waiter = container_of(task, struct file_cache_waiter, task);

	if (waiter->entry)
		take_result(waiter);
	/* The file may have changed between the check and this request: look again. */
	if (waiter->late && waiter->left) {
		if (waiter->opened)
			file_cache_entry_unref(waiter->cache, waiter->opened);
		waiter->result = (struct file_cache_result){.error = -ECANCELED};
	} else if (waiter->late && !ask(waiter->cache, waiter->path, waiter)) {
		return;
	}
	waiter->arrived(waiter);
}

static void count_hits_locked(const struct file_cache_entry *entry, unsigned more, unsigned timely)
{
	struct file_cache_stat *stat = &entry->cache->stat;

	stat->hits += timely;
	*(entry->view.id ? &stat->hit_bytes : &stat->miss_bytes) +=
		more * (uint64_t)entry->view.version.size;
}

/* Gives a waiter the loaded entry, or makes it late: it has to ask again. */
static void give_locked(struct file_cache_entry *entry, struct file_cache_waiter *waiter)
{
	struct file_cache *cache = entry->cache;
	uint64_t seen = atomic_load_explicit(&entry->checked_ns, memory_order_relaxed);

	waiter->entry = NULL;
	/* It may have joined after the others had left. */
	waiter->late = entry->error == -ECANCELED ||
		       waiter->since_ns > seen + cache->options.revalidate_ns;
	if (!waiter->late && !entry->error && cache->options.no_contents) {
		count_hits_locked(entry, 1, 0);
		waiter->late = true;
		waiter->opened = entry;
		entry->references++;
	}
	/* One hold for each waiter; the unit may have been destroyed by its id. */
	if (!waiter->late && !entry->error)
		waiter->late = !file_cache_hold(entry);
	if (waiter->late)
		return;
	waiter->result = (struct file_cache_result){.error = entry->error};
	if (waiter->result.error)
		return;
	waiter->result.entry = entry;
	cache->stat.miss_bytes += (uint64_t)entry->view.version.size;
	entry->references++;
}

/* Its turn has come. */
static void take_result(struct file_cache_waiter *waiter)
{
	struct file_cache_entry *entry = waiter->entry;
	struct file_cache *cache = entry->cache;
	bool last;

	pthread_mutex_lock(&cache->lock);
	give_locked(entry, waiter);
	last = --entry->unanswered == 0;
	pthread_mutex_unlock(&cache->lock);
	if (last && entry->view.id)
		holds_release(&entry->view.hold, 1);
	file_cache_entry_unref(cache, entry);
}

/*
 * Runs on the thread of the first request's loop; first: its waiter, or NULL if it
 * is in the list.  The others take their results in turns of their own loops; until then the unit is
 * held, so that it is not evicted.
 */
static void loaded(struct file_cache_entry *entry, struct file_cache_waiter *first)
{
	struct file_cache *cache = entry->cache;
	struct file_cache_waiter *waiter;
	struct NC_hold held = entry->view.hold;
	bool last = false, holds;
	struct list waiters;

	pthread_mutex_lock(&cache->lock);
	list_move(&waiters, &entry->waiters);
	entry->state = ENTRY_READY;
	if (entry->error != -ECANCELED)
		*(first ? &cache->stat.by_loops : &cache->stat.by_helpers) += 1;
	if (first)
		give_locked(entry, first);
	/* By reading_unit(); each waiter gets a hold of its own. */
	holds = entry->view.id && !entry->unanswered;
	/* Do not cache failures or a lack of memory: the next request tries again. */
	if (entry->error || entry->no_room)
		last = file_cache_drop_locked(cache, entry);
	pthread_mutex_unlock(&cache->lock);
	if (holds)
		(void)NC_release(&held);
	while ((waiter = list_take(&waiters, struct file_cache_waiter, node))) {
		waiter->task.run = file_cache_arrive;
		loop_queue(waiter->loop, &waiter->task);
	}
	if (last)
		file_cache_entry_free(entry);
}

static void file_cache_work_done(struct job *job)
{
	struct file_cache_entry *entry = container_of(job, struct file_cache_entry, job);

	if (!job->worked)
		entry->error = -ECANCELED;
	loaded(entry, NULL);
}

static void wait_locked(struct file_cache_entry *entry, struct file_cache_waiter *waiter)
{
	waiter->entry = entry;
	list_append(&entry->waiters, &waiter->node);
	entry->references++;
	entry->unanswered++;
	entry->wanted++;
}

void file_cache_leave(struct file_cache_waiter *waiter)
{
	struct file_cache *cache = waiter->cache;
	struct file_cache_entry *entry;

	pthread_mutex_lock(&cache->lock);
	entry = waiter->entry;
	if (entry && entry->state == ENTRY_LOADING && !waiter->left && --entry->wanted == 0)
		thread_pool_cancel(&entry->job);
	waiter->left = true;
	pthread_mutex_unlock(&cache->lock);
}

/*
 * Loads a missing entry.  Returns true if that is done, and the waiter has a result
 * or is late; false: a helper loads it.
 */
static bool load_first(struct file_cache_entry *entry, struct file_cache_waiter *waiter)
{
	struct file_cache *cache = entry->cache;

	if (cache->options.try_now && load(entry, false) != READING_LATER) {
		loaded(entry, waiter);
		return true;
	}
	pthread_mutex_lock(&cache->lock);
	wait_locked(entry, waiter);
	pthread_mutex_unlock(&cache->lock);
	entry->job = (struct job){.work = file_cache_work,
				  .done = file_cache_work_done,
				  .loop = waiter->loop,
				  .class = JOB_QUICK,
				  .client = waiter->client};
	thread_pool_submit(cache->options.thread_pool, &entry->job);
	return false;
}

/* --- requests ----------------------------------------------------------------- */

/* Returns true if a ready entry still is the version on the disk. */
static bool current(struct file_cache *cache, struct file_cache_entry *entry, struct loop *loop)
{
	uint64_t checked = atomic_load_explicit(&entry->checked_ns, memory_order_relaxed);
	uint64_t now = loop_now_ns(loop);
	struct file_version version;

	/* Checked since this loop woke up, or recently enough. */
	if (checked + cache->options.revalidate_ns >= now &&
	    checked > atomic_load_explicit(&cache->switched_ns, memory_order_relaxed))
		return true;
	now = clock_monotonic_ns();
	if (docroot_peek(cache->options.root, entry->path, &version) ||
	    !file_version_equal(&version, &entry->view.version))
		return false;
	atomic_store_explicit(&entry->checked_ns, now, memory_order_relaxed);
	return true;
}

void file_cache_put(struct file_cache *cache, struct file_cache_entry *entry)
{
	if (entry->view.id)
		holds_release(&entry->view.hold, 1);
	file_cache_entry_unref(cache, entry);
}

/* Holds a ready entry, or releases the caller's reference and returns false: it is outdated. */
static bool take(struct file_cache *cache, struct file_cache_entry *entry, struct loop *loop)
{
	if (current(cache, entry, loop) && file_cache_hold(entry))
		return true;
	/* Changed or evicted: remove it and try again. */
	file_cache_drop(cache, entry);
	file_cache_entry_unref(cache, entry);
	return false;
}

void file_cache_count_hits(struct file_cache *cache, const struct file_cache_entry *entry,
			   unsigned more)
{
	pthread_mutex_lock(&cache->lock);
	count_hits_locked(entry, more, more);
	pthread_mutex_unlock(&cache->lock);
}

bool file_cache_keeps(const struct file_cache *cache)
{
	return !cache->options.no_paths && !cache->options.no_contents;
}

/* For a partly cached file.  As ask(), but the waiter may be late after it. */
static bool revalidate(struct file_cache *cache, struct file_cache_entry *known,
		       struct file_cache_waiter *waiter)
{
	waiter->task.run = file_cache_arrive;
	return file_cache_revalidate(cache, known, waiter);
}

/*
 * A ready entry, with the caller's reference.  Returns true if the waiter has its result, or is
 * late; false: a helper reads the contents.
 */
static bool give(struct file_cache *cache, struct file_cache_entry *entry,
		 struct file_cache_waiter *waiter)
{
	waiter->late = false;
	waiter->result = (struct file_cache_result){.entry = entry};
	if (!cache->options.no_contents || entry->reading.fd < 0)
		return true;
	return revalidate(cache, entry, waiter);
}

/*
 * entry: that of the path, which is not ready; NULL: there is none.  Unlocks.  Returns true if the
 * waiter has a result, or is late; false: a helper loads for it.
 */
static bool load_or_join_locked(struct file_cache *cache, struct file_cache_entry *entry,
				struct file_cache_waiter *waiter)
{
	struct file_cache_entry *oldest;

	cache->stat.misses += !waiter->late;
	waiter->since_ns = clock_monotonic_ns();
	if (entry) {
		wait_locked(entry, waiter);
		pthread_mutex_unlock(&cache->lock);
		return false;
	}
	entry = file_cache_entry_new(cache, waiter->path);
	oldest = file_cache_enter_locked(cache, entry);
	pthread_mutex_unlock(&cache->lock);
	if (oldest)
		file_cache_entry_free(oldest);
	return load_first(entry, waiter);
}

/* As file_cache_get(), but a late waiter has asked before, and is not counted again. */
static bool ask(struct file_cache *cache, const char *path, struct file_cache_waiter *waiter)
{
	waiter->cache = cache;
	waiter->path = path;
	if (cache->options.no_paths)
		return revalidate(cache, NULL, waiter);
	for (;;) {
		/*
		 * Loaded since it asked: that is new enough.  Asking whether it is current would
		 * never end for a file that changes faster than it is loaded.
		 */
		struct file_cache_entry *entry = g_steal_pointer(&waiter->opened);

		if (!entry) {
			pthread_mutex_lock(&cache->lock);
			entry = g_hash_table_lookup(cache->table, path);
			if (!entry || entry->state != ENTRY_READY) {
				if (!load_or_join_locked(cache, entry, waiter))
					return false;
				if (!waiter->late)
					return true;
				continue;
			}
			count_hits_locked(entry, 1, !waiter->late);
			entry->references++;
			pthread_mutex_unlock(&cache->lock);
			if (!take(cache, entry, waiter->loop))
				continue;
		}
		if (!give(cache, entry, waiter))
			return false;
		if (!waiter->late)
			return true;
	}
}

bool file_cache_get(struct file_cache *cache, const char *path, struct file_cache_waiter *waiter)
{
	(void)file_cache_root(cache); /* follows its path */
	waiter->late = waiter->left = false;
	waiter->entry = waiter->opened = NULL;
	return ask(cache, path, waiter);
}

/* --- results -------------------------------------------------------------------- */

const struct file_cache_view *file_cache_view(const struct file_cache_entry *entry)
{
	return &entry->view;
}

const struct filehead *file_cache_head(const struct file_cache_entry *entry, struct filehead *place)
{
	if (entry->view.head)
		return entry->view.head;
	filehead_write(place, &entry->view.version, entry->cache->options.etag, entry->view.type,
		       time(NULL));
	return place;
}

void file_cache_stat(struct file_cache *cache, struct file_cache_stat *sum)
{
	pthread_mutex_lock(&cache->lock);
	sum->files += g_hash_table_size(cache->table);
	sum->hits += cache->stat.hits;
	sum->misses += cache->stat.misses;
	sum->hit_bytes += cache->stat.hit_bytes;
	sum->miss_bytes += cache->stat.miss_bytes;
	sum->by_loops += cache->stat.by_loops;
	sum->by_helpers += cache->stat.by_helpers;
	pthread_mutex_unlock(&cache->lock);
}
