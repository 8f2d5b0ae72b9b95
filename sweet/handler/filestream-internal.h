/* SPDX-License-Identifier: MIT */
/*
 * filestream-internal.h - shared by filestream.c, which passes windows to the connection, and
 * filestream-read.c, which reads them.
 */
#ifndef SWEET_FILESTREAM_INTERNAL_H
#define SWEET_FILESTREAM_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/thread-pool.h"
#include "files/docroot.h"
#include "http/range.h"

/* Bytes at the end that are always copied into memory. */
#define FILESTREAM_HELD_BACK ((size_t)16 << 10)

struct budget;
struct file_cache;
struct file_cache_entry;
struct file_cache_tick;
struct filestream_owner;
struct spool;
struct transaction;

struct window {
	char *bytes;	 /* in memory; NULL: in the page cache */
	size_t taken;	 /* bytes of site->windows */
	uint64_t offset; /* offset in the file */
	size_t length;	 /* 0: no window */
	bool first;	 /* first window of its range */
};

struct filestream {
	struct job job;
	struct transaction *transaction; /* NULL: the transaction has ended */
	const struct filestream_owner *owner;
	struct budget *budget;
	struct file_cache_tick *tick;
	struct file_cache *cache;
	struct file_cache_entry *entry;
	char *path; /* of the file, without entry */
	int fd;
	struct spool *spool; /* NULL: a file, which others may change */
	struct file_version version;
	unsigned part; /* range of the next read */
	uint64_t at;   /* bytes of that range that have been read */
	struct range_set ranges;
	struct window ready, sending;
	unsigned warm; /* consecutive windows found in the page cache */
	bool lends;    /* sends pages of the page cache */
	bool lent;     /* such pages were sent */
	bool reading;  /* a helper thread runs the job */
	bool awaited;  /* the connection waits */
	bool begun;    /* a window was passed to the connection */
	bool renewed;  /* another version was opened than was looked up */
	int error;
};

/* Of the range of the next read. */
static inline uint64_t filestream_left(const struct filestream *stream)
{
	return stream->ranges.ranges[stream->part].length - stream->at;
}

/* --- filestream-read.c --- */

/* The work of the job: opens the file, if it is not open, and reads a window. */
void filestream_work(struct job *job);

/* On the loop's thread, without a helper: whether the page cache had the next window. */
bool filestream_has_window(struct filestream *stream);

void filestream_drop(struct filestream *stream, struct window *window);

#endif
