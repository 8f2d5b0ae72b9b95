/* SPDX-License-Identifier: MIT */
/*
 * file-cache.h - files as units of the cache: path to cache id.
 *
 * What is found out of a file is kept for the next request, in three caches
 * (paper 003, section 5), of which each may be left out:
 *
 *   paths     a path leads to a known file, its version, and the descriptor
 *             where contents are not kept; else each request resolves it anew
 *   heads     the header lines of a version; else each answer has them written
 *   contents  the unit with the bytes of a version; else each request reads
 *             its own, which goes when it is sent
 *
 * With paths, one table from path to all that is kept, for all threads, which
 * each of them asks once a turn (file-cache-tick.h); without, the table is from what
 * the file is, so that a path leads nowhere by itself.
 *
 * A file that fits a unit is read once, while whoever else wants it waits; it
 * is read again when its version (docroot.h) differs.  What the kernel has in
 * memory is read on the loop's own thread if that is wished for, all else by a
 * helper (paper 003, sections 3.4 and 5.7).  A version is never mixed: what
 * changes while it is read is read again, and a file that never rests is
 * refused.
 */
#ifndef SWEET_FILE_CACHE_H
#define SWEET_FILE_CACHE_H

#include "event/thread-pool.h"
#include "files/docroot.h"
#include "files/filehead.h"
#include "http/accept.h"
#include "http/mime.h"

struct file_cache;
struct file_cache_entry;

struct file_cache_options {
	int root; /* descriptor; the cache's from then on */
	struct mime *mime;
	struct thread_pool *thread_pool;
	size_t max_unit;	/* bytes of the largest file to be cached */
	uint64_t revalidate_ns; /* trust for that long; 0: ask for each turn of a loop */
	bool drop_pages;	/* what is in a unit does not stay in the page cache */
	bool try_now;		/* on the loop's thread, what it need not wait for */
	bool no_paths, no_heads, no_contents; /* caches that are left out */
};

/* What a waiter gets. */
struct file_cache_result {
	int error; /* 0, -errno of opening or reading, -EAGAIN: never at rest */
	struct file_cache_entry *entry; /* with error 0: referenced, its unit held */
};

struct file_cache_waiter {
	void (*arrived)(struct file_cache_waiter *waiter); /* on loop's thread */
	struct loop *loop;
	struct file_cache_result result;
	/* The cache's: */
	struct loop_task task;
	struct file_cache_waiter *next;
	struct file_cache *cache;
	const char *path; /* the caller's, who keeps it until the arrival */
	uint64_t since_ns;
	/* It has to ask again: the look at the file began before it asked, or the unit is gone. */
	bool late;
};

/* A version of a file; constant once it is there. */
struct file_cache_view {
	size_t id;	     /* 0: no unit: empty, too large for one, or no room now */
	struct NC_hold hold; /* of the unit, as all who have the entry from a result hold it */
	struct file_version version;
	const char *path;	     /* of the file */
	const char *type;	     /* by its name; lives as long as the cache */
	const struct filehead *head; /* NULL: none is kept */
};

struct file_cache *file_cache_open(const struct file_cache_options *options);

/* One more holder, each of whom closes it.  Any thread. */
struct file_cache *file_cache_ref(struct file_cache *cache);
void file_cache_close(struct file_cache *cache);

/* Whether it has the same folder and reads it the same way. */
bool file_cache_serves(const struct file_cache *cache, const struct file_cache_options *options);

/* The folder's descriptor. */
int file_cache_root(const struct file_cache *cache);

/*
 * Finds the file at path (a decoded URL path, not ending in '/').  True: the
 * result is there; false: waiter->arrived() comes later, until when path stays.
 */
bool file_cache_get(struct file_cache *cache, const char *path, struct file_cache_waiter *waiter);
const struct file_cache_view *file_cache_view(const struct file_cache_entry *entry);

/* The head that is kept, or the one that is made anew in place. */
const struct filehead *file_cache_head(const struct file_cache_entry *entry,
				       struct filehead *place);

/*
 * The codings (bit of each) in which a file lies beside this one and is as new
 * (FILE.gz ...).  Looked for again after a second, or the time to revalidate
 * if that is longer: until then a new one is only not used.
 */
unsigned file_cache_siblings(struct file_cache_entry *entry, struct loop *loop);

/* The sibling turned out not to be fit: not to be tried until it is looked for again. */
void file_cache_sibling_unfit(struct file_cache_entry *entry, enum coding coding);

/* Gives back what a result referenced and held. */
void file_cache_put(struct file_cache *cache, struct file_cache_entry *entry);

/* Whether requests for a path get the same entry, which may be used for several then. */
bool file_cache_keeps(const struct file_cache *cache);

/* An entry was used for so many requests more. */
void file_cache_count_hits(struct file_cache *cache, const struct file_cache_entry *entry,
			   unsigned more);

/* How often the table had or had not what was wanted.  Bytes are those of whole files. */
struct file_cache_stat {
	uint64_t files; /* in the table now */
	uint64_t hits, misses;
	uint64_t hit_bytes;	       /* of files found in the cache */
	uint64_t miss_bytes;	       /* of files that were read for it, or are too large for it */
	uint64_t by_loops, by_helpers; /* files looked up or read, by whose threads */
};

/* Adds this one's to what is there. */
void file_cache_stat(struct file_cache *cache, struct file_cache_stat *sum);

#endif
