/* SPDX-License-Identifier: MIT */
/*
 * file-cache-tick.c - see file-cache-tick.h.
 *
 * A place has one reference and one hold of its entry, for all requests that use
 * it.  During the turn in which the table returned the entry, its path finds the
 * place; later, while slow clients still receive it, only puts find it.  It does
 * not matter which users got the entry from the place and which from the table
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

#define PLACES 64u /* files in a turn; further files use the table */

struct place {
	struct file_cache *cache;	/* referenced; NULL: the place is free */
	struct file_cache_entry *entry; /* referenced, with its unit held */
	const char *path;		/* the entry's */
	struct place **by_path;		/* its bucket */
	unsigned users;
	unsigned hits; /* not yet counted by the table */
	bool named;    /* in this turn */
	struct place *next_by_path;
	struct list_node by_entry; /* its bucket */
};

struct file_cache_tick {
	struct loop_hook hook;
	struct place places[PLACES];
	struct place *free;	     /* linked by next_by_path */
	struct place *named[PLACES]; /* in this turn */
	unsigned named_count;
	struct place *by_path[PLACES]; /* only those named */
	struct list by_entry[PLACES];  /* all places */
	struct place *variants;	       /* in this turn; no path finds them */
};

static struct list *bucket_of_entry(struct file_cache_tick *tick,
				    const struct file_cache_entry *entry)
{
	/* Entries are larger than a cache line. */
	return &tick->by_entry[(uintptr_t)entry / 64 % PLACES];
}

static struct place *find_entry(struct file_cache_tick *tick, const struct file_cache_entry *entry)
{
	const struct list *bucket = bucket_of_entry(tick, entry);

	list_each (struct place, place, bucket, by_entry)
		if (place->entry == entry)
			return place;
	return NULL;
}

/* Frees a place without users. */
static void vacate(struct file_cache_tick *tick, struct place *place)
{
	list_remove(&place->by_entry);
	file_cache_put(place->cache, place->entry);
	file_cache_close(place->cache);
	place->cache = NULL;
	place->next_by_path = tick->free;
	tick->free = place;
}

/* The turn is over: paths do not find places any more. */
static bool file_cache_before_sleep(struct loop_hook *hook)
{
	struct file_cache_tick *tick = container_of(hook, struct file_cache_tick, hook);

	for (unsigned i = 0; i < tick->named_count; i++) {
		struct place *place = tick->named[i];

		*place->by_path = NULL;
		place->named = false;
		if (place->hits)
			file_cache_count_hits(place->cache, place->entry, place->hits);
		place->hits = 0;
		if (!place->users)
			vacate(tick, place);
	}
	tick->named_count = 0;
	return false;
}

/* Makes the path find the place until the turn ends. */
static void name(struct file_cache_tick *tick, struct place *place)
{
	place->next_by_path = *place->by_path;
	*place->by_path = place;
	place->named = true;
	tick->named[tick->named_count++] = place;
}

/* Adds an entry that the table returned, with a reference and a hold. */
static void enter(struct file_cache_tick *tick, struct file_cache *cache,
		  struct file_cache_entry *entry, struct place **by_path)
{
	struct place *place = find_entry(tick, entry);

	if (place) {
		file_cache_put(cache, entry);
	} else if (tick->free) {
		place = tick->free;
		tick->free = place->next_by_path;
		*place = (struct place){.cache = file_cache_ref(cache),
					.entry = entry,
					.path = file_cache_view(entry)->path,
					.by_path = by_path};
		list_prepend(bucket_of_entry(tick, entry), &place->by_entry);
	} else {
		return;
	}
	place->users++;
	if (!place->named)
		name(tick, place);
}

bool file_cache_tick_get(struct file_cache_tick *tick, struct file_cache *cache, const char *path,
			 struct file_cache_waiter *waiter)
{
	struct place **by_path = &tick->by_path[g_str_hash(path) % PLACES], *place = *by_path;

	while (place && (place->cache != cache || strcmp(place->path, path) != 0))
		place = place->next_by_path;
	if (place) {
		place->users++;
		place->hits++;
		waiter->result = (struct file_cache_result){.entry = place->entry};
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
	/* A place has a reference, so the pointer of one that is found is valid. */
	const struct file_cache_entry *known = file_cache_variant_peek(entry, coding);
	struct place *place = known ? find_entry(tick, known) : NULL;
	struct file_cache_entry *variant;

	if (place && place->named) {
		place->users++;
		return place->entry;
	}
	variant = known ? file_cache_variant(entry, coding) : NULL;
	if (variant)
		enter(tick, cache, variant, &tick->variants);
	return variant;
}

void file_cache_tick_put(struct file_cache_tick *tick, struct file_cache *cache,
			 struct file_cache_entry *entry)
{
	struct place *place = find_entry(tick, entry);

	if (!place || !place->users)
		file_cache_put(cache, entry);
	else if (--place->users == 0 && !place->named)
		vacate(tick, place);
}

struct file_cache_tick *file_cache_tick_open(struct loop *loop)
{
	struct file_cache_tick *tick = g_new0(struct file_cache_tick, 1);

	for (unsigned i = 0; i < PLACES; i++) {
		tick->places[i].next_by_path = tick->free;
		tick->free = &tick->places[i];
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
