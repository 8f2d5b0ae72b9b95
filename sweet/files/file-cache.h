/* SPDX-License-Identifier: MIT */
/*
 * file-cache.h - files as units of the cache: from path to cache id.
 *
 * There are three caches (paper 003, section 5); each may be disabled:
 *
 *     paths     from a path to a file, its version, and its descriptor if
 *               contents are not cached; else each request resolves its path
 *     heads     the header lines of a version; else each response generates them
 *     contents  the unit with the bytes of a version; else each request reads
 *               its own, which is freed after sending
 *
 * With paths, one table from path to everything cached serves all threads; each
 * thread asks it once a turn (file-cache-tick.h).  Without paths, the key of the
 * table is the file's identity.
 *
 * A file that fits into a unit is read once, while concurrent requests for it wait;
 * it is read again if its version (docroot.h) changes.  With try_now, a loop reads
 * on its own thread what the kernel has in memory; helpers read the rest (paper
 * 003, sections 3.4 and 5.7).  Versions are never mixed: a file that changes while
 * it is read is read again, and a file that never becomes stable is refused.
 */
#ifndef SWEET_FILE_CACHE_H
#define SWEET_FILE_CACHE_H

#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "event/client-limit.h"
#include "event/loop.h"
#include "files/docroot.h"
#include "http/accept.h"
#include "http/etag.h"

struct file_cache;
struct file_cache_entry;
struct filehead;
struct loop;

/* The system's copy of a file in a unit.  In the order of the values of "page-cache". */
enum page_cache { PAGE_CACHE_KEEP, PAGE_CACHE_DROP, PAGE_CACHE_BYPASS };

struct file_cache_options {
	struct docroot root; /* the cache owns its descriptor from then on */
	const char *folder;  /* the path of root, which is followed; NULL: it is not */
	struct mime *mime;
	enum etag_kind etag;
	struct thread_pool *thread_pool;
	struct compressor *compressor; /* NULL: there are no variants */
	size_t max_unit;	       /* maximum size of a cached file */
	uint64_t revalidate_ns;	       /* until the next check; 0: check in each turn of a loop */
	enum page_cache pages;	       /* of files in units */
	bool try_now;		       /* read on the loop's thread if it need not wait */
	bool no_paths, no_heads, no_contents; /* disabled caches */
};

/* The result for a waiter. */
struct file_cache_result {
	/* 0; -errno of opening or reading; -EAGAIN: never stable; -ECANCELED: nobody waits */
	int error;
	struct file_cache_entry *entry; /* if error is 0: referenced, its unit held */
};

struct file_cache_waiter {
	void (*arrived)(struct file_cache_waiter *waiter); /* on the loop's thread */
	struct loop *loop;
	struct client_address client; /* who waits */
	struct file_cache_result result;
	/* The cache's: */
	struct loop_task task;
	struct list_node node; /* in the entry's waiters */
	struct file_cache *cache;
	const char *path; /* the caller's; must last until arrived() */
	uint64_t since_ns;
	struct file_cache_entry *entry; /* that is, or was, loaded for it; NULL: none is */
	/* Must ask again: the check of the file began before the request, or its unit is gone. */
	bool late;
	/* Loaded for it, and referenced; then it is late only to read from the open file. */
	struct file_cache_entry *opened;
	bool left; /* see file_cache_leave() */
};

/* A version of a file; constant when it is ready. */
struct file_cache_view {
	size_t id;	     /* 0: no unit: empty, too large, or no memory */
	struct NC_hold hold; /* of the unit; each holder of a result has added one such hold */
	struct file_version version;
	const char *path;	     /* of the file */
	const char *type;	     /* by its name; lives as long as the cache */
	const struct filehead *head; /* NULL: not cached */
	bool coded;		     /* a variant: its unit has other bytes than the file */
};

struct file_cache *file_cache_open(const struct file_cache_options *options);

/* Adds a reference; each holder must close it.  Any thread. */
struct file_cache *file_cache_ref(struct file_cache *cache);
void file_cache_close(struct file_cache *cache);

/* Returns true if it has the same folder and the same options. */
bool file_cache_serves(const struct file_cache *cache, const struct file_cache_options *options);

/* Returns the media type of a file of that name; it lives as long as the cache. */
const char *file_cache_type(const struct file_cache *cache, const char *name);

/* Returns what entity tags of its files are made of. */
enum etag_kind file_cache_etag(const struct file_cache *cache);

/* Returns the folder's descriptor: of the one that its path leads to, at most a second late. */
struct docroot file_cache_root(struct file_cache *cache);

/*
 * Finds the file at path (a decoded URL path, not ending with '/').  Returns true
 * if the result is there; false: waiter->arrived() comes later, and path must last
 * until then.
 */
bool file_cache_get(struct file_cache *cache, const char *path, struct file_cache_waiter *waiter);

/*
 * Nobody needs the result any more for which this waiter waits; arrived() still comes.  A file for
 * which nobody waits is not read.
 */
void file_cache_leave(struct file_cache_waiter *waiter);
const struct file_cache_view *file_cache_view(const struct file_cache_entry *entry);

/* Returns the cached head, or generates one in place. */
const struct filehead *file_cache_head(const struct file_cache_entry *entry,
				       struct filehead *place);

/*
 * Returns the codings (a bit for each) for which an up-to-date file exists beside
 * this one (FILE.gz ...).  The result is valid for one second, or the time of
 * revalidate_ns if that is longer; a new sibling is not used until then.
 */
unsigned file_cache_siblings(struct file_cache_entry *entry, struct loop *loop);

/* The sibling is unusable: do not try it until the next search. */
void file_cache_sibling_unfit(struct file_cache_entry *entry, enum coding coding);

/*
 * Returns the compressed variant of a file, which is never in the table: referenced, its unit held;
 * NULL: there is none.
 */
struct file_cache_entry *file_cache_variant(struct file_cache_entry *entry, enum coding coding);

/* Returns the variant without a reference or a hold, to compare it with those that the caller has. */
const struct file_cache_entry *file_cache_variant_peek(const struct file_cache_entry *entry,
						       enum coding coding);

/* Returns the codings (a bit for each) of which a variant can be made, or exists. */
unsigned file_cache_variants(const struct file_cache_entry *entry);

/*
 * Makes such a variant in the background, if it does not exist, and no other one of the file is
 * being made.
 */
void file_cache_compress(struct file_cache_entry *entry, enum coding coding);

/* Releases what a result referenced and held. */
void file_cache_put(struct file_cache *cache, struct file_cache_entry *entry);

/* Returns true if requests for a path get the same entry, which several may then share. */
bool file_cache_keeps(const struct file_cache *cache);

/* Counts further requests that used an entry. */
void file_cache_count_hits(struct file_cache *cache, const struct file_cache_entry *entry,
			   unsigned more);

/* Hits and misses of the table.  Bytes are those of whole files. */
struct file_cache_stat {
	uint64_t files; /* in the table now */
	uint64_t hits, misses;
	uint64_t hit_bytes;	       /* of files found in the cache */
	uint64_t miss_bytes;	       /* of files that were read for it, or are too large for it */
	uint64_t by_loops, by_helpers; /* files looked up or read, by the kind of thread */
};

/* Adds this cache's figures to *sum. */
void file_cache_stat(struct file_cache *cache, struct file_cache_stat *sum);

#endif
