/* SPDX-License-Identifier: MIT */
/*
 * grant.h - who may use which unit: the owner's book.
 *
 * A record stands for a unit that more than its maker may use, or that a
 * member made sealed.  It says who made it, who has leave, to whom it is exported,
 * and holds the frozen copy that is handed out if the unit itself is not
 * sealed.  Descriptors, not promises, are what keeps others out (invariant 2).
 *
 * Locked inside; may be called under a member's lock, and calls nobody.
 */
#ifndef NC_GRANT_H
#define NC_GRANT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <nabc.h>

#include "base/hash-table.h"
#include "os/identity.h"
#include "store/revocation-map.h"

#define NC_LEAVES_MAX 1024u

struct nc_export;

/* A member as one who makes, is granted and imports units. */
struct nc_subject {
	struct nc_identity who;
	unsigned number; /* its member number, or 0 */
	bool operates;	 /* looks after the whole cache */
	size_t quota;	 /* bytes of what it may have sealed */
	size_t sealed;
	unsigned descriptors; /* of the owner's, that what it made costs */
	struct nc_revocation_map revocations;
	struct nc_export **exports; /* by slot of the revocation map */
	struct nc_subject *next;
};

/* To whom a grant is made. */
struct nc_grantee {
	enum NC_principal principal; /* NC_PROCESS, NC_USER or NC_GROUP */
	unsigned who;
	int pidfd; /* of a process; else -1 */
};

/* What is handed over with an export. */
struct nc_export_info {
	int fd; /* a duplicate: the caller's */
	size_t size;
	size_t fraglen;
	uint32_t slot;
};

struct nc_grants {
	pthread_mutex_t lock;
	struct nc_hash_table records;
	struct nc_subject *subjects;
	size_t quota; /* bytes of the copies that the owner may have made */
	size_t copied;
	unsigned copies, copies_max; /* of them, with a descriptor each */
	unsigned descriptors;	     /* that members' units and leaves cost */
	uint64_t given;		     /* grants, so far */
	uint64_t orphaned;	     /* units whose maker has gone, so far */
	_Atomic size_t count;	     /* of records: look before locking */
};

void nc_grants_init(struct nc_grants *grants, size_t quota);
void nc_grants_fini(struct nc_grants *grants);

/* Takes *who over: its pidfd is the book's now. */
void nc_grants_join(struct nc_grants *grants, struct nc_subject *subject);

/* What is learned of it later: its number, and who it is, which is its own from then on. */
void nc_grants_number(struct nc_grants *grants, struct nc_subject *subject, unsigned number);
void nc_grants_identify(struct nc_grants *grants, struct nc_subject *subject,
			const struct nc_identity *who);

/*
 * The subject is gone: its exports end.  orphan() is told, without the lock, of
 * every unit that it made sealed and that stands on without it.
 */
void nc_grants_part(struct nc_grants *grants, struct nc_subject *subject,
		    void (*orphan)(void *context, size_t id), void *context);

/*
 * A record for a unit that has none; maker NULL: the owner.  copy (NULL: the
 * unit is sealed itself) is the record's from then on, charged to the maker.
 * 0; -EEXIST; -EDQUOT: over the maker's quota, or the owner's; -ENOMEM.  On
 * failure copy stays the caller's.  -EDQUOT and -EMFILE are also of
 * descriptors; see room.
 */
int nc_grants_enter(struct nc_grants *grants, size_t id, struct nc_subject *maker,
		    const struct nc_segment *copy, size_t size, size_t fraglen);

/*
 * Whether a maker may have that much more sealed.  0; -EDQUOT: no; -EMFILE:
 * members together may have no more of the owner's descriptors, of which every
 * unit that they made and every process to whom they granted one costs one:
 * half of all, and each of them a quarter of that.
 */
int nc_grants_room(struct nc_grants *grants, const struct nc_subject *maker, size_t size);

/* The unit of whose makers that have gone was orphaned first; false: there is none. */
bool nc_grants_orphan(struct nc_grants *grants, size_t *id);

/* Whether there is a record; *made: by that subject. */
bool nc_grants_known(struct nc_grants *grants, size_t id, const struct nc_subject *subject,
		     bool *made);

/*
 * The session of the process that made it, as a member, and when that attached;
 * 0, both: the owner did, or nobody knows.
 */
pid_t nc_grants_session(struct nc_grants *grants, size_t id, uint64_t *since);

/*
 * Whether a process, a member or not, may use the unit: it, or a process of the
 * session that it leads, made it as a member, or it has leave.  started: as
 * nc_identity_started() says; a maker that attached before that was another
 * process, which had the same number or session.
 */
bool nc_grants_admits(struct nc_grants *grants, size_t id, const struct nc_identity *who,
		      uint64_t started);

/*
 * Leave for one more; takes pidfd over.  0; -ENOENT: no record; -ENOSPC;
 * -EDQUOT, -EMFILE: see room; -ENOMEM.
 */
int nc_grants_give(struct nc_grants *grants, size_t id, const struct nc_grantee *to);

/*
 * Takes leave away: at the next use it is refused.  0; -ENOENT: no record, or
 * no such leave.
 */
int nc_grants_take(struct nc_grants *grants, size_t id, const struct nc_grantee *from);

/*
 * Exports the unit to one who has leave.  own_fd: of a unit that is sealed
 * itself, else -1.  0; -EACCES; -EMFILE; -ENOSPC: too many exports.
 */
int nc_grants_export(struct nc_grants *grants, size_t id, struct nc_subject *to, int own_fd,
		     struct nc_export_info *info);

/* The subject never got its revocation map: its exports end, and the next one brings another. */
void nc_grants_lose_map(struct nc_grants *grants, struct nc_subject *subject);

/* The subject needs what the slot shows no more.  0 or -EINVAL. */
int nc_grants_return(struct nc_grants *grants, struct nc_subject *from, uint32_t slot);

/* The unit is no more: exports end, the record goes. */
void nc_grants_drop(struct nc_grants *grants, size_t id);

/* Drops all records of units whose id has that member number. */
void nc_grants_drop_member(struct nc_grants *grants, unsigned number);

/*
 * Describes the grants of a unit, the newest first, from *cursor on (0: the first).  Returns
 * their number, at most count; sets *cursor to where to go on, or to 0 at the end, and *total
 * to the number of all.  Of a unit without a record: none.
 */
unsigned nc_grants_leaves(struct nc_grants *grants, size_t id, uint64_t *cursor,
			  struct NC_grant_info *infos, unsigned count, unsigned *total);

/*
 * The lowest ids above *cursor that the subject made or has leave for, in
 * order; their number.
 */
unsigned nc_grants_list(struct nc_grants *grants, const struct nc_subject *subject, size_t cursor,
			size_t *ids, unsigned count);

#endif
