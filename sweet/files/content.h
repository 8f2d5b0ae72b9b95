/* SPDX-License-Identifier: MIT */
/*
 * content.h - files as units of the cache: path to cache id.
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
 * each of them asks once a turn (content-turn.h); without, the table is from what
 * the file is, so that a path leads nowhere by itself.
 *
 * A file that fits a unit is read once, while whoever else wants it waits; it
 * is read again when its version (docroot.h) differs.  What the kernel has in
 * memory is read on the loop's own thread if that is wished for, all else by a
 * helper (paper 003, sections 3.4 and 5.7).  A version is never mixed: what
 * changes while it is read is read again, and a file that never rests is
 * refused.
 */
#ifndef SWEET_CONTENT_H
#define SWEET_CONTENT_H

#include "event/helper.h"
#include "files/docroot.h"
#include "files/filehead.h"
#include "http/accept.h"
#include "http/mime.h"

struct content;
struct content_entry;

struct content_options {
	int root; /* descriptor; the content's from then on */
	struct mime *mime;
	struct helpers *helpers;
	size_t max_unit;	/* bytes of the largest file to be cached */
	uint64_t revalidate_ns; /* trust for that long; 0: ask for each turn of a loop */
	bool drop_pages;	/* what is in a unit does not stay in the page cache */
	bool try_now;		/* on the loop's thread, what it need not wait for */
	bool no_paths, no_heads, no_contents; /* caches that are left out */
};

/* What a waiter gets. */
struct content_result {
	int error;		     /* 0, -errno of opening or reading, -EAGAIN: never at rest */
	struct content_entry *entry; /* with error 0: referenced, its unit held */
};

struct content_waiter {
	void (*arrived)(struct content_waiter *waiter); /* on loop's thread */
	struct loop *loop;
	struct content_result result;
	/* content's: */
	struct loop_task task;
	struct content_waiter *next;
	struct content *content;
	const char *path; /* the caller's, who keeps it until the arrival */
	uint64_t since_ns;
	/* It has to ask again: the look at the file began before it asked, or the unit is gone. */
	bool late;
};

/* A version of a file; constant once it is there. */
struct content_view {
	size_t id; /* 0: no unit: empty, too large for one, or no room now */
	struct file_version version;
	const char *path;	     /* of the file */
	const char *type;	     /* by its name; lives as long as the content */
	const struct filehead *head; /* NULL: none is kept */
};

struct content *content_open(const struct content_options *options);

/* One more holder, each of whom closes it.  Any thread. */
struct content *content_ref(struct content *content);
void content_close(struct content *content);

/* Whether it has the same folder and reads it the same way. */
bool content_serves(const struct content *content, const struct content_options *options);

/* The folder's descriptor. */
int content_root(const struct content *content);

/*
 * Finds the file at path (a decoded URL path, not ending in '/').  True: the
 * result is there; false: waiter->arrived() comes later, until when path stays.
 */
bool content_get(struct content *content, const char *path, struct content_waiter *waiter);
const struct content_view *content_view(const struct content_entry *entry);

/* The head that is kept, or the one that is made anew in place. */
const struct filehead *content_head(const struct content_entry *entry, struct filehead *place);

/*
 * The codings (bit of each) in which a file lies beside this one and is as new
 * (FILE.gz ...).  Looked for again after a second, or the time to revalidate
 * if that is longer: until then a new one is only not used.
 */
unsigned content_siblings(struct content_entry *entry, struct loop *loop);

/* The sibling turned out not to be fit: not to be tried until it is looked for again. */
void content_sibling_unfit(struct content_entry *entry, enum coding coding);

/* Gives back what a result referenced and held. */
void content_put(struct content *content, struct content_entry *entry);

/* Whether requests for a path get the same entry, which may be used for several then. */
bool content_keeps(const struct content *content);

/* An entry was used for so many requests more. */
void content_count_hits(struct content *content, const struct content_entry *entry, unsigned more);

/* How often the table had or had not what was wanted.  Bytes are those of whole files. */
struct content_stat {
	uint64_t files; /* in the table now */
	uint64_t hits, misses;
	uint64_t hit_bytes;	       /* of files found in the cache */
	uint64_t miss_bytes;	       /* of files that were read for it, or are too large for it */
	uint64_t by_loops, by_helpers; /* files looked up or read, by whose threads */
};

/* Adds this one's to what is there. */
void content_stat(struct content *content, struct content_stat *sum);

#endif
