/* SPDX-License-Identifier: MIT */
/*
 * compressor.h - compresses units of the cache into other units, in the background.
 *
 * One thread with a low priority does one job after another, so that compression
 * takes neither more than one CPU nor threads that read files.  The thread starts
 * with the first job.
 */
#ifndef SWEET_COMPRESSOR_H
#define SWEET_COMPRESSOR_H

#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "http/accept.h"

struct compressor;

enum compress_result {
	COMPRESS_GOOD,
	COMPRESS_UNFIT,	   /* not smaller than 90 % of the source */
	COMPRESS_FAILED,   /* no memory, or the source cannot be read */
	COMPRESS_CANCELLED /* the source is gone, or the compressor was closed before it was done */
};

/* The caller's memory, with all that it points to, until done(). */
struct compress_job {
	enum coding coding;
	const struct NC_range *ranges; /* of the source */
	const struct NC_hold *holds;   /* one for each range, while they are held */
	unsigned range_count;
	/*
	 * On the compressor's thread, when it begins: holds the source's units.  Returns false if
	 * they are gone.  Jobs that wait hold nothing, so that the cache can evict their sources.
	 */
	bool (*begin)(struct compress_job *job);
	/* On that thread, or on the one that closes the compressor, with the result. */
	void (*done)(struct compress_job *job);

	enum compress_result result;
	size_t id, length;     /* of the unit, if it is good: owned by the caller */
	struct NC_hold hold;   /* and held once */
	struct list_node node; /* the compressor's */
};

struct compressor *compressor_open(void);

/* Cancels the jobs that are not done.  Call it when no thread submits jobs any more. */
void compressor_close(struct compressor *compressor);

/*
 * Any thread.  Returns false if there are too many jobs, or the thread cannot be started; then
 * done() is not called.
 */
bool compressor_submit(struct compressor *compressor, struct compress_job *job);

struct compressor_stat {
	uint64_t waiting;	      /* jobs that are not done */
	uint64_t made;		      /* units */
	uint64_t bytes_in, bytes_out; /* of their sources; of these units */
	uint64_t unfit, failed;
	uint64_t refused; /* jobs that were not accepted */
};

void compressor_stat(struct compressor *compressor, struct compressor_stat *stat);

/*
 * Returns a number for the entity tags of what it makes in that coding: another one if the bytes
 * for equal sources may be different.  Not 0.
 */
uint64_t compressor_revision(enum coding coding);

#endif
