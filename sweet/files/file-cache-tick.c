/* SPDX-License-Identifier: MIT */
/*
 * file-cache-tick.c - see file-cache-tick.h.
 *
 * A held file has one reference and one hold of its entry, for all requests that
 * use it.  During the turn in which the table returned the entry, its path finds
 * it; later, while slow clients still receive it, only puts find it.  It does
 * not matter which users got the entry from here and which from the table
 * (after waiting): the number of references is right in both cases.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <glib.h>

#include "base/container.h"
#include "base/list.h"
#include "event/loop.h"
#include "files/file-cache-tick.h"
#include "files/file-cache.h"
#include "http/accept.h"

#define FILES 64u /* files in a turn; further files use the table */

struct held_file {
	struct file_cache *cache;	/* referenced; NULL: this is free */
	struct file_cache_entry *entry; /* referenced, with its unit held */
	const char *path;		/* the entry's */
	struct held_file **by_path;	/* its bucket */
	unsigned users;
	unsigned hits; /* not yet counted by the table */
	bool named;    /* in this turn */
	struct held_file *next_by_path;
	struct list_node by_entry; /* its bucket */
};

struct file_cache_tick {
	struct loop_hook hook;
	struct held_file held[FILES];
	struct held_file *free;		/* linked by next_by_path */
	struct held_file *named[FILES]; /* in this turn */
	unsigned named_count;
	struct held_file *by_path[FILES]; /* only those named */
	struct list by_entry[FILES];	  /* all that are held */
	struct held_file *variants;	  /* in this turn; no path finds them */
};

static struct list *bucket_of_entry(struct file_cache_tick *tick,
				    const struct file_cache_entry *entry)
{
	/* Entries are larger than a cache line. */
	return &tick->by_entry[(uintptr_t)entry / 64 % FILES];
}

static struct held_file *find_entry(struct file_cache_tick *tick,
				    const struct file_cache_entry *entry)
{
	const struct list *bucket = bucket_of_entry(tick, entry);

	list_each (struct held_file, held, bucket, by_entry)
		if (held->entry == entry)
			return held;
	return NULL;
}

/* Releases a file without users. */
static void vacate(struct file_cache_tick *tick, struct held_file *held)
{
	list_remove(&held->by_entry);
	file_cache_put(held->cache, held->entry);
	file_cache_close(held->cache);
	held->cache = NULL;
	held->next_by_path = tick->free;
	tick->free = held;
}

/* The turn is over: paths do not find the files any more. */
static bool file_cache_before_sleep(struct loop_hook *hook)
{
	struct file_cache_tick *tick = container_of(hook, struct file_cache_tick, hook);

	for (unsigned i = 0; i < tick->named_count; i++) {
		struct held_file *held = tick->named[i];

		*held->by_path = NULL;
		held->named = false;
		if (held->hits)
			file_cache_count_hits(held->cache, held->entry, held->hits);
		held->hits = 0;
		if (!held->users)
			vacate(tick, held);
	}
	tick->named_count = 0;
	return false;
}

/* Makes the path find the file until the turn ends. */
static void name(struct file_cache_tick *tick, struct held_file *held)
{
	held->next_by_path = *held->by_path;
	*held->by_path = held;
	held->named = true;
	tick->named[tick->named_count++] = held;
}

/* Adds an entry that the table returned, with a reference and a hold. */
static void enter(struct file_cache_tick *tick, struct file_cache *cache,
		  struct file_cache_entry *entry, struct held_file **by_path)
{
	struct held_file *held = find_entry(tick, entry);

	if (held) {
		file_cache_put(cache, entry);
	} else if (tick->free) {
		held = tick->free;
		tick->free = held->next_by_path;
		*held = (struct held_file){.cache = file_cache_ref(cache),
					   .entry = entry,
					   .path = file_cache_view(entry)->path,
					   .by_path = by_path};
		list_prepend(bucket_of_entry(tick, entry), &held->by_entry);
	} else {
		return;
	}
	held->users++;
	if (!held->named)
		name(tick, held);
}

bool file_cache_tick_get(struct file_cache_tick *tick, struct file_cache *cache, const char *path,
			 struct file_cache_waiter *waiter)
{
	struct held_file **by_path = &tick->by_path[g_str_hash(path) % FILES], *held = *by_path;

	while (held && (held->cache != cache || strcmp(held->path, path) != 0))
		held = held->next_by_path;
	if (held) {
		held->users++;
		held->hits++;
		waiter->result = (struct file_cache_result){.entry = held->entry};
		return true;
	}
	if (!file_cache_get(cache, path, waiter))
		return false;
	if (!waiter->result.error && file_cache_keeps(cache))
		enter(tick, cache, waiter->result.entry, by_path);
	return true;
}

struct file_cache_entry *file_cache_tick_variant(struct file_cache_tick *tick,
						 struct file_cache *cache,
						 struct file_cache_entry *entry, enum coding coding)
{
	/* A held file has a reference, so the pointer of one that is found is valid. */
	const struct file_cache_entry *known = file_cache_variant_peek(entry, coding);
	struct held_file *held = known ? find_entry(tick, known) : NULL;
	struct file_cache_entry *variant;

	if (held && held->named) {
		held->users++;
		return held->entry;
	}
	variant = known ? file_cache_variant(entry, coding) : NULL;
	if (variant)
		enter(tick, cache, variant, &tick->variants);
	return variant;
}

void file_cache_tick_put(struct file_cache_tick *tick, struct file_cache *cache,
			 struct file_cache_entry *entry)
{
	struct held_file *held = find_entry(tick, entry);

	if (!held || !held->users)
		file_cache_put(cache, entry);
	else if (--held->users == 0 && !held->named)
		vacate(tick, held);
}

struct file_cache_tick *file_cache_tick_open(struct loop *loop)
{
	struct file_cache_tick *tick = g_new0(struct file_cache_tick, 1);

	for (unsigned i = 0; i < FILES; i++) {
		tick->held[i].next_by_path = tick->free;
		tick->free = &tick->held[i];
	}
	tick->hook.before_sleep = file_cache_before_sleep;
	loop_hook_add(loop, &tick->hook);
	return tick;
}

void file_cache_tick_close(struct file_cache_tick *tick)
{
	if (!tick)
		return;
	(void)file_cache_before_sleep(&tick->hook);
	g_free(tick);
}
