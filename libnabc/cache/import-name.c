/* SPDX-License-Identifier: MIT */
/*
 * import-name.c - holds the unit of a name in an attached process: the owner's reply is the unit
 * that has the name at that moment; see import.h.
 */
#include <errno.h>
#include <nabc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/hash-table.h"
#include "base/id.h"
#include "cache/import-internal.h"
#include "cache/import.h"
#include "wire/rpc-client.h"
#include "wire/wire.h"

/* Frees an import of a unit of which there is another, perhaps in the same slot. */
static void free_twin(struct nc_imports *imports, struct nc_import *import, uint32_t slot)
{
	if (import->slot == slot)
		nc_import_free(import);
	else
		nc_import_give_back(imports, import);
}

/* With calls locked: holds the unit that came with a reply, or that is here already. */
static int hold_received(struct nc_imports *imports, const struct nc_wire_reply *reply, int fd,
			 struct nc_unit **unit)
{
	struct nc_import *import, *known;
	bool held;
	int error;

	if (fd < 0)
		return nc_import_fetch_and_hold(imports, reply->id, false, unit);
	import = nc_import_receive(imports, reply, fd, &error);
	if (!import)
		return error;
	pthread_mutex_lock(&imports->lock);
	known = (struct nc_import *)nc_hash_table_find(&imports->table, reply->id);
	held = known && nc_import_holds(known);
	if (known && !held)
		nc_import_leave_locked(imports, known);
	pthread_mutex_unlock(&imports->lock);
	if (held) {
		free_twin(imports, import, known->slot);
		return nc_import_fetch_and_hold(imports, reply->id, false, unit);
	}
	if (known)
		free_twin(imports, known, import->slot);
	nc_import_enter_and_hold(imports, import, reply->id, unit);
	return 0;
}

int nc_imports_hold_name(struct nc_imports *imports, const char *name, unsigned own, size_t *id,
			 struct nc_unit **unit)
{
	struct nc_wire_call call = {.op = NC_WIRE_NAME_HOLD, .length = (uint32_t)strlen(name)};
	struct nc_rpc_client_load load = {.bytes = name};
	struct nc_wire_reply reply;
	int error;

	*id = 0;
	*unit = NULL;
	pthread_mutex_lock(&imports->calls);
	error = nc_rpc_client_call(imports->rpc, &call, &load, &reply);
	if (!error)
		*id = reply.id;
	if (!error && (load.fd >= 0 || nc_id_member(reply.id) != own))
		error = hold_received(imports, &reply, load.fd, unit);
	/* The owner's own errors are final. */
	if (*id && (error == -ENOENT || error == -EACCES))
		error = -ESTALE;
	pthread_mutex_unlock(&imports->calls);
	return error;
}
