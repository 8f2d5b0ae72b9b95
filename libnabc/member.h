/* SPDX-License-Identifier: MIT */
/*
 * member.h - the memory of this process as one member of a cache: its
 * stores, its table of units, its quota.
 *
 * The owner is member 0 and may open and evict stores within its budget; a
 * process that joined has one store, which the owner gave it, and publishes
 * its units in the table at the segment's start.  All calls lock inside and
 * may come from any thread.
 */
#ifndef NC_MEMBER_H
#define NC_MEMBER_H

#include <pthread.h>

#include "store.h"

struct nc_member {
	unsigned number;      /* 0: the owner */
	pthread_mutex_t lock; /* all below; a unit's word needs none */
	struct nc_units units;
	struct nc_store *stores;
	struct nc_store *appended;   /* where the log grows, or NULL */
	struct nc_replacement order; /* the owner's stores, for eviction */
	size_t budget;		     /* bytes of segments */
	size_t used;
	size_t segment_size; /* bytes of an ordinary segment */
	bool huge;
	struct nc_unit_shared *shared; /* joined: the published table; else NULL */
	uint64_t evictions, closed, failures, inserts, destroys;
};

int nc_member_init_owner(struct nc_member *member, size_t budget, bool huge);

/* Takes the segment over; its table ends and its units begin at first. */
int nc_member_init_joined(struct nc_member *member, unsigned number,
			  const struct nc_segment *segment, size_t first, uint32_t slots,
			  uint32_t generation);

/* Closes every store, whatever is in it. */
void nc_member_fini(struct nc_member *member);

/* Units that handles are filling. */
uint32_t nc_member_filling(struct nc_member *member);

/*
 * A unit in state FILLING with memory of that kind; the caller's until
 * inserted or abandoned.  0; -ENOMEM; -EMFILE and others of memfd_create.
 */
int nc_member_alloc(struct nc_member *member, const struct nc_layout *layout, enum NC_kind kind,
		    struct nc_unit **unit);
void nc_member_abandon(struct nc_member *member, struct nc_unit *unit);

/* Publishes; on failure the unit is FILLING as before. */
int nc_member_insert(struct nc_member *member, struct nc_unit *unit);

/* 0, -ENOENT. */
int nc_member_hold(struct nc_member *member, struct nc_unit *unit, unsigned generation,
		   bool doomed);
int nc_member_release(struct nc_member *member, struct nc_unit *unit, unsigned generation);
int nc_member_destroy(struct nc_member *member, struct nc_unit *unit, unsigned generation);

#endif
