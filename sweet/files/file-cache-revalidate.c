/* SPDX-License-Identifier: MIT */
/*
 * file-cache-revalidate.c - serves a request for a file that is only partly cached:
 * it gets an entry of its own, outside of the table, which is looked up or read
 * again, and freed after the response.  The cached part is in the table: known.
 *
 * Without the cache of paths, the opened file's identity finds it.  Two requests
 * that miss it at the same time read the file twice.
 */

#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <nabc.h>

#include "base/container.h"
#include "base/list.h"
#include "event/loop.h"
#include "event/thread-pool.h"
#include "files/docroot.h"
#include "files/file-cache-internal.h"
#include "files/file-cache-read.h"
#include "files/file-cache.h"
#include "http/mime.h"

/* Copies what known has of a file, without its unit. */
static void take_known(struct file_cache_entry *entry, struct file_cache_entry *known)
{
	entry->known = known;
	entry->view.version = known->view.version;
	entry->view.type = known->view.type;
	entry->view.head = known->view.head;
}

/* --- the cache by identity, without paths ------------------------------------- */

static void identify(struct file_cache_entry *entry)
{
	entry->identity = (struct identity){
		.device = entry->reading.version.device,
		.inode = entry->reading.version.inode,
		.type = mime_type(entry->cache->options.mime, entry->path),
	};
}

/* Returns true if all that is cached was found; holds its unit, if any. */
static bool find_known(struct file_cache_entry *entry)
{
	struct file_cache *cache = entry->cache;
	struct file_cache_entry *known;

	identify(entry);
	pthread_mutex_lock(&cache->lock);
	known = g_hash_table_lookup(cache->table, &entry->identity);
	if (known)
		known->references++;
	pthread_mutex_unlock(&cache->lock);
	if (!known)
		return false;
	if (!file_version_equal(&known->view.version, &entry->reading.version) ||
	    !file_cache_hold(known)) {
		file_cache_drop(cache, known);
		file_cache_entry_unref(cache, known);
		return false;
	}
	take_known(entry, known);
	entry->view.id = known->view.id;
	entry->view.hold = known->view.hold;
	return true;
}

/* Caches for the next request what was learned of the file, and its unit if it is kept. */
static void keep_known(struct file_cache_entry *entry, size_t unit)
{
	struct file_cache *cache = entry->cache;
	struct file_cache_entry *known = file_cache_entry_new(cache, entry->path), *before, *oldest;
	bool last = false;

	known->identity = entry->identity;
	known->view.id = unit;
	known->view.hold = entry->view.hold;
	known->owner = unit != 0;
	file_cache_describe(known, &entry->reading.version);
	known->state = ENTRY_READY;
	known->references++;
	pthread_mutex_lock(&cache->lock);
	before = g_hash_table_lookup(cache->table, &known->identity);
	if (before)
		last = file_cache_drop_locked(cache, before);
	oldest = file_cache_enter_locked(cache, known);
	pthread_mutex_unlock(&cache->lock);
	if (last)
		file_cache_entry_free(before);
	if (oldest)
		file_cache_entry_free(oldest);
	take_known(entry, known);
}

/* --- lookup and reading ---------------------------------------------------------- */

/* Reads the unit, for this request only or for the cache. */
static int read_unit(struct file_cache_entry *entry, bool wait)
{
	bool passing = entry->cache->options.no_contents;
	int error = reading_unit(&entry->reading, file_cache_way(entry->cache), wait,
				 &entry->view.id, &entry->view.hold);

	/* Units being sent fill the cache: send this file like one that is too large. */
	entry->no_room = error == -ENOMEM;
	if (entry->no_room)
		return 0;
	if (!error && passing)
		(void)NC_destroy(NULL, entry->view.id);
	if (!error && entry->cache->options.pages != PAGE_CACHE_KEEP)
		reading_drop_pages(&entry->reading);
	return error;
}

/* Finds the path's current file, in a stable version; sets entry->found if it is cached. */
static int look_up(struct file_cache_entry *entry, bool keeps, bool wait)
{
	const struct file_cache_options *options = &entry->cache->options;
	int error = reading_open(&entry->reading, options->root, entry->path, wait);

	if (error)
		return error;
	if (keeps && !entry->known && find_known(entry))
		entry->found = true;
	/* A cached version is stable. */
	return entry->known ? 0 : reading_rest(&entry->reading, wait);
}

static int read_once(struct file_cache_entry *entry, bool wait)
{
	const struct file_cache_options *options = &entry->cache->options;
	bool keeps = options->no_paths && !(options->no_heads && options->no_contents);
	int error = options->no_paths ? look_up(entry, keeps, wait) : 0;

	if (!error && !entry->view.id && file_cache_fits(entry->cache, &entry->reading.version))
		error = read_unit(entry, wait);
	if (error || entry->known)
		return error;
	if (keeps && !entry->no_room)
		keep_known(entry, options->no_contents ? 0 : entry->view.id);
	else
		file_cache_describe(entry, &entry->reading.version);
	return 0;
}

static void forget(struct file_cache_entry *entry)
{
	reading_end(&entry->reading);
	if (entry->known)
		file_cache_entry_unref(entry->cache, entry->known);
	entry->known = NULL;
	entry->found = false;
}

/* Returns 0, -errno, or READING_LATER: a thread that may wait continues. */
static int read_entry(struct file_cache_entry *entry, bool wait)
{
	int error = -EAGAIN;

	for (int i = 0; i < FILE_CACHE_TRIES; i++) {
		error = read_once(entry, wait);
		/* The path's cached file is outdated: the caller looks it up again. */
		if (error != -EAGAIN || entry->reading.borrowed)
			break;
		forget(entry);
		if (!wait)
			return READING_LATER; /* do not block the loop any longer */
	}
	entry->error = error;
	return error;
}

static void revalidate_work(struct job *job)
{
	struct file_cache_entry *entry = container_of(job, struct file_cache_entry, job);

	(void)read_entry(entry, true);
}

/* --- on the thread of the requesting loop --------------------------------------------- */

static void count(const struct file_cache_entry *entry, bool by_loop)
{
	struct file_cache *cache = entry->cache;
	struct file_cache_stat *stat = &cache->stat;

	pthread_mutex_lock(&cache->lock);
	if (!entry->found || cache->options.no_contents)
		*(by_loop ? &stat->by_loops : &stat->by_helpers) += 1;
	/* With the cache of paths, file_cache_get() has counted the rest. */
	if (cache->options.no_paths) {
		bool hit = entry->found && entry->view.id && !cache->options.no_contents;

		*(entry->found ? &stat->hits : &stat->misses) += 1;
		if (!entry->error)
			*(hit ? &stat->hit_bytes : &stat->miss_bytes) +=
				(uint64_t)entry->view.version.size;
	}
	pthread_mutex_unlock(&cache->lock);
}

/* Gives the waiter its result, or makes it late. */
static void finish(struct file_cache_entry *entry, struct file_cache_waiter *waiter, bool by_loop)
{
	struct file_cache *cache = entry->cache;

	if (entry->error != -ECANCELED)
		count(entry, by_loop);
	waiter->late = entry->error == -EAGAIN && entry->reading.borrowed;
	waiter->result = (struct file_cache_result){.error = entry->error};
	if (!entry->error) {
		reading_end(&entry->reading);
		waiter->result.entry = entry;
		return;
	}
	if (waiter->late)
		file_cache_drop(cache, entry->known);
	file_cache_entry_unref(cache, entry);
}

static void revalidate_work_done(struct job *job)
{
	struct file_cache_entry *entry = container_of(job, struct file_cache_entry, job);
	struct file_cache_waiter *waiter =
		list_take(&entry->waiters, struct file_cache_waiter, node);

	if (!job->worked)
		entry->error = -ECANCELED;
	waiter->entry = NULL;
	finish(entry, waiter, false);
	waiter->task.run(&waiter->task);
}

bool file_cache_revalidate(struct file_cache *cache, struct file_cache_entry *known,
			   struct file_cache_waiter *waiter)
{
	struct file_cache_entry *entry = file_cache_entry_new(cache, waiter->path);

	if (known) {
		take_known(entry, known);
		reading_borrow(&entry->reading, &known->reading, cache->options.root, entry->path,
			       &known->view.version);
	}
	if (cache->options.try_now && read_entry(entry, false) != READING_LATER) {
		finish(entry, waiter, true);
		return true;
	}
	list_append(&entry->waiters, &waiter->node);
	entry->wanted = 1;
	waiter->entry = entry;
	entry->job = (struct job){.work = revalidate_work,
				  .done = revalidate_work_done,
				  .loop = waiter->loop,
				  .class = JOB_QUICK,
				  .client = waiter->client};
	thread_pool_submit(cache->options.thread_pool, &entry->job);
	return false;
}
