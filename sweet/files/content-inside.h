/* SPDX-License-Identifier: MIT */
/*
 * content-inside.h - what content*.c share: the table, its entries, and who
 * may touch what.
 *
 * The lock guards the table, entries' states and counts of references; no
 * system call is made under it.  An entry leaves the table when its file has
 * changed or its unit was evicted; those who hold it go on with the version
 * they have, and the last reference frees it.
 */
#ifndef SWEET_CONTENT_INSIDE_H
#define SWEET_CONTENT_INSIDE_H

#include <stdatomic.h>

#include <glib.h>

#include "files/content-read.h"
#include "files/content.h"

#define CONTENT_PASSING ((size_t)1 << 20) /* bytes of a unit that is read for one request */
#define CONTENT_TRIES 5			  /* for a file to rest */

enum entry_state { ENTRY_LOADING, ENTRY_READY, ENTRY_GONE };

/* What a file is, whatever leads to it. */
struct identity {
	dev_t device;
	ino_t inode;
	const char *type;
};

/*
 * In the table: what is kept of a file.  Outside of it from the start
 * (content-fresh.c): what one request has of a file, and `known`, what is kept.
 */
struct content_entry {
	struct content_view view; /* must be first */
	struct content *content;
	enum entry_state state;
	unsigned references;		/* the table's is one */
	_Atomic uint64_t checked_ns;	/* when the version was last seen to be the file's */
	_Atomic unsigned siblings;	/* bit of each coding */
	_Atomic uint64_t siblings_ns;	/* when they were looked for; 0: not yet */
	struct content_waiter *waiters; /* while loading */
	int error;
	bool owner;   /* of its unit, which goes with it */
	bool found;   /* known was in the table */
	bool no_room; /* for its unit, when it was loaded */
	struct job job;
	GList link;		     /* in content->recent */
	struct content_entry *known; /* referenced; NULL */
	struct reading reading;	     /* and, in the table without contents, the open file */
	struct identity identity;    /* where that is the key */
	struct filehead head;
	char path[];
};

struct content {
	_Atomic unsigned references;
	struct content_options options;
	pthread_mutex_t lock;
	GHashTable *table;	  /* path, or identity, to entry */
	GQueue recent;		  /* entries in the table, most recently loaded first */
	unsigned entries_max;	  /* in the table */
	size_t max_unit;	  /* bytes of the largest file that has a unit */
	struct content_stat stat; /* but the files */
};

/* --- content-table.c ---------------------------------------------------------- */

void content_table_init(struct content *content);
void content_table_fini(struct content *content);

/* One reference, the caller's. */
struct content_entry *content_entry_new(struct content *content, const char *path);

/* Gives a reference back; the last frees the entry. */
void content_entry_unref(struct content *content, struct content_entry *entry);

/* The caller's reference becomes the table's.  Another that had to go, or NULL: to be freed. */
struct content_entry *content_enter_locked(struct content *content, struct content_entry *entry);
void content_entry_free(struct content_entry *entry);

/* Out of the table.  True: the caller frees the entry, outside the lock. */
bool content_drop_locked(struct content *content, struct content_entry *entry);
void content_drop(struct content *content, struct content_entry *entry);

/* --- content.c ------------------------------------------------------------------ */

/* Whether a file of this version has a unit, if there is room. */
static inline bool content_fits(const struct content *content, const struct file_version *version)
{
	return version->size > 0 && (uint64_t)version->size <= content->max_unit;
}

/* content_get() of who may have asked before, and is counted once: late. */
bool content_ask(struct content *content, const char *path, struct content_waiter *waiter);

/* Writes what is kept, or made once, of a version. */
void content_describe(struct content_entry *entry, const struct file_version *version);

/* --- content-fresh.c -------------------------------------------------------------- */

/*
 * content_get() of a file of which something is not kept; known: what its path
 * led to, with a reference that goes over; NULL without paths.
 */
bool content_fresh(struct content *content, const char *path, struct content_entry *known,
		   struct content_waiter *waiter);

#endif
