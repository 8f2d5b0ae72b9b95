/* SPDX-License-Identifier: MIT */
/*
 * grant-ops.h - grants a unit to other processes, called in the owner or in a
 * member.
 *
 * A unit that a third process uses must be sealed.  If it is not, the process that
 * grants it first copies it into a frozen segment.
 */
#ifndef NC_GRANT_OPS_H
#define NC_GRANT_OPS_H

#include <nabc.h>
#include <stdbool.h>
#include <sys/types.h>

struct nc_export_info;
struct nc_grantee;
struct nc_identity;
struct nc_index;
struct nc_subject;
struct nc_unit;
struct nc_wire_call;
struct nc_wire_reply;

/*
 * Resolves a principal to a grantee, with data from the kernel.  With pin, opens
 * the pidfd of a process; the caller must close it.  Returns 0, -EINVAL, -ESRCH (no
 * such process) or -EBADF.
 */
int nc_grant_ops_grantee(enum NC_principal principal, unsigned who, bool pin,
			 struct nc_grantee *grantee);

/*
 * Grants a unit to one more grantee; takes ownership of grantee.  Returns 0,
 * -ENOENT, -EACCES (this process may not grant the unit), -ENOSPC, -EDQUOT,
 * -ENOMEM, or errors of memfd_create(2).
 */
int nc_grant_ops_grant(struct nc_index *index, size_t id, struct nc_grantee *grantee);
int nc_grant_ops_revoke(struct nc_index *index, size_t id, const struct nc_grantee *grantee);

/*
 * Describes at most count grants of the unit in structures of stride bytes each.  Returns the
 * number of all grants, -ENOENT, -EACCES (this process may not know them), or errors of asking.
 */
int nc_grant_ops_grants(struct nc_index *index, size_t id, void *grants, size_t stride,
			unsigned count);

/*
 * Owner: replies the same to a member that may know; room: for the grants that follow the
 * reply.  Returns 0 or -errno.
 */
int nc_grant_ops_reply(struct nc_index *index, const struct nc_wire_call *call,
		       struct nc_wire_reply *reply, void *room);

/*
 * Finds the process that principal and who name; close it with nc_identity_close().
 * For NC_PEER, who is a Unix socket.  Returns 0, -EINVAL (they do not name a
 * process), -ESRCH, -EBADF, or errors of nc_identity_of_listener().
 */
int nc_grant_ops_identify(enum NC_principal principal, unsigned who, struct nc_identity *identity);

/*
 * Owner: checks whether a process may use a unit.  Returns 0, -EACCES (it may not),
 * -ENOENT, or -EPERM (this process is not the owner; only the owner knows).
 */
int nc_grant_ops_access(struct nc_index *index, size_t id, const struct nc_identity *who);

/*
 * Owner: exports a unit to a member.  Copies the unit if the member may use any
 * unit (an operator).
 */
int nc_grant_ops_export(struct nc_index *index, size_t id, struct nc_subject *to,
			struct nc_export_info *info);

/* Reads bytes of a held unit, fewer at its end.  Returns -ERANGE if offset is beyond the end. */
ssize_t nc_grant_ops_read(const struct nc_unit *unit, void *data, size_t length, size_t offset);

/* Owner: lists the sealed units that a member made or was granted; as nc_inspect_list(). */
unsigned nc_grant_ops_list(struct nc_index *index, const struct nc_subject *subject, size_t *cursor,
			   struct NC_stat *units, unsigned count);

/*
 * Lists all units that this process may use, of any process; as nc_inspect_list().
 * Also returns errors of the call to the owner.
 */
int nc_grant_ops_list_all(struct nc_index *index, size_t *cursor, struct NC_stat *units,
			  unsigned count);

#endif
