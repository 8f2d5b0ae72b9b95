/* SPDX-License-Identifier: MIT */
/*
 * file-cache-internal.h - shared by file-cache*.c: the table, its entries, and the
 * rules of access.
 *
 * The lock protects the table, and the entries' states and reference counts; no
 * system call is made with it held.  An entry leaves the table if its file has
 * changed or its unit was evicted.  Its users continue with the version that they
 * have, and the last reference frees it.
 *
 * file-cache.c calls file-cache-open.c and file-cache-revalidate.c, and all call
 * file-cache-table.c; callbacks come only from a waiter's task.
 */
#ifndef SWEET_FILE_CACHE_INTERNAL_H
#define SWEET_FILE_CACHE_INTERNAL_H

#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "event/thread-pool.h"
#include "files/docroot.h"
#include "files/file-cache-read.h"
#include "files/file-cache.h"
#include "files/filehead.h"
#include "http/accept.h"

#define FILE_CACHE_PASSING ((size_t)1 << 20) /* maximum of a unit for one request */
#define FILE_CACHE_TRIES 5		     /* attempts to read a stable file */

enum entry_state { ENTRY_LOADING, ENTRY_READY, ENTRY_GONE };

/* Identifies a file, whatever its path. */
struct identity {
	dev_t device;
	ino_t inode;
	const char *type;
};

/*
 * In the table: what is cached of a file.  Never in the table
 * (file-cache-revalidate.c): what one request has of a file, and known, its cached
 * part.
 */
struct file_cache_entry {
	struct file_cache_view view;
	struct file_cache *cache;
	enum entry_state state;
	unsigned references;	      /* includes the table's */
	_Atomic uint64_t checked_ns;  /* when the file was last seen to have this version */
	_Atomic unsigned siblings;    /* one bit for each coding */
	_Atomic uint64_t siblings_ns; /* when they were last searched; 0: never */
	/* Compressed variants, each with a reference of this entry until it is freed. */
	_Atomic(struct file_cache_entry *) variants[CODINGS];
	_Atomic unsigned unfit;		/* one bit for each coding that does not make it smaller */
	_Atomic bool coding;		/* a variant is being made */
	_Atomic uint64_t code_again_ns; /* after a failure, not before this time */
	/* While it is loaded, in the order of arrival; each has a reference, until it has its result. */
	struct list waiters;
	unsigned wanted;     /* of these, that have not left */
	unsigned unanswered; /* of these; the unit is held until the last has its result */
	int error;
	bool owner;   /* owns its unit, and destroys it when freed */
	bool found;   /* known was in the table */
	bool no_room; /* there was no memory for its unit when it was loaded */
	struct job job;
	struct list_node node;		/* in cache->recent */
	struct file_cache_entry *known; /* referenced; or NULL */
	struct reading reading;		/* also the open file, if contents are not cached */
	struct identity identity;	/* if this is the key of the table */
	struct filehead head;
	char path[];
};

struct file_cache {
	_Atomic unsigned references;
	struct file_cache_options options;
	char *folder;		      /* of the options */
	_Atomic uint64_t followed_ns; /* when its path was looked at */
	_Atomic uint64_t switched_ns; /* when it led to another folder; entries are older */
	pthread_mutex_t lock;
	GHashTable *table;	     /* path, or identity, to entry */
	struct list recent;	     /* entries in the table, most recently loaded first */
	unsigned entries_max;	     /* in the table */
	size_t max_unit;	     /* maximum size of a file that gets a unit */
	struct file_cache_stat stat; /* without the number of files */
};

/* --- file-cache-table.c ---------------------------------------------------------- */

void file_cache_table_init(struct file_cache *cache);
void file_cache_table_fini(struct file_cache *cache);

/* Returns an entry with one reference, the caller's. */
struct file_cache_entry *file_cache_entry_new(struct file_cache *cache, const char *path);

/* Releases a reference; the last one frees the entry. */
void file_cache_entry_unref(struct file_cache *cache, struct file_cache_entry *entry);

/* Moves the caller's reference to the table.  Returns an evicted entry to free, or NULL. */
struct file_cache_entry *file_cache_enter_locked(struct file_cache *cache,
						 struct file_cache_entry *entry);
void file_cache_entry_free(struct file_cache_entry *entry);

/* Removes it from the table.  Returns true if the caller must free it, without the lock. */
bool file_cache_drop_locked(struct file_cache *cache, struct file_cache_entry *entry);
void file_cache_drop(struct file_cache *cache, struct file_cache_entry *entry);

/* Sets what is cached, or computed once, of a version. */
void file_cache_describe(struct file_cache_entry *entry, const struct file_version *version);

/* Holds the unit once more, if there is one; returns false if it is gone. */
static inline bool file_cache_hold(const struct file_cache_entry *entry)
{
	/* Holds of a unit are counted and equal: the view has this value already. */
	struct NC_hold same;

	return !entry->view.id || NC_hold(NULL, entry->view.id, &same) == 0;
}

/* Returns how units of files are read. */
static inline enum reading_way file_cache_way(const struct file_cache *cache)
{
	/* Then requests may share a descriptor, and O_DIRECT would apply to all of them. */
	if (cache->options.no_contents)
		return READING_PASSING;
	return cache->options.pages == PAGE_CACHE_BYPASS ? READING_DIRECT : READING_CACHED;
}

/* Returns true if a file of this version gets a unit, memory permitting. */
static inline bool file_cache_fits(const struct file_cache *cache,
				   const struct file_version *version)
{
	return version->size > 0 && (uint64_t)version->size <= cache->max_unit;
}

/* --- file-cache-revalidate.c -------------------------------------------------------------- */

/*
 * Serves the waiter, who has a path, a file that is only partly cached. known: the
 * entry of its path, whose reference moves here; NULL without the cache of paths.
 *
 * Returns true if the waiter has a result, or is late: its path refers to another
 * file now, and it must ask again.  False: waiter->task.run() will be called on the
 * loop's thread when that is so.
 */
bool file_cache_revalidate(struct file_cache *cache, struct file_cache_entry *known,
			   struct file_cache_waiter *waiter);

#endif
