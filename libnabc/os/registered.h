/* SPDX-License-Identifier: MIT */
/*
 * registered.h - memory of segments that is registered with io_uring (registered
 * buffers), so that zero-copy sends from it need not find and pin its pages again.
 *
 * Each ring has a table: the cache's own one, and rings of programs.  A slot of it is one
 * block of a segment: NC_HUGE_PAGE bytes, or what is left of the segment.  A block of small
 * pages is registered when it is sent from often through that ring, and its slot is cleared
 * when its segment is closed, or when another block needs the slot or the locked memory.
 * The kernel pins the pages once for each ring: it clones no buffers of a ring that belongs
 * to another thread (IORING_REGISTER_CLONE_BUFFERS: EEXIST with IORING_SETUP_SINGLE_ISSUER).
 *
 * The kernel keeps a cleared buffer, and its pages, until the requests that use it have
 * ended, a zero-copy send with its notification: such a request counts as a user of the
 * entry in the ring's table (io_uring/rsrc.c: io_find_buf_node() takes the reference,
 * io_free_rsrc_node() unpins after the last one).  So clearing needs not wait for sends
 * in flight (invariant 1).
 *
 * Before Linux 6.13 the kernel unpins in the order of clearing: one client that does not
 * read keeps all that was cleared after its send began.  So that the memory remains
 * bounded (invariant 6), all tables of a cache together register at most an eighth of it
 * there, together with what may not have been unpinned yet.
 *
 * Any thread, unless a comment says otherwise.  The table's lock is held for one system
 * call at most, and no other lock is taken inside it: segments may be closed under any
 * lock.
 */
#ifndef NC_REGISTERED_H
#define NC_REGISTERED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <liburing.h>

struct io_uring;
struct io_uring_sqe;
struct nc_diagnostics;
struct nc_segment;

struct nc_registered_counts {
	uint64_t bytes;	 /* registered now */
	uint64_t blocks; /* registrations since the start */
	uint64_t failed; /* registrations that failed */
};

/* What the tables of a cache register together. */
struct nc_registered_budget {
	_Atomic uint64_t used; /* bytes registered, with those that are kept */
	uint64_t limit;	       /* bytes */
};

struct nc_registered {
	struct io_uring *uring; /* NULL: nothing is registered */
	struct nc_registered_budget *budget;
	struct nc_diagnostics *diagnostics;
	size_t memory; /* bytes of the cache's own segments, for the figure to raise */
	pthread_mutex_t lock;
	unsigned slot_count;
	struct nc_registered_slot *slots; /* NULL before the first registration */
	unsigned free;			  /* first free slot + 1; 0: none */
	unsigned uncleared;		  /* slots whose buffer is still registered */
	unsigned users;			  /* submissions being made */
	unsigned references; /* by its opener, segments that were sent from, and sends in flight */
	bool closed;
	uint64_t retry_at; /* ns; before that, memory was short */
	struct nc_registered_counts counts;
	struct nc_registered *next, **link; /* the opener's */
	/* If only one thread may use the ring: */
	bool owned;
	pthread_t owner;
	void (*stale)(void *data);
	void *data;
	/*
	 * Two periods, by turns: a send belongs to the one in which it began, and what was
	 * cleared in a period is unpinned when the sends of it and of the one before have
	 * ended.
	 */
	unsigned period;	    /* the present one: 0 or 1 */
	uint64_t sends[2], kept[2]; /* sends in flight; bytes cleared */
	/* For tests; otherwise the defaults of nc_registered_open(). */
	uint64_t idle;	/* ns since its last send after which a slot may be taken away */
	unsigned after; /* times its size that a block is sent from before */
};

/* A part of a registered block, from take to put. */
struct nc_registered_use {
	struct nc_registered *table;
	unsigned slot;
	unsigned period;  /* for nc_registered_ended() */
	uint64_t address; /* of the bytes, as the kernel knows them */
	size_t length;	  /* bytes, at most to the end of the block */
};

/* memory: bytes of the cache; uring: of the cache, or NULL. */
void nc_registered_budget_init(struct nc_registered_budget *budget, const struct io_uring *uring,
			       size_t memory);

/*
 * uring: NULL: nothing is registered; else it must remain until the close, as the budget
 * must.  Returns NULL if there is no memory.
 */
struct nc_registered *nc_registered_open(struct io_uring *uring,
					 struct nc_registered_budget *budget, size_t memory,
					 struct nc_diagnostics *diagnostics);

/*
 * From now on only the calling thread uses the ring, so it alone takes, clears and closes.
 * stale: another thread has closed a segment, and the owner is to call nc_registered_clear();
 * called under the table's lock, and under others.
 */
void nc_registered_own(struct nc_registered *table, void (*stale)(void *data), void *data);

/* Unpins what other threads could not. */
void nc_registered_clear(struct nc_registered *table);

/* Whether a submission is being made, so that the table cannot be closed. */
bool nc_registered_busy(struct nc_registered *table);

/*
 * Clears all slots, so that only memory of unfinished sends remains pinned, however long
 * the ring lives: a forked child may have its descriptor.  Segments may be closed meanwhile,
 * and later.
 */
void nc_registered_close(struct nc_registered *table);

/*
 * Finds the registered block with the byte at offset `at` of the segment, or registers
 * it if that is possible and pays.  Returns true with *use; then the slot remains until
 * nc_registered_put(), and use->length is at most length.  Returns false if the bytes
 * must be sent without registration; why is reported and counted.  The caller keeps the
 * segment open.  table NULL: false.
 */
bool nc_registered_take(struct nc_registered *table, struct nc_segment *segment, size_t at,
			size_t length, struct nc_registered_use *use);

/* Called when the submission was handed to the kernel, or is not made. */
void nc_registered_put(const struct nc_registered_use *use);

/* Called once for each take when the kernel no longer needs the bytes; may be after the close. */
void nc_registered_ended(struct nc_registered *table, unsigned period);

/*
 * Makes a prepared submission use the registered bytes: the only place where one names a
 * registered buffer, since the kernel reads and writes these whatever mprotect(2) says.
 * Returns 0, or -EINVAL with the submission unchanged: it is no zero-copy send, or longer
 * than use->length.
 */
int nc_registered_bind(const struct nc_registered_use *use, struct io_uring_sqe *sqe);

void nc_registered_stat(struct nc_registered *table, struct nc_registered_counts *counts);

#endif
