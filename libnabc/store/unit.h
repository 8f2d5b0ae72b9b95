/* SPDX-License-Identifier: MIT */
/*
 * unit.h - the table of units of one member: slots, generations, states,
 * holds; and the table that a member shares with the owner.
 *
 * A unit's word holds generation, state and holds together, so that naming,
 * holding and dropping a unit are single atomic steps that any thread may
 * take.  Taking and giving slots is under the caller's lock.
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
	NC_UNIT_LIVE,	  /* can be named */
	NC_UNIT_UNLINKED, /* destroyed or evicted, still held */
	NC_UNIT_MOVING,	  /* live, and its place is being switched: wait a moment */
};

#define NC_UNIT_SUMS_INLINE 8u /* bytes */

/* What looking up touches comes first. */
struct nc_unit {
	_Atomic uint64_t word;	      /* generation << 36 | state << 32 | holds */
	struct nc_replaceable order;  /* the owner's: among the units of its priority */
	_Atomic uint32_t expires;     /* tick of expiry.h; 0: never */
	_Atomic uint8_t priority;     /* enum NC_priority */
	_Atomic bool wake_on_release; /* its last holder wakes the collector */
	_Atomic bool granted;	      /* others have leave to use it: tell when it goes */
	uint8_t sum_size;	      /* bytes of each fragment's sum; 0: none are kept */
	bool parked;		/* attached: unlinked here, to be freed once the owner drops it */
	_Atomic uint16_t grace; /* the owner's: until when, see below; 0: none */
	uint32_t slot;
	uint32_t next, previous; /* in its store's list, or the free list */
	struct nc_store *store;	 /* NULL in a free slot */
	uint64_t at;		 /* byte offset of its memory in the segment */
	struct nc_layout layout;
	union {
		uint16_t sum16[NC_UNIT_SUMS_INLINE / 2];
		uint32_t sum32[NC_UNIT_SUMS_INLINE / 4];
		void *sums; /* more of them: malloc; see unit-checksum.h */
	};
};

/* With 8 to 10 bytes in an order's heap it stays below 128. */
static_assert(sizeof(struct nc_unit) <= 112, "memory overhead a unit");

/*
 * A member tells the owner the id of what it has put into the cache, and whoever is
 * told uses it a moment later.  Until its first use, or until the grace time has
 * passed (units of about a second), the unit is evicted after all else of its
 * priority.
 */
#define NC_GRACE_SHIFT 30u /* of nanoseconds */
#define NC_GRACE_MOST 10u

static inline void nc_unit_begin_grace(struct nc_unit *unit, uint64_t now_ns)
{
	uint16_t until = (uint16_t)((now_ns >> NC_GRACE_SHIFT) + NC_GRACE_MOST);

	atomic_store_explicit(&unit->grace, until ? until : 1, memory_order_relaxed);
}

static inline void nc_unit_end_grace(struct nc_unit *unit)
{
	/* Look before writing: the line of a hot unit stays shared. */
	if (atomic_load_explicit(&unit->grace, memory_order_relaxed))
		atomic_store_explicit(&unit->grace, 0, memory_order_relaxed);
}

static inline bool nc_unit_in_grace(const struct nc_unit *unit, uint64_t now_ns)
{
	uint16_t until = atomic_load_explicit(&unit->grace, memory_order_relaxed);

	/* It wraps within a day. */
	return until && (int16_t)((uint16_t)(now_ns >> NC_GRACE_SHIFT) - until) < 0;
}

/* Whether the unit's sums, if it has any, lie outside of it. */
static inline bool nc_unit_sums_outside(const struct nc_unit *unit)
{
	return unit->layout.fragments * unit->sum_size > NC_UNIT_SUMS_INLINE;
}

#define NC_UNITS_CHUNK 1024u
#define NC_UNIT_NONE UINT32_MAX

struct nc_units {
	_Atomic(struct nc_unit *) *chunks; /* grown, never moved, freed at fini */
	uint32_t limit;			   /* slots at most */
	uint32_t count;			   /* slots that exist */
	uint32_t free;			   /* first free slot, or NC_UNIT_NONE */
	uint32_t generation;		   /* first one of a new slot */
	uint32_t live;			   /* taken slots */
};

int nc_units_init(struct nc_units *units, uint32_t limit, uint32_t generation);
void nc_units_fini(struct nc_units *units);

/* The slot's unit, or NULL when the slot does not exist.  Any thread. */
struct nc_unit *nc_units_at(const struct nc_units *units, uint32_t slot);

/* A free slot, now FILLING with its next generation; NULL: table full. */
struct nc_unit *nc_units_take(struct nc_units *units);

/* Makes sure that a given slot exists; for tables that mirror another's. */
struct nc_unit *nc_units_reach(struct nc_units *units, uint32_t slot);

/* Forgets layout and sums. */
void nc_unit_forget(struct nc_unit *unit);

/* Ends the unit: its slot is free, or retired when its generations are spent. */
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

/* FILLING becomes LIVE. */
void nc_unit_publish(struct nc_unit *unit);

/*
 * One hold more.  unlinked: a unit that is unlinked but held may be held again
 * (a holder goes on sending).  0 or -ENOENT.
 */
int nc_unit_hold(struct nc_unit *unit, unsigned generation, bool unlinked);

/* Whether somebody holds it: then it stays, and stays where it is, until that ends. */
bool nc_unit_held(const struct nc_unit *unit, unsigned generation);

/*
 * One hold less.  1: it was the last of an unlinked unit, the caller reclaims
 * it; 0; -EINVAL: it was not held.
 */
int nc_unit_release(struct nc_unit *unit, unsigned generation);

/* LIVE becomes UNLINKED.  1: nobody holds it, the caller reclaims; 0; -ENOENT. */
int nc_unit_unlink(struct nc_unit *unit, unsigned generation);

/* LIVE becomes UNLINKED unless somebody holds the unit. */
bool nc_unit_unlink_idle(struct nc_unit *unit);

/*
 * Switching a unit's store and place while others look it up: between begin
 * and end, a few instructions, whoever wants to hold it spins.  begin gives up
 * the caller's own hold, which must be the only one; false: it is not, or the
 * unit is not live.
 */
bool nc_unit_move_begin(struct nc_unit *unit, unsigned generation);
void nc_unit_move_end(struct nc_unit *unit, unsigned generation);

/* --- the shared table ---------------------------------------------------- */

/*
 * One entry a slot at the start of a member's segment.  The member fills it
 * and sets LIVE; the owner marks it BUSY while it uses the unit and DROPPED
 * to give it back.  word = generation << 4 | state.
 */
enum nc_shared_state {
	NC_SHARED_FREE,
	NC_SHARED_LIVE,
	NC_SHARED_BUSY,
	NC_SHARED_UNLINKED, /* busy, and destroyed by the member meanwhile */
	NC_SHARED_DROPPED,  /* the member's again */
};

struct nc_unit_shared {
	alignas(64) _Atomic uint64_t word;
	_Atomic uint64_t at; /* byte offset in the segment */
	_Atomic uint64_t size;
	_Atomic uint64_t fraglen;
	_Atomic uint64_t kernel; /* its name in the kernel module; 0: it is in the segment */
	/*
	 * The first entry's, by the owner: the process whose units in the module it
	 * takes; 0: none.  A worker may be another than was started, or not be known yet.
	 */
	_Atomic uint64_t maker;
};

static_assert(sizeof(struct nc_unit_shared) == 64, "ABI of the unit table");

static inline uint64_t nc_shared_word(unsigned generation, enum nc_shared_state state)
{
	return (uint64_t)generation << 4 | state;
}

/* What an entry says of its unit. */
struct nc_unit_told {
	struct nc_layout layout;
	uint64_t at;
	uint64_t kernel;
};

/*
 * Copies an entry's description and checks it: a legal layout; inside
 * [first, end) of the segment, whole pages; or in the module, without gaps,
 * where it is for the module to say more.  0 or -EPROTO.
 */
int nc_shared_snapshot(struct nc_unit_shared *entry, uint64_t first, uint64_t end,
		       struct nc_unit_told *told);

#endif
