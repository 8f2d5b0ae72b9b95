/* SPDX-License-Identifier: MIT */
/*
 * import.h - sealed units in an attached process: those that it made, and those of others
 * that it was granted.
 *
 * Both are named by ids that the owner gave.  A unit is fetched once and then mapped here,
 * read-only; before each use the revocation map says whether it is still valid.  Locked
 * inside.
 */
#ifndef NC_IMPORT_H
#define NC_IMPORT_H

#include "base/hash-table.h"
#include "store/store.h"
#include "wire/rpc-client.h"

#define NC_IMPORTS_MAX 256u /* idle ones beyond are given back, and all that stand no more */

struct nc_import;

struct nc_imports {
	struct nc_rpc_client *rpc;
	pthread_mutex_t calls;		   /* fetching and giving back; taken before lock */
	pthread_mutex_t lock;		   /* all below */
	struct nc_hash_table table;	   /* by id */
	struct nc_import *oldest, *newest; /* in order of use */
	unsigned filling;		   /* allocated, not inserted */
	uint64_t inserts;
};

void nc_imports_init(struct nc_imports *imports, struct nc_rpc_client *rpc);
void nc_imports_fini(struct nc_imports *imports);

/* A sealed unit to be filled, the caller's until inserted or abandoned.  0 or -errno. */
int nc_imports_alloc(struct nc_imports *imports, const struct nc_layout *layout,
		     struct nc_unit **unit);
void nc_imports_abandon(struct nc_imports *imports, struct nc_unit *unit);

/* Freezes it and hands it over; on failure it is as before, but frozen.  0 or -errno. */
int nc_imports_insert(struct nc_imports *imports, struct nc_unit *unit, size_t *id);

/*
 * Holds a unit, fetching it if need be; may wait for the owner.  0; -ENOENT:
 * destroyed; -EACCES: no leave, or no such unit.
 */
int nc_imports_hold(struct nc_imports *imports, size_t id, bool unlinked, struct nc_unit **unit);

/* The same of a unit that is here; -EAGAIN: it is not, or stands no more. */
int nc_imports_hold_known(struct nc_imports *imports, size_t id, struct nc_unit **unit);

/* 0; -EINVAL: not held. */
int nc_imports_release(struct nc_imports *imports, size_t id);

#endif
