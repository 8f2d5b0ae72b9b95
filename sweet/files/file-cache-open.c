/* SPDX-License-Identifier: MIT */
/*
 * file-cache-open.c - the cache of one folder: its options, its users, and the folder that its path
 * leads to.
 */
#include <glib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "files/docroot.h"
#include "files/file-cache-internal.h"
#include "files/file-cache.h"
#include "http/etag.h"
#include "http/mime.h"
#include "log/log.h"

#define FOLLOW_NS 1000000000 /* how long a folder is used without a look at its path */

struct file_cache *file_cache_open(const struct file_cache_options *options)
{
	struct file_cache *cache = g_new0(struct file_cache, 1);

	atomic_init(&cache->references, 1);
	cache->options = *options;
	cache->options.mime = mime_ref(options->mime);
	cache->options.folder = cache->folder = g_strdup(options->folder);
	atomic_init(&cache->followed_ns, clock_monotonic_ns());
	/* If pages are not kept, trying the page cache is of no use. */
	cache->options.try_now = options->try_now && options->pages == PAGE_CACHE_KEEP;
	/* Larger files are sent in windows: filestream.c. */
	cache->max_unit = options->no_contents && options->max_unit > FILE_CACHE_PASSING
				  ? FILE_CACHE_PASSING
				  : options->max_unit;
	file_cache_table_init(cache);
	return cache;
}

void file_cache_close(struct file_cache *cache)
{
	if (!cache || atomic_fetch_sub_explicit(&cache->references, 1, memory_order_acq_rel) != 1)
		return;
	file_cache_table_fini(cache);
	mime_close(cache->options.mime);
	close(cache->options.root.fd);
	g_free(cache->folder);
	g_free(cache);
}

struct file_cache *file_cache_ref(struct file_cache *cache)
{
	atomic_fetch_add_explicit(&cache->references, 1, memory_order_relaxed);
	return cache;
}

bool file_cache_serves(const struct file_cache *cache, const struct file_cache_options *options)
{
	const struct file_cache_options *own = &cache->options;
	struct stat ours, theirs;

	return fstat(own->root.fd, &ours) == 0 && fstat(options->root.fd, &theirs) == 0 &&
	       own->root.symlinks == options->root.symlinks && ours.st_dev == theirs.st_dev &&
	       ours.st_ino == theirs.st_ino && g_strcmp0(own->folder, options->folder) == 0 &&
	       own->thread_pool == options->thread_pool && own->compressor == options->compressor &&
	       own->etag == options->etag && own->max_unit == options->max_unit &&
	       own->revalidate_ns == options->revalidate_ns && own->pages == options->pages &&
	       own->try_now == (options->try_now && options->pages == PAGE_CACHE_KEEP) &&
	       own->no_paths == options->no_paths && own->no_heads == options->no_heads &&
	       own->no_contents == options->no_contents && mime_equal(own->mime, options->mime);
}

const char *file_cache_type(const struct file_cache *cache, const char *name)
{
	return mime_type(cache->options.mime, name);
}

enum etag_kind file_cache_etag(const struct file_cache *cache)
{
	return cache->options.etag;
}

/*
 * Once a second, one thread looks whether the path of the folder leads to another one: deployments
 * switch a symbolic link.
 */
static void follow(struct file_cache *cache)
{
	uint64_t now = clock_monotonic_ns();
	uint64_t seen = atomic_load_explicit(&cache->followed_ns, memory_order_relaxed);

	if (!cache->folder || now < seen + FOLLOW_NS ||
	    !atomic_compare_exchange_strong_explicit(&cache->followed_ns, &seen, now,
						     memory_order_relaxed, memory_order_relaxed) ||
	    docroot_follow(cache->options.root, cache->folder) <= 0)
		return;
	/* Entries that were checked before are checked again, however long they are trusted. */
	atomic_store_explicit(&cache->switched_ns, clock_monotonic_ns(), memory_order_relaxed);
	log_notice("%s: leads to another folder, whose files are served now", cache->folder);
}

struct docroot file_cache_root(struct file_cache *cache)
{
	follow(cache);
	return cache->options.root;
}
