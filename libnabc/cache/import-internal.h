/* SPDX-License-Identifier: MIT */
/* import-internal.h - shared by the parts of import.h, for import*.c only. */
#ifndef NC_IMPORT_INTERNAL_H
#define NC_IMPORT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash-table.h"
#include "cache/import.h"
#include "store/unit.h"

struct nc_wire_reply;

struct nc_import {
	struct nc_hash_entry entry; /* must be first; key: the id */
	struct nc_unit unit;	    /* word: LIVE and holds, generation 1 */
	uint32_t slot;		    /* of the revocation map */
	struct nc_import *newer, *older;
};

static inline uint32_t nc_import_holds(const struct nc_import *import)
{
	return nc_word_holds(nc_unit_word(&import->unit));
}

void nc_import_free(struct nc_import *import);

/* Returns its slot to the owner, and frees it.  Calls are locked, here and below. */
void nc_import_give_back(struct nc_imports *imports, struct nc_import *import);

/* Takes it out of the table; imports->lock is locked. */
void nc_import_leave_locked(struct nc_imports *imports, struct nc_import *import);

/*
 * Makes an import of what came with a reply, which the table has not; returns NULL and sets
 * *error on failure.  Takes ownership of fd.
 */
struct nc_import *nc_import_receive(struct nc_imports *imports, const struct nc_wire_reply *reply,
				    int fd, int *error);

/* Enters an import of which there is no other in the table. */
void nc_import_enter_and_hold(struct nc_imports *imports, struct nc_import *import, size_t id,
			      struct nc_unit **unit);

/* Removes an invalid import, fetches a unit that is not imported; as nc_imports_hold(). */
int nc_import_fetch_and_hold(struct nc_imports *imports, size_t id, bool unlinked,
			     struct nc_unit **unit);

#endif
