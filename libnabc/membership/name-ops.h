/* SPDX-License-Identifier: MIT */
/*
 * name-ops.h - gives names to units, called in the owner or in a member.
 *
 * A name gives no access: who holds a unit by its name must be permitted to use the unit.  So who
 * sets names decides only which of these units others get: the owner, operators, and members that
 * could be operators, as the kernel's credentials say (struct nc_subject).
 */
#ifndef NC_NAME_OPS_H
#define NC_NAME_OPS_H

#include <stddef.h>

struct nc_export_info;
struct nc_index;
struct nc_subject;
struct nc_wire_call;

/* See NC_name_set() and NC_name_remove(). */
int nc_name_ops_set(struct nc_index *index, const char *name, size_t id, unsigned flags);
int nc_name_ops_remove(struct nc_index *index, const char *name, size_t id);

/*
 * Owner: executes NC_WIRE_NAME_SET or _REMOVE for a member; the name follows the call.  Returns
 * 0, -EPERM (the member may not set names), -EACCES (nor use that unit), or as above.
 */
int nc_name_ops_reply(struct nc_index *index, const struct nc_subject *caller,
		      const struct nc_wire_call *call, const void *payload);

/*
 * Owner: exports the unit of the name that follows the call.  info->fd is -1 if the caller has
 * the unit already, or if the unit is in its own segment.  Returns 0, -ENOENT (the name is free, or
 * the caller may not use the unit), -EINVAL, or errors of nc_grants_export().
 */
int nc_name_ops_export(struct nc_index *index, struct nc_subject *to,
		       const struct nc_wire_call *call, const void *payload, size_t *id,
		       struct nc_export_info *info);

#endif
