/* SPDX-License-Identifier: MIT */
/*
 * file-cache-internal.h - what file-cache*.c share: the table, its entries, and who
 * may touch what.
 *
 * The lock guards the table, entries' states and counts of references; no
 * system call is made under it.  An entry leaves the table when its file has
 * changed or its unit was evicted; those who hold it go on with the version
 * they have, and the last reference frees it.
 *
 * file-cache.c calls file-cache-revalidate.c, and both file-cache-table.c; none is
 * called back but by a waiter's task.
 */
#ifndef SWEET_FILE_CACHE_INTERNAL_H
#define SWEET_FILE_CACHE_INTERNAL_H

#include <stdatomic.h>

#include <glib.h>

#include "files/file-cache-read.h"
#include "files/file-cache.h"

#define FILE_CACHE_PASSING ((size_t)1 << 20) /* bytes of a unit that is read for one request */
#define FILE_CACHE_TRIES 5		     /* for a file to rest */

enum entry_state { ENTRY_LOADING, ENTRY_READY, ENTRY_GONE };

/* What a file is, whatever leads to it. */
struct identity {
	dev_t device;
	ino_t inode;
	const char *type;
};

/*
 * In the table: what is kept of a file.  Outside of it from the start
 * (file-cache-revalidate.c): what one request has of a file, and `known`, what is kept.
 */
struct file_cache_entry {
	struct file_cache_view view; /* must be first */
	struct file_cache *cache;
	enum entry_state state;
	unsigned references;		   /* the table's is one */
	_Atomic uint64_t checked_ns;	   /* when the version was last seen to be the file's */
	_Atomic unsigned siblings;	   /* bit of each coding */
	_Atomic uint64_t siblings_ns;	   /* when they were looked for; 0: not yet */
	struct file_cache_waiter *waiters; /* while loading */
	int error;
	bool owner;   /* of its unit, which goes with it */
	bool found;   /* known was in the table */
	bool no_room; /* for its unit, when it was loaded */
	struct job job;
	GList link;			/* in cache->recent */
	struct file_cache_entry *known; /* referenced; NULL */
	struct reading reading;		/* and, in the table without contents, the open file */
	struct identity identity;	/* where that is the key */
	struct filehead head;
	char path[];
};

struct file_cache {
	_Atomic unsigned references;
	struct file_cache_options options;
	pthread_mutex_t lock;
	GHashTable *table;	     /* path, or identity, to entry */
	GQueue recent;		     /* entries in the table, most recently loaded first */
	unsigned entries_max;	     /* in the table */
	size_t max_unit;	     /* bytes of the largest file that has a unit */
	struct file_cache_stat stat; /* but the files */
};

/* --- file-cache-table.c ---------------------------------------------------------- */

void file_cache_table_init(struct file_cache *cache);
void file_cache_table_fini(struct file_cache *cache);

/* One reference, the caller's. */
struct file_cache_entry *file_cache_entry_new(struct file_cache *cache, const char *path);

/* Gives a reference back; the last frees the entry. */
void file_cache_entry_unref(struct file_cache *cache, struct file_cache_entry *entry);

/* The caller's reference becomes the table's.  Another that had to go, or NULL: to be freed. */
struct file_cache_entry *file_cache_enter_locked(struct file_cache *cache,
						 struct file_cache_entry *entry);
void file_cache_entry_free(struct file_cache_entry *entry);

/* Out of the table.  True: the caller frees the entry, outside the lock. */
bool file_cache_drop_locked(struct file_cache *cache, struct file_cache_entry *entry);
void file_cache_drop(struct file_cache *cache, struct file_cache_entry *entry);

/* Writes what is kept, or made once, of a version. */
void file_cache_describe(struct file_cache_entry *entry, const struct file_version *version);

/* Holds the unit once more, if there is one; false: it is gone. */
static inline bool file_cache_hold(const struct file_cache_entry *entry)
{
	/* Holds of a unit are counted and equal: the view has this one already. */
	struct NC_hold same;

	return !entry->view.id || NC_hold(NULL, entry->view.id, &same) == 0;
}

/* Whether a file of this version has a unit, if there is room. */
static inline bool file_cache_fits(const struct file_cache *cache,
				   const struct file_version *version)
{
	return version->size > 0 && (uint64_t)version->size <= cache->max_unit;
}

/* --- file-cache-revalidate.c -------------------------------------------------------------- */

/*
 * Answers the waiter, who has a path, for a file of which something is not kept.
 * known: what its path led to, with a reference that goes over; NULL without paths.
 *
 * True: the waiter has a result, or is late: its path leads to another file now, and
 * it has to ask again.  False: waiter->task.run() is called when that is so, on the
 * loop's thread.
 */
bool file_cache_revalidate(struct file_cache *cache, struct file_cache_entry *known,
			   struct file_cache_waiter *waiter);

#endif
