/* SPDX-License-Identifier: MIT */
/*
 * file-cache-table.c - the table of cached files (file-cache-internal.h), by path,
 * or by identity if paths are not cached; of bounded size.
 *
 * Clients choose the paths that they request, and users who can create files choose
 * names that stay.  Therefore the hash has a random key, one for all tables of the
 * process.
 */
#include <glib.h>
#include <nabc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/siphash.h"
#include "files/file-cache-internal.h"
#include "files/file-cache-read.h"
#include "files/file-cache.h"
#include "files/filehead.h"
#include "http/accept.h"
#include "http/mime.h"

#define ENTRIES_MAX 100000u
#define DESCRIPTORS_SHARE 8 /* this fraction of the descriptors may be open files of the table */

static uint8_t path_key[16];

/* Soon after boot the key may be weak, but there always is one. */
static void table_choose_key(void)
{
	uint64_t time = clock_monotonic_ns(), place = (uintptr_t)&time;

	if (getrandom(path_key, sizeof(path_key), GRND_NONBLOCK) == sizeof(path_key))
		return;
	memcpy(path_key, &time, sizeof(time));
	memcpy(path_key + sizeof(time), &place, sizeof(place));
}

static unsigned hash_path(const void *path)
{
	return (unsigned)siphash(path_key, path, strlen(path));
}

static unsigned hash_identity(const void *key)
{
	const struct identity *identity = key;
	uint64_t inode = identity->inode;

	return g_int64_hash(&inode) ^ (unsigned)identity->device ^ g_direct_hash(identity->type);
}

static int same_identity(const void *a, const void *b)
{
	const struct identity *one = a, *other = b;

	return one->device == other->device && one->inode == other->inode &&
	       one->type == other->type;
}

static void *key_of(struct file_cache_entry *entry)
{
	return entry->cache->options.no_paths ? (void *)&entry->identity : entry->path;
}

/* For tables in which each entry has an open file. */
static unsigned descriptors_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 1;
	limit.rlim_cur /= DESCRIPTORS_SHARE;
	return limit.rlim_cur < ENTRIES_MAX ? (unsigned)limit.rlim_cur + 1 : ENTRIES_MAX;
}

void file_cache_table_init(struct file_cache *cache)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct file_cache_options *options = &cache->options;

	pthread_once(&once, table_choose_key);
	pthread_mutex_init(&cache->lock, NULL);
	cache->entries_max =
		options->no_contents && !options->no_paths ? descriptors_max() : ENTRIES_MAX;
	cache->table = options->no_paths ? g_hash_table_new(hash_identity, same_identity)
					 : g_hash_table_new(hash_path, g_str_equal);
}

void file_cache_table_fini(struct file_cache *cache)
{
	list_each (struct file_cache_entry, entry, &cache->recent, node)
		if (file_cache_drop_locked(cache, entry))
			file_cache_entry_free(entry);
	g_hash_table_destroy(cache->table);
	pthread_mutex_destroy(&cache->lock);
}

struct file_cache_entry *file_cache_entry_new(struct file_cache *cache, const char *path)
{
	size_t length = strlen(path) + 1;
	struct file_cache_entry *entry = g_malloc0(sizeof(*entry) + length);

	memcpy(entry->path, path, length);
	entry->view.path = entry->path;
	entry->cache = cache;
	entry->references = 1;
	entry->reading = READING_NONE;
	return entry;
}

void file_cache_describe(struct file_cache_entry *entry, const struct file_version *version)
{
	const struct file_cache_options *options = &entry->cache->options;

	entry->view.version = *version;
	entry->view.type = mime_type(options->mime, entry->path);
	if (options->no_heads)
		return;
	filehead_write(&entry->head, version, options->etag, entry->view.type, time(NULL));
	entry->view.head = &entry->head;
}

void file_cache_entry_free(struct file_cache_entry *entry)
{
	if (entry->owner)
		(void)NC_destroy(NULL, entry->view.id);
	if (entry->known)
		file_cache_entry_unref(entry->cache, entry->known);
	for (unsigned i = 0; i < CODINGS; i++)
		if (entry->variants[i])
			file_cache_entry_unref(entry->cache, entry->variants[i]);
	reading_end(&entry->reading);
	g_free(entry);
}

void file_cache_entry_unref(struct file_cache *cache, struct file_cache_entry *entry)
{
	bool last;

	pthread_mutex_lock(&cache->lock);
	last = --entry->references == 0;
	pthread_mutex_unlock(&cache->lock);
	if (last)
		file_cache_entry_free(entry);
}

struct file_cache_entry *file_cache_enter_locked(struct file_cache *cache,
						 struct file_cache_entry *entry)
{
	struct file_cache_entry *oldest;

	g_hash_table_insert(cache->table, key_of(entry), entry);
	list_prepend(&cache->recent, &entry->node);
	if (g_hash_table_size(cache->table) <= cache->entries_max)
		return NULL;
	oldest = list_last(&cache->recent, struct file_cache_entry, node);
	return oldest->state == ENTRY_READY && file_cache_drop_locked(cache, oldest) ? oldest
										     : NULL;
}

bool file_cache_drop_locked(struct file_cache *cache, struct file_cache_entry *entry)
{
	if (entry->state == ENTRY_GONE)
		return false;
	entry->state = ENTRY_GONE;
	g_hash_table_remove(cache->table, key_of(entry));
	list_remove(&entry->node);
	return --entry->references == 0;
}

void file_cache_drop(struct file_cache *cache, struct file_cache_entry *entry)
{
	bool last;

	pthread_mutex_lock(&cache->lock);
	last = file_cache_drop_locked(cache, entry);
	pthread_mutex_unlock(&cache->lock);
	if (last)
		file_cache_entry_free(entry);
}
