/* SPDX-License-Identifier: MIT */
/*
 * unit.h - the table of units of one member: slots, generations, states, holds; and
 * the table that a member shares with the owner.
 *
 * One atomic word of a unit contains generation, state and number of holds, so that
 * looking up, holding and dropping a unit are single atomic steps for any thread.
 * The caller locks for taking and returning slots.
 *
 * Memory order of the word: nc_unit_publish() and nc_unit_move_end() release what the unit is, and
 * nc_unit_hold() acquires it; every step between is a read-modify-write, so the order holds across
 * them.  nc_unit_release() releases the holder's reads, and the step that finds no hold left
 * (the last release, nc_unit_unlink(), nc_unit_unlink_idle(), nc_unit_move_begin()) acquires them
 * before the memory is used again.  Steps that are followed by a look at a flag of the unit are
 * sequentially consistent: release with `wake_on_release` (nc_search_idle()), unlink with `granted`
 * (membership/grant-ops.c), publish with the scrubber's `scrub_idle` (maintenance.c).
 */
#ifndef NC_UNIT_H
#define NC_UNIT_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fragment.h"
#include "policy/replacement.h"

struct nc_store;

enum nc_unit_state {
	NC_UNIT_FREE,
	NC_UNIT_FILLING,  /* allocated, not inserted: known to its handle only */
	NC_UNIT_LIVE,	  /* can be looked up */
	NC_UNIT_UNLINKED, /* destroyed or evicted, still held */
	NC_UNIT_MOVING,	  /* live, but its place is being switched: wait; holds: a thread sleeps */
};

#define NC_UNIT_SUMS_INLINE 8u /* bytes */

/* Whether a unit's checksums exist: see unit-checksum.h. */
enum nc_unit_sums {
	NC_SUMS_NONE,	 /* not computed yet */
	NC_SUMS_STORING, /* one thread stores them: a few instructions */
	NC_SUMS_KEPT,
};

/* The fields that a lookup touches come first. */
struct nc_unit {
	_Atomic uint64_t word;	      /* generation << 36 | state << 32 | holds */
	struct nc_replaceable order;  /* owner: position among the units of its priority */
	_Atomic uint32_t expires;     /* tick of expiry.h; 0: never */
	_Atomic uint8_t priority;     /* enum NC_priority */
	_Atomic bool wake_on_release; /* its last release wakes the collector */
	_Atomic bool granted;	      /* granted to others: report when it is unlinked */
	uint8_t sum_size;	      /* bytes of each fragment's checksum; 0: none are kept */
	bool parked;		      /* attached: unlinked here, freed when the owner drops it */
	_Atomic uint8_t summed;	      /* enum nc_unit_sums */
	_Atomic uint16_t grace;	      /* owner: end of the grace period, see below; 0: none */
	uint32_t slot;
	uint32_t next, previous; /* in its store's list, or the free list */
	struct nc_store *store;	 /* NULL in a free slot */
	uint64_t at;		 /* byte offset of its memory in the segment */
	struct nc_layout layout;
	union { /* the checksums, with NC_SUMS_KEPT */
		uint16_t sum16[NC_UNIT_SUMS_INLINE / 2];
		uint32_t sum32[NC_UNIT_SUMS_INLINE / 4];
		void *sums; /* if larger: malloc; see unit-checksum.h */
	};
};

/* With 8 to 10 bytes in the heap of an order, a unit costs less than 128 bytes. */
static_assert(sizeof(struct nc_unit) <= 112, "memory overhead a unit");

/*
 * A member inserts a unit and passes its id to the owner, which uses it a moment
 * later.  Until its first use, or until the grace period has passed (in units of
 * about a second), the unit is evicted after all others of its priority.
 */
#define NC_GRACE_SHIFT 30u /* shifts nanoseconds */
#define NC_GRACE_MOST 10u

static inline void nc_unit_begin_grace(struct nc_unit *unit, uint64_t now_ns)
{
	uint16_t until = (uint16_t)((now_ns >> NC_GRACE_SHIFT) + NC_GRACE_MOST);

	atomic_store_explicit(&unit->grace, until ? until : 1, memory_order_relaxed);
}

static inline void nc_unit_end_grace(struct nc_unit *unit)
{
	/* Read before writing: the cache line of a hot unit stays shared. */
	if (atomic_load_explicit(&unit->grace, memory_order_relaxed))
		atomic_store_explicit(&unit->grace, 0, memory_order_relaxed);
}

static inline bool nc_unit_in_grace(const struct nc_unit *unit, uint64_t now_ns)
{
	uint16_t until = atomic_load_explicit(&unit->grace, memory_order_relaxed);

	/* The counter wraps within a day. */
	return until && (int16_t)((uint16_t)(now_ns >> NC_GRACE_SHIFT) - until) < 0;
}

/* Whether the unit's checksums are in separate memory. */
static inline bool nc_unit_sums_outside(const struct nc_unit *unit)
{
	return unit->layout.fragments * unit->sum_size > NC_UNIT_SUMS_INLINE;
}

#define NC_UNITS_CHUNK 1024u
#define NC_UNIT_NONE UINT32_MAX

struct nc_units {
	_Atomic(struct nc_unit *) *chunks; /* grown, never moved, freed at fini */
	uint32_t limit;			   /* maximum number of slots */
	uint32_t count;			   /* slots that exist */
	uint32_t free;			   /* first free slot, or NC_UNIT_NONE */
	uint32_t generation;		   /* the first generation of a new slot */
	uint32_t live;			   /* slots in use */
};

int nc_units_init(struct nc_units *units, uint32_t limit, uint32_t generation);
void nc_units_fini(struct nc_units *units);

/* Returns the slot's unit, or NULL if the slot does not exist.  Any thread. */
struct nc_unit *nc_units_at(const struct nc_units *units, uint32_t slot);

/* Takes a free slot, now FILLING with its next generation; NULL: table full. */
struct nc_unit *nc_units_take(struct nc_units *units);

/* Ensures that a given slot exists; for tables that mirror another one. */
struct nc_unit *nc_units_reach(struct nc_units *units, uint32_t slot);

/* Clears layout and checksums. */
void nc_unit_forget(struct nc_unit *unit);

/* Ends the unit: frees its slot, or retires it if its generations are used up. */
void nc_units_give(struct nc_units *units, struct nc_unit *unit);

static inline unsigned nc_word_generation(uint64_t word)
{
	return (unsigned)(word >> 36);
}

static inline enum nc_unit_state nc_word_state(uint64_t word)
{
	return (enum nc_unit_state)(word >> 32 & 0xf);
}

static inline uint32_t nc_word_holds(uint64_t word)
{
	return (uint32_t)word;
}

static inline uint64_t nc_word(unsigned generation, enum nc_unit_state state, uint32_t holds)
{
	return (uint64_t)generation << 36 | (uint64_t)state << 32 | holds;
}

static inline uint64_t nc_unit_word(const struct nc_unit *unit)
{
	return atomic_load_explicit(&unit->word, memory_order_acquire);
}

/* Changes FILLING to LIVE, with that many holds. */
void nc_unit_publish(struct nc_unit *unit, uint32_t holds);

/*
 * Adds a hold.  unlinked: a unit that is unlinked but held may be held again (its
 * holder continues to send).  Returns 0 or -ENOENT.
 */
int nc_unit_hold(struct nc_unit *unit, unsigned generation, bool unlinked);

/* Whether the unit is held: until released, it is neither freed nor moved. */
bool nc_unit_held(const struct nc_unit *unit, unsigned generation);

/*
 * Removes a hold.  Returns 1 if it was the last one of an unlinked unit, which the
 * caller must reclaim, 0, or -EINVAL (not held).
 */
int nc_unit_release(struct nc_unit *unit, unsigned generation);

/*
 * Changes LIVE to UNLINKED.  Returns 1 if the unit is not held and the caller must
 * reclaim it, 0, or -ENOENT.
 */
int nc_unit_unlink(struct nc_unit *unit, unsigned generation);

/* Changes LIVE to UNLINKED unless the unit is held. */
bool nc_unit_unlink_idle(struct nc_unit *unit);

/*
 * Switch a unit's store and place while others look it up.  Between begin and end,
 * a few instructions, a thread that wants to hold it spins, then sleeps.  begin consumes the
 * caller's hold, which must be the only one; false: it is not, or the unit is not
 * live.
 */
bool nc_unit_move_begin(struct nc_unit *unit, unsigned generation);
void nc_unit_move_end(struct nc_unit *unit, unsigned generation);

/* --- the shared table ---------------------------------------------------- */

/*
 * One entry per slot at the start of a member's segment.  The member fills it and
 * sets LIVE; the owner sets BUSY while it uses the unit, and DROPPED to return it.
 * word = generation << 4 | state.
 *
 * The release of LIVE (publish_shared_locked() of member-unit.c) pairs with the acquire of BUSY
 * (hold_first_locked() of remote-member.c): the owner sees the description and the bytes.  The
 * release of DROPPED or LIVE (unhold_locked()) pairs with the acquires in reclaim_locked() and
 * collect_locked(): the member reuses the memory after the owner's last read.  The other fields are
 * relaxed: BUSY protects them.  The list of units reads them without it, and then looks at the word
 * again (nc_remote_member_next()).
 */
enum nc_shared_state {
	NC_SHARED_FREE,
	NC_SHARED_LIVE,
	NC_SHARED_BUSY,
	NC_SHARED_UNLINKED, /* busy, and destroyed by the member meanwhile */
	NC_SHARED_DROPPED,  /* returned to the member */
};

struct nc_unit_shared {
	alignas(64) _Atomic uint64_t word;
	_Atomic uint64_t at; /* byte offset in the segment */
	_Atomic uint64_t size;
	_Atomic uint64_t fraglen;
	_Atomic uint64_t kernel; /* name in the kernel module; 0: in the segment */
	/*
	 * First entry only, set by the owner: the process whose units in the module
	 * it accepts; 0: none.  A worker's process may differ from the one that was
	 * started, or not be known yet.
	 */
	_Atomic uint64_t maker;
	/* first entry only: a thread of the member waits for memory (memory-wait.h) */
	_Atomic uint32_t waiting;
};

static_assert(sizeof(struct nc_unit_shared) == 64, "ABI of the unit table");

static inline uint64_t nc_shared_word(unsigned generation, enum nc_shared_state state)
{
	return (uint64_t)generation << 4 | state;
}

/* An entry's description of its unit. */
struct nc_unit_description {
	struct nc_layout layout;
	uint64_t at;
	uint64_t kernel;
};

/*
 * Copies an entry's description and checks it: a valid layout, in whole pages
 * inside [first, end) of the segment; or, in the module, without gaps; the module
 * checks the rest.  Returns 0 or -EPROTO.
 */
int nc_shared_snapshot(struct nc_unit_shared *entry, uint64_t first, uint64_t end,
		       struct nc_unit_description *description);

#endif
