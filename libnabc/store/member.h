/* SPDX-License-Identifier: MIT */
/*
 * member.h - the memory of this process as one member of a cache: its stores, its
 * table of units, its quota.
 *
 * The owner is member 0 and may open and evict stores within its budget.  An
 * attached process has one store, which it got from the owner, and publishes its
 * units in the table at the start of that segment.  All calls take the locks they
 * need and may come from any thread; holding and releasing a live unit takes none.
 */
#ifndef NC_MEMBER_H
#define NC_MEMBER_H

#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nc_device;
struct nc_layout;
struct nc_member;
struct nc_segment;
struct nc_unit;

/* What a unit has from its insert on: set before other threads can find it, or evict it. */
struct nc_insertion {
	enum NC_priority priority;
	uint64_t lifetime;    /* milliseconds from the insert; 0: no expiry */
	struct NC_hold *hold; /* the unit is published with a hold, which goes here; or NULL */
};

int nc_member_init_owner(struct nc_member *member, size_t budget, bool huge);

/*
 * Sets policy, watermarks and limits, before any unit exists.  Returns 0, or
 * -EINVAL (out of range).
 */
int nc_member_configure(struct nc_member *member, const struct NC_cache_options *options);

/* Takes ownership of the segment; its table ends and its units begin at first. */
int nc_member_init_attached(struct nc_member *member, unsigned number,
			    const struct nc_segment *segment, size_t first, uint32_t slots,
			    uint32_t generation);

/*
 * From now on units may be in the kernel module.  In an attached process they are
 * limited to the size of its segment and granted to the owner, which the pidfd
 * names.
 */
void nc_member_use_device(struct nc_member *member, struct nc_device *device, int owner_pidfd);

/* Whether there is a device, and the owner accepts units of this process there. */
bool nc_member_has_device(const struct nc_member *member);

/* Closes every store, including those with units. */
void nc_member_fini(struct nc_member *member);

/* Returns the number of units that handles are filling. */
uint32_t nc_member_filling(struct nc_member *member);

/*
 * Allocates a unit in state FILLING with memory of that kind; the caller owns it
 * until it is inserted or abandoned.  Returns 0, -ENOMEM, -EMFILE and other errors
 * of memfd_create(2), or -ENOSPC (the kernel module has no memory for it).
 */
int nc_member_alloc(struct nc_member *member, const struct nc_layout *layout, enum NC_kind kind,
		    struct nc_unit **unit);
void nc_member_abandon(struct nc_member *member, struct nc_unit *unit);

/*
 * Enters a frozen segment of another process as one LIVE unit of the owner.  On
 * success the member owns the segment, on failure the caller still does.  Fragments
 * have no checksums.  The unit is held once, so that it still exists when the
 * caller uses its id.  Returns 0 or -ENOMEM.
 */
int nc_member_adopt(struct nc_member *member, const struct nc_segment *segment,
		    const struct nc_layout *layout, struct nc_unit **unit);

/*
 * Gives back the memory behind the first extent bytes of a unit that is being filled, and
 * its share of the budget.  A unit that cannot change any more keeps it.
 */
void nc_member_trim(struct nc_member *member, struct nc_unit *unit, size_t extent);

/*
 * Gives a unit that is being filled more memory behind it.  Its bytes stay, nc_unit_base() may
 * change.  Returns 0; -EXDEV: it must move to other memory; -ENOMEM and others as
 * nc_member_alloc(), and nothing has changed.
 */
int nc_member_grow(struct nc_member *member, struct nc_unit *unit, size_t extent);

/*
 * Does what can fail of an insertion and can be undone, before any step that cannot.  For the
 * owner's member, or an insertion that has only a hold.  Returns 0 or -ENOMEM.
 */
int nc_member_prepare(struct nc_member *member, struct nc_unit *unit,
		      const struct nc_insertion *with);

/* Undoes the preparation: the unit is FILLING as before. */
void nc_member_unprepare(struct nc_member *member, struct nc_unit *unit,
			 const struct nc_insertion *with);

/*
 * Publishes a unit that is prepared; with NULL, one that needs no preparation.  On failure it
 * remains FILLING, and prepared.
 */
int nc_member_insert(struct nc_member *member, struct nc_unit *unit,
		     const struct nc_insertion *with);

/*
 * Makes the bytes of an inserted, held unit available at nc_unit_base() as long as
 * it is held.  Returns 1 if they were fetched, 0 if they were there, -ENOMEM, or
 * errors of mmap(2).
 */
int nc_member_fetch(struct nc_member *member, struct nc_unit *unit);

/*
 * Return 0 or -ENOENT.  An expired unit does not exist any more, collected or not;
 * with unlinked, a process that already holds it may hold it again.
 */
int nc_member_hold(struct nc_member *member, struct nc_unit *unit, unsigned generation,
		   bool unlinked);
int nc_member_release(struct nc_member *member, struct nc_unit *unit, unsigned generation);

#define NC_EVICTION_NONE ((enum NC_eviction)0) /* the program destroyed the unit itself */

/*
 * Destroys a unit.  why: NC_EVICTION_NONE, or the reason for NC_cache_on_evict().
 * Returns 0, -ENOENT, or 1: in an attached process, and the unit was granted to others, which the owner
 * must end.
 */
int nc_member_end(struct nc_member *member, struct nc_unit *unit, unsigned generation,
		  enum NC_eviction why);

static inline int nc_member_destroy(struct nc_member *member, struct nc_unit *unit,
				    unsigned generation)
{
	return nc_member_end(member, unit, generation, NC_EVICTION_NONE);
}

/* Whether with that many bytes more, there is so little memory left that units are evicted soon. */
bool nc_member_is_full(struct nc_member *member, size_t more);

/*
 * Evicts one of the owner's units, as if memory were needed, unless it is held, pinned, or, without
 * also_in_grace, in its grace period.
 */
bool nc_member_evict(struct nc_member *member, struct nc_unit *unit, unsigned generation,
		     bool also_in_grace);

/* Whether the unit is held; if so, counts as one more use of it. */
bool nc_member_held(struct nc_member *member, struct nc_unit *unit, unsigned generation);

/* Whether a unit that the caller holds has expired. */
bool nc_unit_expired(const struct nc_unit *unit);

/*
 * For a unit that the caller holds.  milliseconds: from now; 0: no expiry.  Return
 * 0, -EINVAL (no such priority, more than a year) or -ENOMEM.
 */
int nc_member_set_priority(struct nc_member *member, struct nc_unit *unit,
			   enum NC_priority priority);
int nc_member_set_lifetime(struct nc_member *member, struct nc_unit *unit, uint64_t milliseconds);

#endif
