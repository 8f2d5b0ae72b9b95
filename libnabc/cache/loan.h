/* SPDX-License-Identifier: MIT */
/*
 * loan.h - sealed units in a process that joined: those that it made, and
 * those of others that it was granted.
 *
 * Both are named by ids that the owner gave.  A unit is fetched once and then
 * mapped here, readable only; before each use the revocation map says whether it still
 * stands.  Locked inside.
 */
#ifndef NC_LOAN_H
#define NC_LOAN_H

#include "base/hash-table.h"
#include "store/store.h"
#include "wire/rpc-client.h"

#define NC_LOANS_MAX 256u /* idle ones beyond are given back, and all that stand no more */

struct nc_loan;

struct nc_loans {
	struct nc_rpc_client *rpc;
	pthread_mutex_t errands;	 /* fetching and giving back; taken before lock */
	pthread_mutex_t lock;		 /* all below */
	struct nc_hash_table table;	 /* by id */
	struct nc_loan *oldest, *newest; /* in order of use */
	unsigned filling;		 /* allocated, not inserted */
	uint64_t inserts;
};

void nc_loans_init(struct nc_loans *loans, struct nc_rpc_client *rpc);
void nc_loans_fini(struct nc_loans *loans);

/* A sealed unit to be filled, the caller's until inserted or abandoned.  0 or -errno. */
int nc_loans_alloc(struct nc_loans *loans, const struct nc_layout *layout, struct nc_unit **unit);
void nc_loans_abandon(struct nc_loans *loans, struct nc_unit *unit);

/* Freezes it and hands it over; on failure it is as before, but frozen.  0 or -errno. */
int nc_loans_insert(struct nc_loans *loans, struct nc_unit *unit, size_t *id);

/*
 * Holds a unit, fetching it if need be; may wait for the owner.  0; -ENOENT:
 * destroyed; -EACCES: no leave, or no such unit.
 */
int nc_loans_hold(struct nc_loans *loans, size_t id, bool unlinked, struct nc_unit **unit);

/* 0; -EINVAL: not held. */
int nc_loans_release(struct nc_loans *loans, size_t id);

#endif
