/* SPDX-License-Identifier: MIT */
/*
 * page-memory.h - the memory in which a program makes pages: how much of it responses hold, and
 * whether another request fits.
 *
 * A program whose memory is full can only refuse requests.  So it gets a request only if its free
 * memory suffices for the pages of that request and of the current ones, estimated from its recent
 * pages.  Otherwise the request waits for the release of a page, and responses to slow clients are
 * moved off their pages.  An idle program whose pages are all released gets a request in any case.
 *
 * Any thread.  A request that does not fit sets has_waiters, then asks page_memory_fits() again; a
 * release first changes `held` or the number of requests, then looks at has_waiters.  All four are
 * sequentially consistent, so one of the two sees the other.
 */
#ifndef SWEET_PAGE_MEMORY_H
#define SWEET_PAGE_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct page_memory {
	uint64_t most;		  /* bytes of the program's memory */
	_Atomic uint64_t held;	  /* bytes of its pages that responses hold */
	_Atomic uint64_t usual;	  /* bytes of a page: the largest of recent ones */
	_Atomic bool has_waiters; /* a request waits for memory */
};

static inline void page_memory_init(struct page_memory *memory, uint64_t most)
{
	memory->most = most;
	/* An estimate for the start. */
	atomic_init(&memory->usual, most / 16);
}

/* A response holds a page of the program, of that many bytes; 0: none. */
static inline void page_memory_hold(struct page_memory *memory, uint64_t bytes)
{
	uint64_t usual = atomic_load_explicit(&memory->usual, memory_order_relaxed);

	usual = bytes > usual ? bytes : usual - (usual - bytes + 7) / 8;
	atomic_store_explicit(&memory->usual, usual, memory_order_relaxed);
	if (bytes)
		atomic_fetch_add_explicit(&memory->held, bytes, memory_order_relaxed);
}

/* The page is released. */
static inline void page_memory_release(struct page_memory *memory, uint64_t bytes)
{
	atomic_fetch_sub_explicit(&memory->held, bytes, memory_order_seq_cst);
}

/* Whether the caller has to notify waiting requests; true once. */
static inline bool page_memory_must_notify(struct page_memory *memory)
{
	return atomic_load_explicit(&memory->has_waiters, memory_order_seq_cst) &&
	       atomic_exchange_explicit(&memory->has_waiters, false, memory_order_seq_cst);
}

static inline bool page_memory_has_waiters(const struct page_memory *memory)
{
	return atomic_load_explicit(&memory->has_waiters, memory_order_relaxed);
}

/* Whether one more request fits, in addition to the program's current ones. */
static inline bool page_memory_fits(const struct page_memory *memory, unsigned requests)
{
	uint64_t held = atomic_load_explicit(&memory->held, memory_order_seq_cst);
	uint64_t usual = atomic_load_explicit(&memory->usual, memory_order_relaxed);

	/* An eighth of the memory is for other data than pages. */
	return (!held && !requests) ||
	       held + (requests + UINT64_C(1)) * usual <= memory->most - memory->most / 8;
}

#endif
