/* SPDX-License-Identifier: MIT */
/*
 * page-memory.h - the memory in which a program makes pages: how much of it
 * answers hold, and whether that leaves room for another request.
 *
 * A program whose memory is full can only refuse.  So it is given no request
 * that, with those it has, may need more than what is free, going by the pages
 * that it made before; the request waits for the release of a page, and slow
 * clients are taken off theirs.  A program that has nothing gets a request
 * whatever its pages need.
 *
 * Any thread.
 */
#ifndef SWEET_PAGE_MEMORY_H
#define SWEET_PAGE_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct page_memory {
	uint64_t most;		/* bytes of the program */
	_Atomic uint64_t held;	/* bytes of its pages that answers hold */
	_Atomic uint64_t usual; /* bytes of a page of its: the largest of late */
	_Atomic bool wanted;	/* a request waits for room */
};

static inline void page_memory_init(struct page_memory *memory, uint64_t most)
{
	memory->most = most;
	/* Until it is known. */
	atomic_init(&memory->usual, most / 16);
}

/* An answer has a page of the program, of so many bytes; 0: it needs none. */
static inline void page_memory_hold(struct page_memory *memory, uint64_t bytes)
{
	uint64_t usual = atomic_load_explicit(&memory->usual, memory_order_relaxed);

	usual = bytes > usual ? bytes : usual - (usual - bytes + 7) / 8;
	atomic_store_explicit(&memory->usual, usual, memory_order_relaxed);
	if (bytes)
		atomic_fetch_add_explicit(&memory->held, bytes, memory_order_relaxed);
}

/* It is released. */
static inline void page_memory_release(struct page_memory *memory, uint64_t bytes)
{
	atomic_fetch_sub_explicit(&memory->held, bytes, memory_order_seq_cst);
}

/* Whether somebody is to be told that there may be room: once. */
static inline bool page_memory_tells(struct page_memory *memory)
{
	return atomic_load_explicit(&memory->wanted, memory_order_seq_cst) &&
	       atomic_exchange_explicit(&memory->wanted, false, memory_order_seq_cst);
}

static inline bool page_memory_is_wanted(const struct page_memory *memory)
{
	return atomic_load_explicit(&memory->wanted, memory_order_relaxed);
}

/* Whether there is room for one more request beside those that the program has. */
static inline bool page_memory_fits(const struct page_memory *memory, unsigned requests)
{
	uint64_t held = atomic_load_explicit(&memory->held, memory_order_seq_cst);
	uint64_t usual = atomic_load_explicit(&memory->usual, memory_order_relaxed);

	/* An eighth is for what lies beside the pages. */
	return (!held && !requests) ||
	       held + (requests + UINT64_C(1)) * usual <= memory->most - memory->most / 8;
}

#endif
