/* SPDX-License-Identifier: MIT */
/*
 * record-ring.c - see record-ring.h.
 *
 * Before each record is the number of bytes to the next one.  A record lies in one piece: if it does
 * not fit before the end of the memory, the rest of that is skipped.
 */
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/counter.h"
#include "base/record-ring.h"

#define ALIGN 8u
#define SKIP (UINT64_C(1) << 63) /* in that number: no record follows it */
#define CACHE_LINE 64

struct record_ring {
	size_t size;
	char *memory;
	/* The writer's: bytes ever written; where it is after the reserved record. */
	alignas(CACHE_LINE) _Atomic uint64_t end;
	uint64_t reserved;
	_Atomic uint64_t written; /* records */
	/* The reader's. */
	alignas(CACHE_LINE) _Atomic uint64_t begin;
	_Atomic uint64_t read;
};

struct record_ring *record_ring_open(size_t size)
{
	struct record_ring *ring = aligned_alloc(CACHE_LINE, sizeof(*ring));
	char *memory = malloc(size);

	if (!ring || !memory) {
		free(ring);
		free(memory);
		return NULL;
	}
	*ring = (struct record_ring){.size = size, .memory = memory};
	return ring;
}

void record_ring_close(struct record_ring *ring)
{
	if (ring)
		free(ring->memory);
	free(ring);
}

static uint64_t *step_at(const struct record_ring *ring, uint64_t at)
{
	return (uint64_t *)(void *)(ring->memory + (at & (ring->size - 1)));
}

void *record_ring_reserve(struct record_ring *ring, size_t length)
{
	uint64_t end = atomic_load_explicit(&ring->end, memory_order_relaxed);
	/* Pairs with the releases in record_ring_first() and _drop(). */
	uint64_t begin = atomic_load_explicit(&ring->begin, memory_order_acquire);
	uint64_t left = ring->size - (end & (ring->size - 1)), need, skipped;

	if (length > ring->size)
		return NULL;
	need = (sizeof(uint64_t) + length + ALIGN - 1) / ALIGN * ALIGN;
	skipped = need > left ? left : 0;
	if (end - begin + skipped + need > ring->size)
		return NULL;
	if (skipped)
		*step_at(ring, end) = skipped | SKIP;
	*step_at(ring, end + skipped) = need;
	ring->reserved = end + skipped + need;
	return step_at(ring, end + skipped) + 1;
}

void record_ring_commit(struct record_ring *ring)
{
	counter_add(&ring->written, 1);
	/* Pairs with the acquire in record_ring_first(). */
	atomic_store_explicit(&ring->end, ring->reserved, memory_order_release);
}

const void *record_ring_first(struct record_ring *ring)
{
	uint64_t begin = atomic_load_explicit(&ring->begin, memory_order_relaxed);

	if (begin == atomic_load_explicit(&ring->end, memory_order_acquire))
		return NULL;
	if (*step_at(ring, begin) & SKIP) {
		begin += *step_at(ring, begin) & ~SKIP;
		atomic_store_explicit(&ring->begin, begin, memory_order_release);
	}
	return step_at(ring, begin) + 1;
}

void record_ring_drop(struct record_ring *ring)
{
	uint64_t begin = atomic_load_explicit(&ring->begin, memory_order_relaxed);

	/* Pairs with the acquire in record_ring_count(). */
	atomic_store_explicit(&ring->read,
			      atomic_load_explicit(&ring->read, memory_order_relaxed) + 1,
			      memory_order_release);
	atomic_store_explicit(&ring->begin, begin + *step_at(ring, begin), memory_order_release);
}

uint64_t record_ring_count(const struct record_ring *ring)
{
	uint64_t read = atomic_load_explicit(&ring->read, memory_order_acquire);

	/*
	 * Read last, so that it is not less, whatever happens in between: the reader has read what
	 * the writer had counted before it committed it.
	 */
	return atomic_load_explicit(&ring->written, memory_order_relaxed) - read;
}
