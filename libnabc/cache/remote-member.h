/* SPDX-License-Identifier: MIT */
/*
 * remote-member.h - another process's units, as the owner of the cache sees them.
 *
 * The owner maps the member's segment and trusts nothing in it: an entry of the shared
 * table is copied and checked when it is first held, and the copy is used until the last
 * hold is released.  A structure of this kind stays in memory as long as the cache, so a
 * stale id finds it and is refused.
 */
#ifndef NC_REMOTE_MEMBER_H
#define NC_REMOTE_MEMBER_H

#include <pthread.h>
#include <sys/types.h>

#include "store/store.h"

struct nc_remote_member {
	unsigned number;
	pthread_mutex_t lock;	/* all below */
	struct nc_units units;	/* word, and while held the checked copy */
	struct nc_store *store; /* NULL: nobody has this number */
	uint32_t slots;
	uint32_t generation; /* first of the present member, above all earlier ones */
	int64_t admitted;    /* when the present member came: milliseconds */
	uint32_t held;	     /* units with holds */
	bool alive;
	struct nc_device *device; /* where its units may lie, too; NULL: not in use */
	pid_t pid;		  /* the process that made them; 0: not known */
	int pidfd;		  /* somebody else's; -1: none */
	size_t copied;		  /* bytes of private copies of them */
};

/* A new structure for a number; NULL when memory ends. */
struct nc_remote_member *nc_remote_member_create(unsigned number);
void nc_remote_member_free(struct nc_remote_member *remote);

/* Whether a new member may have this number. */
bool nc_remote_member_vacant(struct nc_remote_member *remote);

/*
 * A new member: creates its segment of size bytes with room for a table of
 * slots.  0 or -errno.  *first: where units begin.
 */
int nc_remote_member_admit(struct nc_remote_member *remote, size_t size, uint32_t slots,
			   size_t *first);

/*
 * Who it is: units in the kernel module are its own only if that process made
 * them.  The table says so too.  The pidfd stays the caller's, who says 0 and
 * -1 before it is closed.
 */
void nc_remote_member_identify(struct nc_remote_member *remote, struct nc_device *device, pid_t pid,
			       int pidfd);

/* The member is gone: nothing more can be named, memory goes with the last hold. */
void nc_remote_member_detach(struct nc_remote_member *remote);

/*
 * Holds (slot, generation); *unit is the checked copy, good until released.
 * 0; -ENOENT: no such unit (any more); -EPROTO: its description is a lie.
 */
int nc_remote_member_hold(struct nc_remote_member *remote, uint32_t slot, unsigned generation,
			  bool unlinked, struct nc_unit **unit);
/* As nc_member_fetch(); of one member's units no more than its segment has. */
int nc_remote_member_fetch(struct nc_remote_member *remote, struct nc_unit *unit);
int nc_remote_member_release(struct nc_remote_member *remote, uint32_t slot, unsigned generation);

/*
 * The next unit that can be named, from *slot on, as the member describes it
 * now; false: there is none.
 */
bool nc_remote_member_next(struct nc_remote_member *remote, uint32_t *slot, unsigned *generation,
			   struct nc_unit_told *told);

/* Gives the unit back to the member, at once or with the last hold. */
int nc_remote_member_destroy(struct nc_remote_member *remote, uint32_t slot, unsigned generation);

#endif
