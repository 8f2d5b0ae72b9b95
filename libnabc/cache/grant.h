/* SPDX-License-Identifier: MIT */
/*
 * grant.h - who may use which unit: the owner's records of grants.
 *
 * A record describes a unit that processes beside its maker may use, or that a
 * member made sealed.  It states who made the unit, to whom it is granted and to
 * whom it is exported, and contains the frozen copy that is passed on if the unit
 * itself is not sealed.  Descriptors, not the cooperation of processes, keep others
 * out (invariant 2).
 *
 * It has its own lock; may be called under a member's lock, and calls no other
 * module.
 */
#ifndef NC_GRANT_H
#define NC_GRANT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <nabc.h>

#include "base/hash-table.h"
#include "os/identity.h"
#include "store/revocation-map.h"

#define NC_GRANTS_MAX 1024u /* of one unit */

struct nc_export;
struct nc_grant_record;
struct nc_segment;

/* Units that members made sealed and that are in the owner's memory, in order. */
struct nc_sealed_units {
	struct nc_grant_record *oldest, *newest;
	size_t bytes;
};

/* A member that makes, is granted, and imports units. */
struct nc_subject {
	struct nc_identity who;
	unsigned number; /* its member number, or 0 */
	bool operates;	 /* an operator, which manages the whole cache */
	bool names;	 /* may give names to the units that it may use */
	pid_t stranger;	 /* another process that has sent a call as this one; 0: none */
	size_t quota;	 /* limit of bytes that it made sealed */
	size_t sealed;
	struct nc_sealed_units units; /* of those, without copies */
	unsigned descriptors;	      /* the owner's descriptors that its units occupy */
	struct nc_revocation_map revocations;
	struct nc_export **exports; /* by slot of the revocation map */
	struct nc_subject *next;
};

/* To whom a unit is granted. */
struct nc_grantee {
	enum NC_principal principal; /* NC_PROCESS, NC_USER or NC_GROUP */
	unsigned who;
	int pidfd; /* of a process; otherwise -1 */
};

/* What an export passes to the member. */
struct nc_export_info {
	int fd; /* a duplicate that the caller must close */
	size_t size;
	size_t fraglen;
	uint32_t slot;
};

struct nc_grants {
	pthread_mutex_t lock;
	struct nc_hash_table records;
	struct nc_subject *subjects;
	size_t quota; /* limit of bytes of copies made by the owner */
	size_t share; /* bytes of sealed units that one member may keep beside others */
	struct nc_sealed_units orphans; /* their makers are gone */
	size_t sealed;			/* bytes of all members' sealed units, and of orphans */
	size_t copied;
	unsigned copies, copies_max; /* number of those copies (a descriptor each), and its limit */
	unsigned descriptors;	     /* occupied by units and grants of members */
	uint64_t last_serial;	     /* number of grants so far */
	_Atomic size_t count;	     /* of records */
	/*
	 * Number of records by hash of their ids, to be read before locking: most units, such
	 * as those of responses, have none.  NULL: no memory, and `count` is read instead.
	 */
	_Atomic uint32_t *marks;
};

void nc_grants_init(struct nc_grants *grants, size_t quota);
void nc_grants_fini(struct nc_grants *grants);

/* Adds a member; takes ownership of the pidfd in subject->who. */
void nc_grants_join(struct nc_grants *grants, struct nc_subject *subject);

/* Set what becomes known later: its number, and its identity (takes ownership of the pidfd). */
void nc_grants_number(struct nc_grants *grants, struct nc_subject *subject, unsigned number);
void nc_grants_identify(struct nc_grants *grants, struct nc_subject *subject,
			const struct nc_identity *who);

/*
 * Removes the subject and ends its exports.  Calls orphan(), without the lock, for
 * every unit that it made sealed and that outlives it.
 */
void nc_grants_part(struct nc_grants *grants, struct nc_subject *subject,
		    void (*orphan)(void *context, size_t id), void *context);

/*
 * Creates a record for a unit that has none; maker NULL: the owner.  The record
 * takes ownership of copy (NULL: the unit itself is sealed), charged to the maker.
 * Returns 0, -EEXIST, -EDQUOT (over the maker's or the owner's quota), -ENOMEM, or
 * errors of nc_grants_room() for descriptors.  On failure the caller still owns
 * copy.
 */
int nc_grants_enter(struct nc_grants *grants, size_t id, struct nc_subject *maker,
		    const struct nc_segment *copy, size_t size, size_t fraglen);

/*
 * Checks whether a maker may have that many more bytes sealed.  Returns 0, -EDQUOT
 * (no), or -EMFILE: members together may use half of the owner's descriptors, and
 * each of them a quarter of that half.  Every unit that they made and every process
 * to which they granted one occupies a descriptor.
 */
int nc_grants_room(struct nc_grants *grants, const struct nc_subject *maker, size_t size);

/*
 * Whether a maker's next unit of that size needs an older one to go first: its own oldest,
 * if it would have more than its share, or one of an orphan or of the member that has most, if all
 * together would have more than two.  *id: that unit, which then counts as the newest, for the
 * case that it is in use.
 */
bool nc_grants_exceed(struct nc_grants *grants, struct nc_subject *maker, size_t size, size_t *id);

/* Returns the unit orphaned first; false: there is none. */
bool nc_grants_orphan(struct nc_grants *grants, size_t *id);

/* Whether there is a record; *made: made by that subject. */
bool nc_grants_known(struct nc_grants *grants, size_t id, const struct nc_subject *subject,
		     bool *made);

/*
 * Returns the session of the member process that made the unit, and when it
 * attached; 0 for both if the owner made it, or if it is unknown.
 */
pid_t nc_grants_session(struct nc_grants *grants, size_t id, uint64_t *since);

/*
 * Whether a process, a member or not, may use the unit: if it, or a process of the
 * session that it leads, made the unit as a member, or if the unit is granted to
 * it.  started: from nc_identity_started(); a maker that attached before that was
 * another process with the same pid or session.
 */
bool nc_grants_admits(struct nc_grants *grants, size_t id, const struct nc_identity *who,
		      uint64_t started);

/*
 * Grants a unit to one more grantee; takes ownership of its pidfd.  Returns 0,
 * -ENOENT (no record), -ENOSPC, -ENOMEM, or -EDQUOT and -EMFILE as
 * nc_grants_room().
 */
int nc_grants_add(struct nc_grants *grants, size_t id, const struct nc_grantee *to);

/*
 * Revokes a grant: the next use is refused.  Returns 0, or -ENOENT (no record, or
 * no such grant).
 */
int nc_grants_revoke(struct nc_grants *grants, size_t id, const struct nc_grantee *from);

/*
 * Exports the unit to a subject that may use it.  own_fd: of a unit that is sealed
 * itself, otherwise -1.  Returns 0, -EACCES, -EMFILE, or -ENOSPC (too many
 * exports).
 */
int nc_grants_export(struct nc_grants *grants, size_t id, struct nc_subject *to, int own_fd,
		     struct nc_export_info *info);

/* Whether the subject may use the unit, according to its record; *exported: and has it already. */
bool nc_grants_may(struct nc_grants *grants, size_t id, const struct nc_subject *subject,
		   bool *exported);

/*
 * Ends all exports of a subject that did not receive its revocation map; the next
 * export sends a new map.
 */
void nc_grants_lose_map(struct nc_grants *grants, struct nc_subject *subject);

/* Ends the export in that slot: the subject no longer needs it.  Returns 0 or -EINVAL. */
int nc_grants_return(struct nc_grants *grants, struct nc_subject *from, uint32_t slot);

/* The unit no longer exists: ends its exports and removes the record. */
void nc_grants_drop(struct nc_grants *grants, size_t id);

/* Removes all records of units whose id has that member number. */
void nc_grants_drop_member(struct nc_grants *grants, unsigned number);

/*
 * Describes the grants of a unit, the newest first, from *cursor on (0: the first).  Returns
 * their number, at most count; sets *cursor to the next position, or to 0 at the end, and *total
 * to the number of all grants.  A unit without a record has none.
 */
unsigned nc_grants_describe(struct nc_grants *grants, size_t id, uint64_t *cursor,
			    struct NC_grant_info *infos, unsigned count, unsigned *total);

/*
 * Lists the lowest ids above cursor that the subject made or was granted, in order;
 * returns their number.
 */
unsigned nc_grants_list(struct nc_grants *grants, const struct nc_subject *subject, size_t cursor,
			size_t *ids, unsigned count);

#endif
