/* SPDX-License-Identifier: MIT */
/*
 * pool.h - the memory of a member: its stores and units, and the steps that keep the
 * two consistent.  member-growth.c and member-unit.c are built on these steps, and
 * eviction.c reclaims memory with them.
 *
 * All calls are under the member's lock, unless they say otherwise.
 */
#ifndef NC_POOL_H
#define NC_POOL_H

#include <pthread.h>
#include <stddef.h>

#include "policy/expiry.h"
#include "store/store.h"

#define NC_PRIORITIES 3u /* that are evicted, by enum NC_priority */

struct nc_member {
	unsigned number; /* 0: the owner */
	/*
	 * Opening segments and making room, one thread at a time; taken before
	 * lock and kept while memory is copied, which lock never is.
	 */
	pthread_mutex_t growing;
	pthread_mutex_t lock; /* all below; a unit's word needs none */
	struct nc_units units;
	struct nc_store *stores, *oldest; /* the first and the last */
	struct nc_store *runs;		  /* of them, the recycled ones that many units share */
	struct nc_store *hint;		  /* in runs: where a run was found last */
	struct nc_store *appended;	  /* where the log grows, or NULL */
	struct nc_store *closing;	  /* out of the lists, to be closed without the lock */
	struct nc_store *weighing;	  /* the next one to weigh, or NULL */
	/* The owner's units by priority, pinned ones apart. */
	struct nc_replacement orders[NC_PRIORITIES];
	struct nc_expiry expiry;
	size_t budget; /* bytes of segments */
	size_t used;
	unsigned max_descriptors; /* of segments that are opened here */
	unsigned descriptors;
	size_t high, low;    /* bytes: collecting begins above and ends below */
	size_t segment_size; /* bytes of an ordinary segment */
	unsigned clean_limit;
	bool huge, protect, scrubs;
	struct nc_device *device;      /* the kernel module's; NULL: not in use */
	int owner_pidfd;	       /* attached: to whom units there are granted, */
	pid_t pid;		       /* and by whom */
	unsigned empties;	       /* empty stores among runs */
	unsigned pass;		       /* of searches for room */
	uint64_t opened;	       /* stores so far */
	struct nc_unit_shared *shared; /* attached: the published table; else NULL */
	/*
	 * Told under the lock, before it can be named otherwise, that a unit marked
	 * granted is named no more.  May be NULL.
	 */
	void (*gone)(void *context, const struct nc_unit *unit, unsigned generation);
	void *gone_context;
	/*
	 * Told, without the lock, that maintenance is due; once, until the next maintenance.
	 * May be NULL.
	 */
	void (*wake)(void *context);
	void *wake_context;
	_Atomic bool woken;
	bool due;		 /* wake before the lock is left */
	_Atomic bool scrub_idle; /* the scrubber found nothing to look at */
	_Atomic uint64_t inserts;
	uint64_t evictions, closed, destroys, expired, corrupt, scrubbed, pinned;
	uint64_t cleaned, copied_units, copied_bytes;
	uint64_t failures, failures_table, failures_system; /* no memory; no slot; no segment */
};

/* Without the lock: it is taken; and left, with what leaving brings about. */
void nc_pool_lock(struct nc_member *member);
void nc_pool_unlock(struct nc_member *member);

/* Maintenance is due: told when the lock is left. */
static inline void nc_pool_due(struct nc_member *member)
{
	member->due = true;
}

/* Without the lock: maintenance is due. */
void nc_pool_wake(struct nc_member *member);

/* Whether the budget has room for a segment of that size; a descriptor is another matter. */
static inline bool nc_pool_fits(const struct nc_member *member, size_t size)
{
	return size <= member->budget && member->used <= member->budget - size;
}

static inline bool nc_pool_has_descriptor(const struct nc_member *member)
{
	return member->descriptors < member->max_descriptors;
}

/*
 * Charges a segment before it is opened, and discharges it if opening fails.
 * counted: it takes a descriptor, which the store says of itself then.
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

/* Enters a store whose bytes `used` counts already; and takes it out to be closed. */
void nc_pool_add_store(struct nc_member *member, struct nc_store *store);
void nc_pool_close_store(struct nc_member *member, struct nc_store *store);

/* The newest segment of the log from now on; the one before it is full. */
void nc_pool_grow_log(struct nc_member *member, struct nc_store *store);

/* Enters the unit at an offset that nc_store_take() gave, and takes it out. */
void nc_pool_enter(struct nc_member *member, struct nc_store *store, struct nc_unit *unit,
		   uint64_t at);
void nc_pool_leave(struct nc_member *member, struct nc_unit *unit);

/* A full store that nothing is on its way into is closed when empty, else sealed. */
void nc_pool_settle(struct nc_member *member, struct nc_store *store);

/* Nobody names or holds the unit any more: its memory is free. */
void nc_pool_give(struct nc_member *member, struct nc_unit *unit);

/* After unlinking it, so that whoever marks the unit later finds it unlinked. */
void nc_pool_tell_if_granted(struct nc_member *member, const struct nc_unit *unit,
			     unsigned generation);

/* Unlinks and gives a unit that nobody holds; false: somebody does. */
bool nc_pool_evict(struct nc_member *member, struct nc_unit *unit);

/*
 * Ends a unit for a reason that is counted, held or not: then its memory goes
 * with its last holder.
 */
void nc_pool_drop(struct nc_member *member, struct nc_unit *unit, unsigned generation,
		  uint64_t *reason);

/* The order that the unit is in, or NULL: it is pinned, or the member has none. */
struct nc_replacement *nc_pool_order(struct nc_member *member, const struct nc_unit *unit);

/* Whether the expiry heap's entry still says what its unit says. */
bool nc_pool_expiry_valid(const struct nc_expiring *entry, void *member);

static inline struct nc_unit *nc_unit_of_order(struct nc_replaceable *entry)
{
	return (struct nc_unit *)(void *)((char *)entry - offsetof(struct nc_unit, order));
}

#endif
