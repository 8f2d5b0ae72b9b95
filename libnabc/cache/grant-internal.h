/* SPDX-License-Identifier: MIT */
/* grant-internal.h - shared by the parts of grant.h, for grant*.c only. */
#ifndef NC_GRANT_INTERNAL_H
#define NC_GRANT_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hash-table.h"
#include "cache/grant.h"
#include "os/segment.h"

struct nc_grant_entry {
	struct nc_grant_entry *next;
	struct nc_grantee to;
	uint64_t serial; /* numbers all grants; a record has them in descending order */
	bool counted;	 /* its pidfd is charged to the maker */
};

/* The process that made a unit, as it was when it attached; zeroes: the owner. */
struct nc_origin {
	pid_t pid, session;
	uint64_t since;
};

struct nc_grant_record {
	struct nc_hash_entry entry; /* must be first; key: the id */
	struct nc_subject *maker;   /* NULL: the owner, or gone */
	struct nc_origin origin;    /* of the maker, gone or not */
	struct nc_segment copy;	    /* fd -1: the unit itself is sealed */
	size_t size, fraglen;
	size_t charged;	  /* bytes, to the maker, or to the owner for its copies */
	bool counted;	  /* its descriptor is charged to a member */
	bool owners_copy; /* its descriptor is charged to the owner's copies */
	size_t cached; /* bytes in the owner's memory of a member's sealed unit, or of an orphan */
	struct nc_grant_record *older, *newer; /* of those of its maker, or of the orphans */
	struct nc_grant_entry *grants;
	unsigned grant_count;
	struct nc_export *exports;
};

/* A slot of a subject's revocation map; record NULL: the unit is no longer valid. */
struct nc_export {
	struct nc_grant_record *record;
	struct nc_subject *to;
	uint32_t slot;
	struct nc_export *next, **link; /* in the record's list */
};

/* --- grant.c -------------------------------------------------------------------- */

struct nc_grant_record *nc_grants_find_locked(const struct nc_grants *grants, size_t id);

/* Removes a record whose copy is no longer used; the unit itself remains. */
void nc_grants_tidy_locked(struct nc_grants *grants, struct nc_grant_record *record);

/* Whether the subject may use the unit. */
bool nc_grants_allowed(const struct nc_grant_record *record, const struct nc_subject *subject);

/* --- grant-subject.c ------------------------------------------------------------ */

/*
 * Whether a maker may occupy one more of the owner's descriptors.  Returns 0,
 * -EDQUOT or -EMFILE.
 */
int nc_grants_one_more(const struct nc_grants *grants, const struct nc_subject *maker);
void nc_grants_count_one(struct nc_grants *grants, struct nc_subject *maker, bool *counted);

/* maker: NULL if it is gone. */
void nc_grants_discount(struct nc_grants *grants, struct nc_subject *maker, bool counted);

/* As nc_grants_room(). */
int nc_grants_room_locked(const struct nc_grants *grants, const struct nc_subject *maker,
			  size_t size);

/* --- grant-share.c -------------------------------------------------------------- */

/* The unit is in the owner's memory from now on, for its maker; or no longer. */
void nc_sealed_enter_locked(struct nc_grants *grants, struct nc_grant_record *record, size_t bytes);
void nc_sealed_leave_locked(struct nc_grants *grants, struct nc_grant_record *record);

/* The maker is gone. */
void nc_sealed_orphan_locked(struct nc_grants *grants, struct nc_grant_record *record);

/* --- grant-export.c ------------------------------------------------------------- */

void nc_export_revoke(struct nc_export *export, uint64_t reason);

/* Ends all exports of the subject and closes its revocation map. */
void nc_exports_return_all_locked(struct nc_grants *grants, struct nc_subject *subject);

#endif
