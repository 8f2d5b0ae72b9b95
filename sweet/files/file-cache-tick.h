/* SPDX-License-Identifier: MIT */
/*
 * file-cache-tick.h - the files that one turn of a loop sends: a result of the
 * shared table (file-cache.h) stays valid until the turn ends.
 *
 * A popular file is looked up, referenced and held once a turn, however many
 * requests the turn answers; the other requests take no lock and write nothing that
 * another thread reads.  As in the table, the file's version was checked since the
 * loop woke up.  Only for the loop's thread.
 */
#ifndef SWEET_FILE_CACHE_TICK_H
#define SWEET_FILE_CACHE_TICK_H

#include <stdbool.h>

#include "http/accept.h"

struct file_cache_tick;
struct file_cache;
struct file_cache_entry;
struct file_cache_waiter;
struct loop;

struct file_cache_tick *file_cache_tick_open(struct loop *loop);

/* Call it after the last file_cache_tick_put(), when the loop has ended. */
void file_cache_tick_close(struct file_cache_tick *tick);

/* As file_cache_get() and file_cache_put(), with a waiter of this loop. */
bool file_cache_tick_get(struct file_cache_tick *tick, struct file_cache *cache, const char *path,
			 struct file_cache_waiter *waiter);

/* As file_cache_variant(), of an entry that one of these calls returned. */
struct file_cache_entry *file_cache_tick_variant(struct file_cache_tick *tick,
						 struct file_cache *cache,
						 struct file_cache_entry *entry,
						 enum coding coding);
void file_cache_tick_put(struct file_cache_tick *tick, struct file_cache *cache,
			 struct file_cache_entry *entry);

#endif
