/* SPDX-License-Identifier: MIT */
/*
 * span-export.h - sends the spans of all threads to a collector, by a thread of its own: the others
 * only copy a span into a queue of theirs, and drop it if that is full.
 */
#ifndef SWEET_SPAN_EXPORT_H
#define SWEET_SPAN_EXPORT_H

#include <stdint.h>

struct span_export;
struct span;
struct span_target;

/* threads: those that will put spans, numbered from 0.  Returns NULL without memory. */
struct span_export *span_export_open(unsigned threads);

/*
 * Ends the thread: sends what the queues have, for at most a few seconds.  No thread puts spans any
 * more.  May be NULL.
 */
void span_export_close(struct span_export *export);

/*
 * Uses a target from now on, which is copied; spans that were put before this go to the one before,
 * for at most a few seconds.  Does not wait for that.  Returns 0 or -errno, if the thread cannot be
 * started. Main thread.
 */
int span_export_use(struct span_export *export, const struct span_target *target);

/* Thread number puts a copy of the span into its queue. */
void span_export_put(struct span_export *export, unsigned number, const struct span *span);

/* Spans. */
struct span_export_stat {
	uint64_t waiting;
	uint64_t accepted; /* by the collector */
	uint64_t rejected; /* by the collector: all of a request, or a part */
	uint64_t dropped;  /* because their queue was full */
	uint64_t lost;	   /* because the collector did not answer for too long */
};

void span_export_stat(const struct span_export *export, struct span_export_stat *stat);

#endif
