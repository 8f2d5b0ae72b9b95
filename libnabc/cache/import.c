/* SPDX-License-Identifier: MIT */
/*
 * import.c - sealed units in an attached process; see import.h.
 *
 * Calls to the owner are made without the lock, so that imported units can be used
 * meanwhile.  They are made one at a time: otherwise a slot being returned could be
 * one that another thread has just imported.
 */
#include <errno.h>
#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fragment.h"
#include "cache/import-internal.h"
#include "cache/import.h"
#include "os/segment.h"
#include "store/member.h"
#include "store/revocation-map.h"
#include "store/store.h"
#include "store/unit.h"
#include "wire/rpc-client.h"
#include "wire/wire.h"

static struct nc_import *import_of(struct nc_unit *unit)
{
	return (struct nc_import *)(void *)((char *)unit - offsetof(struct nc_import, unit));
}

void nc_imports_init(struct nc_imports *imports, struct nc_rpc_client *rpc)
{
	*imports = (struct nc_imports){.rpc = rpc};
	pthread_mutex_init(&imports->calls, NULL);
	pthread_mutex_init(&imports->lock, NULL);
	nc_hash_table_init(&imports->table);
}

/* --- in order of use ------------------------------------------------------ */

static void unlink_import(struct nc_imports *imports, struct nc_import *import)
{
	if (import->newer)
		import->newer->older = import->older;
	else
		imports->newest = import->older;
	if (import->older)
		import->older->newer = import->newer;
	else
		imports->oldest = import->newer;
}

static void link_newest(struct nc_imports *imports, struct nc_import *import)
{
	import->newer = NULL;
	import->older = imports->newest;
	if (imports->newest)
		imports->newest->newer = import;
	else
		imports->oldest = import;
	imports->newest = import;
}

/* --- one import -------------------------------------------------------------- */

void nc_import_free(struct nc_import *import)
{
	nc_unit_forget(&import->unit);
	if (import->unit.store)
		nc_store_close(import->unit.store);
	free(import);
}

static void enter_locked(struct nc_imports *imports, struct nc_import *import, size_t id,
			 uint32_t holds)
{
	atomic_store_explicit(&import->unit.word, nc_word(1, NC_UNIT_LIVE, holds),
			      memory_order_release);
	nc_hash_table_enter(&imports->table, &import->entry, id);
	link_newest(imports, import);
}

void nc_import_leave_locked(struct nc_imports *imports, struct nc_import *import)
{
	nc_hash_table_leave(&imports->table, &import->entry);
	unlink_import(imports, import);
}

static uint64_t shown(const struct nc_imports *imports, const struct nc_import *import)
{
	return nc_revocation_map_read(&imports->rpc->revocations, import->slot);
}

/*
 * Returns the slot to the owner.  If the call fails, only the owner loses a slot,
 * so the error is ignored.
 */
static void drop(struct nc_imports *imports, uint32_t slot)
{
	struct nc_wire_call call = {.op = NC_WIRE_DROP, .slot = slot};
	struct nc_rpc_client_load load = {0};
	struct nc_wire_reply reply;

	(void)nc_rpc_client_call(imports->rpc, &call, &load, &reply);
}

int nc_imports_call_to_keep(struct nc_imports *imports, size_t id, uint32_t what, uint64_t value)
{
	struct nc_wire_call call = {.op = NC_WIRE_KEEP, .id = id, .slot = what, .size = value};
	struct nc_rpc_client_load load = {0};
	struct nc_wire_reply reply;

	return nc_rpc_client_call(imports->rpc, &call, &load, &reply);
}

void nc_import_give_back(struct nc_imports *imports, struct nc_import *import)
{
	drop(imports, import->slot);
	nc_import_free(import);
}

void nc_imports_fini(struct nc_imports *imports)
{
	while (imports->newest) {
		struct nc_import *import = imports->newest;

		unlink_import(imports, import);
		nc_import_free(import);
	}
	nc_hash_table_fini(&imports->table);
	pthread_mutex_destroy(&imports->lock);
	pthread_mutex_destroy(&imports->calls);
}

/*
 * Removes one import that is not held and returns it: an invalid one, whose memory
 * only this process keeps, otherwise the least recently used if there are too many;
 * NULL: none.
 */
static struct nc_import *surplus_locked(struct nc_imports *imports)
{
	struct nc_import *surplus = NULL;

	for (struct nc_import *import = imports->oldest; import; import = import->newer) {
		bool stands = shown(imports, import) == import->entry.key;

		if (nc_import_holds(import) ||
		    (stands && (surplus || imports->table.count <= NC_IMPORTS_MAX)))
			continue;
		surplus = import;
		if (!stands)
			break;
	}
	if (surplus)
		nc_import_leave_locked(imports, surplus);
	return surplus;
}

/* --- made here -------------------------------------------------------------- */

static struct nc_import *new_import(const struct nc_layout *layout, struct nc_store *store)
{
	struct nc_import *import = calloc(1, sizeof(*import));

	if (!import)
		return NULL;
	import->unit.store = store;
	import->unit.layout = *layout;
	import->unit.next = import->unit.previous = NC_UNIT_NONE;
	atomic_init(&import->unit.word, nc_word(1, NC_UNIT_FILLING, 0));
	return import;
}

int nc_imports_alloc(struct nc_imports *imports, const struct nc_layout *layout,
		     struct nc_unit **unit)
{
	int error;
	struct nc_store *store =
		nc_store_create(NC_KIND_SEALED, layout->extent, false, true, &error);
	struct nc_import *import;

	if (!store)
		return error;
	import = new_import(layout, store);
	if (!import) {
		nc_store_close(store);
		return -ENOMEM;
	}
	pthread_mutex_lock(&imports->lock);
	imports->filling++;
	pthread_mutex_unlock(&imports->lock);
	*unit = &import->unit;
	return 0;
}

void nc_imports_abandon(struct nc_imports *imports, struct nc_unit *unit)
{
	pthread_mutex_lock(&imports->lock);
	imports->filling--;
	pthread_mutex_unlock(&imports->lock);
	nc_import_free(import_of(unit));
}

void nc_imports_trim(struct nc_unit *unit, size_t extent)
{
	struct nc_store *store = unit->store;

	if (!store->frozen && nc_store_shrink(store, extent) == 0)
		nc_store_trim(store, unit, extent);
}

int nc_imports_grow(struct nc_unit *unit, size_t extent)
{
	int error = nc_store_grow(unit->store, extent, false);

	return error ? error : nc_store_extend(unit->store, unit, extent);
}

/* Sets what the owner keeps of the unit that it has just got. */
static int set_kept(struct nc_imports *imports, size_t id, const struct nc_insertion *with)
{
	int error = 0;

	if (with && with->priority != NC_PRIORITY_NORMAL)
		error = nc_imports_call_to_keep(imports, id, NC_WIRE_PRIORITY,
						(unsigned)with->priority);
	if (!error && with && with->lifetime)
		error = nc_imports_call_to_keep(imports, id, NC_WIRE_LIFETIME, with->lifetime);
	/* It was evicted meanwhile, so the cache is full. */
	return error == -ENOENT || error == -EACCES ? -ENOMEM : error;
}

/* Undoes a SEAL.  If the calls fail, the owner does so when this process ends. */
static void withdraw(struct nc_imports *imports, const struct nc_wire_reply *sealed)
{
	struct nc_wire_call call = {.op = NC_WIRE_DESTROY, .id = sealed->id};
	struct nc_rpc_client_load load = {0};
	struct nc_wire_reply reply;

	(void)nc_rpc_client_call(imports->rpc, &call, &load, &reply);
	drop(imports, sealed->slot);
}

int nc_imports_insert(struct nc_imports *imports, struct nc_unit *unit,
		      const struct nc_insertion *with, size_t *id)
{
	struct nc_import *import = import_of(unit), *surplus;
	int fd = unit->store->segment.fd, error = 0;
	struct nc_wire_call call = {
		.op = NC_WIRE_SEAL, .size = unit->layout.size, .fraglen = unit->layout.fraglen};
	struct nc_rpc_client_load load = {.fds = &fd, .fd_count = 1};
	struct nc_wire_reply reply;

	/* It is already frozen at a second attempt. */
	if (!unit->store->frozen)
		error = nc_segment_freeze(&unit->store->segment);
	if (error)
		return error;
	unit->store->frozen = true;
	error = nc_rpc_client_call(imports->rpc, &call, &load, &reply);
	if (error)
		return error;
	if (reply.id == 0 || reply.slot >= NC_REVOCATION_MAP_SLOTS ||
	    !imports->rpc->revocations.base)
		return -EPROTO;
	error = set_kept(imports, reply.id, with);
	if (error) {
		withdraw(imports, &reply);
		return error;
	}
	import->slot = reply.slot;
	*id = reply.id;
	pthread_mutex_lock(&imports->calls);
	pthread_mutex_lock(&imports->lock);
	imports->filling--;
	imports->inserts++;
	enter_locked(imports, import, reply.id, with && with->hold);
	surplus = surplus_locked(imports);
	pthread_mutex_unlock(&imports->lock);
	if (surplus)
		nc_import_give_back(imports, surplus);
	pthread_mutex_unlock(&imports->calls);
	return 0;
}

/* --- used here --------------------------------------------------------------- */

/*
 * Makes an import of the received descriptor, or closes it; returns NULL and sets
 * *error on failure.
 */
static struct nc_import *adopt(const struct nc_wire_reply *reply, int fd, int *error)
{
	struct nc_segment segment;
	struct nc_layout layout;
	struct nc_store *store;
	struct nc_import *import;

	*error = -EPROTO;
	if (!nc_layout_init(&layout, reply->size, reply->fraglen))
		*error = nc_segment_adopt_frozen(&segment, fd, layout.extent);
	if (*error) {
		close(fd);
		return NULL;
	}
	store = nc_store_over_frozen(&segment, error);
	if (!store) {
		nc_segment_close(&segment);
		return NULL;
	}
	import = new_import(&layout, store);
	if (!import) {
		nc_store_close(store);
		*error = -ENOMEM;
		return NULL;
	}
	import->slot = reply->slot;
	return import;
}

/*
 * Makes an import of what came with a reply, which the table has not; returns NULL and sets
 * *error on failure.
 */
struct nc_import *nc_import_receive(struct nc_imports *imports, const struct nc_wire_reply *reply,
				    int fd, int *error)
{
	struct nc_import *import;

	*error = -EPROTO;
	if (fd < 0)
		return NULL;
	if (reply->slot >= NC_REVOCATION_MAP_SLOTS || !imports->rpc->revocations.base) {
		close(fd);
		return NULL;
	}
	import = adopt(reply, fd, error);
	/* The owner believes that the slot is in use. */
	if (!import)
		drop(imports, reply->slot);
	return import;
}

/* Imports the unit, without entering it in the table; returns NULL and sets *error on failure. */
static struct nc_import *fetch(struct nc_imports *imports, size_t id, int *error)
{
	struct nc_wire_call call = {.op = NC_WIRE_FETCH, .id = id};
	struct nc_rpc_client_load load = {0};
	struct nc_wire_reply reply;

	*error = nc_rpc_client_call(imports->rpc, &call, &load, &reply);
	return *error ? NULL : nc_import_receive(imports, &reply, load.fd, error);
}

/* With calls locked. */
void nc_import_enter_and_hold(struct nc_imports *imports, struct nc_import *import, size_t id,
			      struct nc_unit **unit)
{
	struct nc_import *surplus;

	pthread_mutex_lock(&imports->lock);
	enter_locked(imports, import, id, 1);
	*unit = &import->unit;
	surplus = surplus_locked(imports);
	pthread_mutex_unlock(&imports->lock);
	if (surplus)
		nc_import_give_back(imports, surplus);
}

/*
 * Returns 0 if held, -ENOENT, -EACCES, or -EAGAIN: not imported or no longer valid,
 * so call the owner.
 */
static int hold_known_locked(struct nc_imports *imports, size_t id, bool unlinked,
			     struct nc_unit **unit)
{
	struct nc_import *import = (struct nc_import *)nc_hash_table_find(&imports->table, id);
	uint64_t shows;

	if (!import)
		return -EAGAIN;
	shows = shown(imports, import);
	if (shows == id || (unlinked && nc_import_holds(import))) {
		unlink_import(imports, import);
		link_newest(imports, import);
		*unit = &import->unit;
		return nc_unit_hold(&import->unit, 1, false);
	}
	if (nc_import_holds(import) == 0)
		return -EAGAIN;
	/* It may be granted again later, but not before the old holds are released. */
	return shows == NC_REVOCATION_REVOKED ? -EACCES : -ENOENT;
}

/* With calls locked: removes an invalid import, fetches a unit that is not imported. */
int nc_import_fetch_and_hold(struct nc_imports *imports, size_t id, bool unlinked,
			     struct nc_unit **unit)
{
	struct nc_import *spent = NULL, *import;
	bool destroyed = false;
	int error;

	pthread_mutex_lock(&imports->lock);
	error = hold_known_locked(imports, id, unlinked, unit);
	if (error == -EAGAIN)
		spent = (struct nc_import *)nc_hash_table_find(&imports->table, id);
	if (spent) {
		destroyed = shown(imports, spent) != NC_REVOCATION_REVOKED;
		nc_import_leave_locked(imports, spent);
	}
	pthread_mutex_unlock(&imports->lock);
	if (spent)
		nc_import_give_back(imports, spent);
	if (error != -EAGAIN || destroyed)
		return destroyed ? -ENOENT : error;
	import = fetch(imports, id, &error);
	if (!import)
		return error;
	nc_import_enter_and_hold(imports, import, id, unit);
	return 0;
}

int nc_imports_hold(struct nc_imports *imports, size_t id, bool unlinked, struct nc_unit **unit)
{
	int error;

	pthread_mutex_lock(&imports->lock);
	error = hold_known_locked(imports, id, unlinked, unit);
	pthread_mutex_unlock(&imports->lock);
	if (error == -EAGAIN) {
		pthread_mutex_lock(&imports->calls);
		error = nc_import_fetch_and_hold(imports, id, unlinked, unit);
		pthread_mutex_unlock(&imports->calls);
	}
	return error;
}

int nc_imports_hold_known(struct nc_imports *imports, size_t id, struct nc_unit **unit)
{
	int error;

	pthread_mutex_lock(&imports->lock);
	error = hold_known_locked(imports, id, false, unit);
	pthread_mutex_unlock(&imports->lock);
	return error;
}

int nc_imports_release(struct nc_imports *imports, size_t id)
{
	struct nc_import *import;
	int error = -EINVAL;

	pthread_mutex_lock(&imports->lock);
	import = (struct nc_import *)nc_hash_table_find(&imports->table, id);
	if (import)
		error = nc_unit_release(&import->unit, 1);
	pthread_mutex_unlock(&imports->lock);
	return error < 0 ? error : 0;
}
