/* SPDX-License-Identifier: MIT */
/*
 * remote-member.h - another process's units, as the owner of the cache sees them.
 *
 * The owner maps the member's segment and trusts nothing in it: it copies and
 * checks an entry of the shared table when the unit is first held, and uses the
 * copy until the last hold is released.  A structure of this kind remains in memory
 * as long as the cache, so that a stale id finds it and is refused.
 */
#ifndef NC_REMOTE_MEMBER_H
#define NC_REMOTE_MEMBER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/unit.h"

struct nc_device;

struct nc_remote_member {
	unsigned number;
	pthread_mutex_t lock;	/* protects all below */
	struct nc_units units;	/* the word, and while held the checked copy */
	struct nc_store *store; /* NULL: the number is unused */
	uint32_t slots;
	uint32_t generation; /* first one of the present member, above all earlier ones */
	int64_t admitted;    /* when the present member was admitted: milliseconds */
	uint32_t held;	     /* units with holds */
	bool alive;
	struct nc_device *device; /* the device that may contain its units; NULL: not used */
	pid_t pid;		  /* the process that makes them; 0: unknown */
	int pidfd;		  /* not owned; -1: none */
	size_t copied;		  /* bytes of private copies of them */
	struct nc_pin *pin;	  /* locks its memory, as this process maps it; NULL: not locked */
};

/* Returns a new structure for a number, as ids have it; NULL: out of memory. */
struct nc_remote_member *nc_remote_member_create(unsigned number, uint32_t generation);
void nc_remote_member_free(struct nc_remote_member *remote);

/* Whether a new member may have this number. */
bool nc_remote_member_vacant(struct nc_remote_member *remote);

/*
 * Admits a new member: creates its segment of size bytes with a table of that many
 * slots.  Returns 0 or -errno.  *first: where units begin.
 */
int nc_remote_member_admit(struct nc_remote_member *remote, size_t size, uint32_t slots,
			   size_t *first);

/*
 * Sets the member's process: units in the kernel module are its own only if that
 * process made them.  Also writes the pid to the table.  The caller keeps the
 * pidfd, and must pass 0 and -1 before closing it.
 */
void nc_remote_member_identify(struct nc_remote_member *remote, struct nc_device *device, pid_t pid,
			       int pidfd);

/* The member is gone: its units can no longer be looked up; memory is freed with the last hold. */
void nc_remote_member_detach(struct nc_remote_member *remote);

/*
 * Holds (slot, generation); *unit is the checked copy, valid until released.
 * Returns 0, -ENOENT (no such unit), or -EPROTO (its description is false).
 */
int nc_remote_member_hold(struct nc_remote_member *remote, uint32_t slot, unsigned generation,
			  bool unlinked, struct nc_unit **unit);
/* As nc_member_fetch(); limits the copies of one member's units to the size of its segment. */
int nc_remote_member_fetch(struct nc_remote_member *remote, struct nc_unit *unit);
int nc_remote_member_release(struct nc_remote_member *remote, uint32_t slot, unsigned generation);

/*
 * Finds the next unit that can be looked up, from *slot on, as the member describes
 * it now; false: none.
 */
bool nc_remote_member_next(struct nc_remote_member *remote, uint32_t *slot, unsigned *generation,
			   struct nc_unit_description *description);

/* Returns the unit to the member, at once or with the last hold. */
int nc_remote_member_destroy(struct nc_remote_member *remote, uint32_t slot, unsigned generation);

#endif
