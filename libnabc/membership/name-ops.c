/* SPDX-License-Identifier: MIT */
/*
 * name-ops.c - names of units: the owner's directory; in a member, by calls to the owner; see
 * name-ops.h.
 */
#include <errno.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/id.h"
#include "cache/grant.h"
#include "cache/index.h"
#include "cache/names.h"
#include "membership/grant-ops.h"
#include "membership/name-ops.h"
#include "wire/rpc-client.h"
#include "wire/wire.h"

/* --- the owner's end -------------------------------------------------------- */

static int owner_set(struct nc_index *index, const char *name, size_t id, unsigned flags)
{
	if (flags & ~NC_NAME_NEW)
		return -EINVAL;
	if (!nc_index_has(index, id))
		return -ENOENT;
	return nc_names_set(&index->names, name, id, flags & NC_NAME_NEW);
}

/* Copies the name that followed a call: it must be a string. */
static int take_name(const struct nc_wire_call *call, const void *payload,
		     char name[NC_NAME_MAX + 1])
{
	if (call->length == 0 || call->length > NC_NAME_MAX)
		return -EINVAL;
	memcpy(name, payload, call->length);
	name[call->length] = '\0';
	return strlen(name) == call->length ? 0 : -EINVAL;
}

/* Whether the unit, if there is one, is in the caller's own segment. */
static bool is_own(const struct nc_subject *caller, size_t id)
{
	return caller->number && nc_id_member(id) == caller->number;
}

static bool may_use(struct nc_index *index, const struct nc_subject *caller, size_t id)
{
	bool exported;

	return caller->operates || is_own(caller, id) ||
	       nc_grants_may(&index->grants, id, caller, &exported);
}

int nc_name_ops_reply(struct nc_index *index, const struct nc_subject *caller,
		      const struct nc_wire_call *call, const void *payload)
{
	char name[NC_NAME_MAX + 1];
	int error;

	if (!caller->operates && !caller->names)
		return -EPERM;
	error = take_name(call, payload, name);
	if (error)
		return error;
	if (call->op == NC_WIRE_NAME_REMOVE)
		return nc_names_remove(&index->names, name, call->id);
	/* A member must not learn which units exist. */
	if (!may_use(index, caller, call->id))
		return -EACCES;
	return owner_set(index, name, call->id, call->who);
}

/* -EACCES: the caller may not use it, or it has ended. */
static int export_one(struct nc_index *index, struct nc_subject *to, size_t id,
		      struct nc_export_info *info)
{
	bool exported;

	*info = (struct nc_export_info){.fd = -1};
	if (is_own(to, id))
		return nc_index_has(index, id) ? 0 : -EACCES;
	if (nc_grants_may(&index->grants, id, to, &exported) && exported && nc_index_has(index, id))
		return 0;
	return nc_grant_ops_export(index, id, to, info);
}

int nc_name_ops_export(struct nc_index *index, struct nc_subject *to,
		       const struct nc_wire_call *call, const void *payload, size_t *id,
		       struct nc_export_info *info)
{
	char name[NC_NAME_MAX + 1];
	size_t before = 0;
	int error = take_name(call, payload, name);

	if (error)
		return error;
	/* Another thread may have given the name to a successor of a unit that has ended. */
	while (nc_names_find(&index->names, name, id) == 0 && *id != before) {
		error = export_one(index, to, *id, info);
		if (error != -EACCES && error != -ENOENT)
			return error;
		before = *id;
	}
	return -ENOENT;
}

/* --- both --------------------------------------------------------------------- */

static int call_with_name(struct nc_index *index, struct nc_wire_call *call, const char *name)
{
	struct nc_rpc_client_load load = {.bytes = name};
	struct nc_wire_reply reply;

	call->length = (uint32_t)strlen(name);
	return nc_rpc_client_call(&index->rpc, call, &load, &reply);
}

int nc_name_ops_set(struct nc_index *index, const char *name, size_t id, unsigned flags)
{
	struct nc_wire_call call = {.op = NC_WIRE_NAME_SET, .id = id, .who = flags};

	return index->owner ? owner_set(index, name, id, flags)
			    : call_with_name(index, &call, name);
}

int nc_name_ops_remove(struct nc_index *index, const char *name, size_t id)
{
	struct nc_wire_call call = {.op = NC_WIRE_NAME_REMOVE, .id = id};

	return index->owner ? nc_names_remove(&index->names, name, id)
			    : call_with_name(index, &call, name);
}
