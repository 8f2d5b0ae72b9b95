/* SPDX-License-Identifier: MIT */
/*
 * record-ring.h - a queue of records of different lengths, from one thread to another, in memory of
 * a fixed size, without locks: the writer never waits.
 */
#ifndef SWEET_RECORD_RING_H
#define SWEET_RECORD_RING_H

#include <stddef.h>
#include <stdint.h>

struct record_ring;

/* size: bytes, a power of two; the kernel provides them when they are used.  NULL: no memory. */
struct record_ring *record_ring_open(size_t size);
void record_ring_close(struct record_ring *ring); /* may be NULL */

/*
 * The writer: returns memory for a record, aligned to 8 bytes, or NULL if it has no room now.  The
 * reader sees the record after record_ring_commit().
 */
void *record_ring_reserve(struct record_ring *ring, size_t length);
void record_ring_commit(struct record_ring *ring);

/* The reader: returns the oldest record, or NULL; it is valid until record_ring_drop(). */
const void *record_ring_first(struct record_ring *ring);
void record_ring_drop(struct record_ring *ring);

/* Any thread: returns the number of records. */
uint64_t record_ring_count(const struct record_ring *ring);

#endif
