/* SPDX-License-Identifier: MIT */
/*
 * pool.h - the memory of a member: its stores and units, and the steps that keep
 * the two consistent.  member-growth.c and member-unit.c are built on these steps,
 * and eviction.c reclaims memory with them.
 *
 * All functions are called with the member's lock held, unless their comment says
 * otherwise.
 */
#ifndef NC_POOL_H
#define NC_POOL_H

#include <nabc.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/expiry.h"
#include "policy/replacement.h"
#include "store/unit.h"

struct nc_store;

#define NC_PRIORITIES 3u /* the evictable ones of enum NC_priority */

struct nc_member {
	unsigned number; /* 0: the owner */
	/*
	 * Serialises opening segments and reclaiming memory.  Lock order: growing,
	 * then lock.  It is held while memory is copied; lock never is.
	 */
	pthread_mutex_t growing;
	pthread_mutex_t lock; /* protects all below; a unit's word needs no lock */
	struct nc_units units;
	struct nc_store *stores, *oldest; /* first and last of the list */
	struct nc_store *runs;		  /* those recycled stores that many units share */
	struct nc_store *hint;		  /* in runs: where the last run of pages was found */
	struct nc_store *appended;	  /* the newest segment of the log, or NULL */
	/* removed from the lists, to be closed without the lock */
	struct nc_store *closing;
	struct nc_store *weighing; /* the next one to rate, or NULL */
	/* The owner's units by priority, without the pinned ones. */
	struct nc_replacement orders[NC_PRIORITIES];
	struct nc_expiry expiry;
	size_t budget; /* bytes of segments */
	size_t used;
	unsigned max_descriptors; /* limit for segments opened here */
	unsigned descriptors;
	size_t high, low;    /* bytes: reclaiming starts above high and stops below low */
	size_t segment_size; /* bytes of an ordinary segment */
	unsigned clean_limit;
	bool huge, protect, scrubs;
	struct nc_pin *pin;	  /* locks the memory of stores; NULL: not locked */
	struct nc_device *device; /* the kernel module; NULL: not used */
	/* attached: units in the module are granted to this process */
	int owner_pidfd;
	pid_t pid;		       /* and belong to this one */
	unsigned empties;	       /* empty stores among runs */
	unsigned pass;		       /* number of the last search for memory */
	uint64_t opened;	       /* stores opened so far */
	struct nc_unit_shared *shared; /* attached: the published table; otherwise NULL */
	/*
	 * Called under the lock when a unit marked granted is unlinked, before its
	 * id can be looked up again.  May be NULL.
	 */
	void (*gone)(void *context, const struct nc_unit *unit, unsigned generation);
	void *gone_context;
	/*
	 * Called under the lock when a unit has ended that this process did not destroy; its
	 * layout is still valid.  May be NULL.
	 */
	void (*evicted)(void *context, const struct nc_unit *unit, unsigned generation,
			enum NC_eviction why);
	void *evicted_context;
	/*
	 * Called without the lock when maintenance becomes due; once until the next
	 * maintenance.  May be NULL.
	 */
	void (*wake)(void *context);
	void *wake_context;
	_Atomic bool woken;
	bool due;		 /* call wake after unlocking */
	_Atomic bool scrub_idle; /* the scrubber found nothing to verify */
	_Atomic uint64_t inserts;
	uint64_t evictions, closed, destroys, expired, corrupt, scrubbed, pinned;
	uint64_t cleaned, copied_units, copied_bytes;
	uint64_t failures, failures_table, failures_system; /* no memory; no slot; no segment */
	/* Read by each release, so apart from what the lock protects; see memory-wait.h. */
	alignas(64) _Atomic uint32_t *waiting; /* own_waiting, or that of the published table */
	_Atomic uint32_t own_waiting;
};

/* Lock and unlock.  Unlocking also closes stores that were removed, and calls wake if it is due. */
void nc_pool_lock(struct nc_member *member);
void nc_pool_unlock(struct nc_member *member);

/* Marks maintenance as due: wake is called after unlocking. */
static inline void nc_pool_due(struct nc_member *member)
{
	member->due = true;
}

/* Calls wake; call it without the lock. */
void nc_pool_wake(struct nc_member *member);

/* Whether the budget suffices for a segment of that size; does not check descriptors. */
static inline bool nc_pool_fits(const struct nc_member *member, size_t size)
{
	return size <= member->budget && member->used <= member->budget - size;
}

static inline bool nc_pool_has_descriptor(const struct nc_member *member)
{
	return member->descriptors < member->max_descriptors;
}

/*
 * Charges a segment before it is opened; discharged if opening fails.  counted: the
 * store occupies a descriptor, and gets its field `counted` set.
 */
static inline void nc_pool_charge(struct nc_member *member, size_t size, bool counted)
{
	member->used += size;
	member->descriptors += counted;
}

static inline void nc_pool_discharge(struct nc_member *member, size_t size, bool counted)
{
	member->used -= size;
	member->descriptors -= counted;
}

/* Adds a store whose bytes `used` already counts; removes it and queues it for closing. */
void nc_pool_add_store(struct nc_member *member, struct nc_store *store);
void nc_pool_close_store(struct nc_member *member, struct nc_store *store);

/* Makes the store the newest segment of the log; the previous one becomes full. */
void nc_pool_grow_log(struct nc_member *member, struct nc_store *store);

/* Enters the unit at an offset from nc_store_take(); removes it. */
void nc_pool_enter(struct nc_member *member, struct nc_store *store, struct nc_unit *unit,
		   uint64_t at);
void nc_pool_leave(struct nc_member *member, struct nc_unit *unit);

/*
 * Closes a full store if it is empty, otherwise seals it, once no unit or copy in
 * it is being filled.
 */
void nc_pool_settle(struct nc_member *member, struct nc_store *store);

/* Frees the memory of a unit that is unlinked and no longer held. */
void nc_pool_give(struct nc_member *member, struct nc_unit *unit);

/*
 * Call it after unlinking the unit, so that a thread that marks the unit later
 * finds it unlinked.
 */
void nc_pool_notify_if_granted(struct nc_member *member, const struct nc_unit *unit,
			       unsigned generation);

/* Call it after unlinking a unit that this process did not destroy, before freeing it. */
void nc_pool_notify_evicted(struct nc_member *member, const struct nc_unit *unit,
			    unsigned generation, enum NC_eviction why);

/* Unlinks and frees a unit that is not held; false: it is held. */
bool nc_pool_evict(struct nc_member *member, struct nc_unit *unit);

/*
 * Ends a unit that has expired or is corrupt, and counts it.  If the unit is held, its last
 * release frees the memory.
 */
void nc_pool_drop(struct nc_member *member, struct nc_unit *unit, unsigned generation,
		  enum NC_eviction why);

/* Returns the unit's eviction order, or NULL: it is pinned, or the member has none. */
struct nc_replacement *nc_pool_order(struct nc_member *member, const struct nc_unit *unit);

/* Whether an entry of the expiry heap still matches its unit. */
bool nc_pool_expiry_valid(const struct nc_expiring *entry, void *member);

static inline struct nc_unit *nc_unit_of_order(struct nc_replaceable *entry)
{
	return (struct nc_unit *)(void *)((char *)entry - offsetof(struct nc_unit, order));
}

#endif
