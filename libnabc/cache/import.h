/* SPDX-License-Identifier: MIT */
/*
 * import.h - sealed units in an attached process: those that it made, and those of
 * others that were granted to it.
 *
 * The owner assigns the ids of both.  A unit is fetched once and then mapped here,
 * read-only; before each use, the revocation map tells whether it is still valid.
 * Takes the locks it needs.
 */
#ifndef NC_IMPORT_H
#define NC_IMPORT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash-table.h"

#define NC_IMPORTS_MAX 256u /* more idle imports than this are returned, and all invalid ones */

struct nc_import;
struct nc_insertion;
struct nc_layout;
struct nc_rpc_client;
struct nc_unit;

struct nc_imports {
	struct nc_rpc_client *rpc;
	/* serialises fetching and returning; taken before lock */
	pthread_mutex_t calls;
	pthread_mutex_t lock;		   /* protects all below */
	struct nc_hash_table table;	   /* by id */
	struct nc_import *oldest, *newest; /* in order of use */
	unsigned filling;		   /* allocated, not inserted */
	uint64_t inserts;
};

void nc_imports_init(struct nc_imports *imports, struct nc_rpc_client *rpc);
void nc_imports_fini(struct nc_imports *imports);

/*
 * Allocates a sealed unit; the caller owns it until it is inserted or abandoned.
 * Returns 0 or -errno.
 */
int nc_imports_alloc(struct nc_imports *imports, const struct nc_layout *layout,
		     struct nc_unit **unit);
void nc_imports_abandon(struct nc_imports *imports, struct nc_unit *unit);

/* As nc_member_trim(). */
void nc_imports_trim(struct nc_unit *unit, size_t extent);

/* As nc_member_grow(). */
int nc_imports_grow(struct nc_unit *unit, size_t extent);

/*
 * Freezes the unit and passes it to the owner; on failure the caller still owns it,
 * frozen, and the owner of the cache does not have it.  The priority and the lifetime are
 * set by further calls: -ENOMEM if the owner has evicted the unit before.  with: may be NULL.
 * Returns 0 or -errno.
 */
int nc_imports_insert(struct nc_imports *imports, struct nc_unit *unit,
		      const struct nc_insertion *with, size_t *id);

/* Sets what the owner keeps of a unit, NC_WIRE_PRIORITY or NC_WIRE_LIFETIME. */
int nc_imports_call_to_keep(struct nc_imports *imports, size_t id, uint32_t what, uint64_t value);

/*
 * Holds a unit and fetches it if necessary, which may wait for the owner.  Returns
 * 0, -ENOENT (destroyed), or -EACCES (not granted, or no such unit).
 */
int nc_imports_hold(struct nc_imports *imports, size_t id, bool unlinked, struct nc_unit **unit);

/* Holds a unit that is here already.  Returns 0, or -EAGAIN: it is not, or is not valid any more. */
int nc_imports_hold_known(struct nc_imports *imports, size_t id, struct nc_unit **unit);

/*
 * Asks the owner for the unit of a name, and holds it.  own: this process's number; if *id has it,
 * *unit is NULL, and the unit is this process's own.  Returns 0, -ESTALE (the unit has ended
 * since the owner's reply), or errors of the call.
 */
int nc_imports_hold_name(struct nc_imports *imports, const char *name, unsigned own, size_t *id,
			 struct nc_unit **unit);

/* Returns 0, or -EINVAL (not held). */
int nc_imports_release(struct nc_imports *imports, size_t id);

#endif
