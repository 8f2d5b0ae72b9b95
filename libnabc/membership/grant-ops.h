/* SPDX-License-Identifier: MIT */
/*
 * grant-ops.h - grants a unit to others, from either end.
 *
 * A unit that a third process is to use must be sealed: a unit that is not is first copied
 * into a frozen segment, by the process that grants it.
 */
#ifndef NC_GRANT_OPS_H
#define NC_GRANT_OPS_H

#include "cache/index.h"

/*
 * Who is meant, by the kernel's word.  pin: a process gets its pidfd opened,
 * which is the caller's then.  0; -EINVAL; -ESRCH: no such process; -EBADF.
 */
int nc_grant_ops_grantee(enum NC_principal principal, unsigned who, bool pin,
			 struct nc_grantee *grantee);

/*
 * Leave for one more.  0; -ENOENT; -EACCES: not this process's to grant;
 * -ENOSPC; -EDQUOT; -ENOMEM; errors of memfd_create(2).  Takes grantee over.
 */
int nc_grant_ops_grant(struct nc_index *index, size_t id, struct nc_grantee *grantee);
int nc_grant_ops_revoke(struct nc_index *index, size_t id, const struct nc_grantee *grantee);

/*
 * Describes at most count grants of the unit in structures of stride bytes each.  Returns the
 * number of all; -ENOENT; -EACCES: not for this process to know; errors of asking.
 */
int nc_grant_ops_grants(struct nc_index *index, size_t id, void *grants, size_t stride,
			unsigned count);

/* Owner: the same for a member that may know; room: for the grants behind the reply.  0 or -errno. */
int nc_grant_ops_reply(struct nc_index *index, const struct nc_wire_call *call,
		       struct nc_wire_reply *reply, void *room);

/*
 * The process that principal and who name, for nc_identity_close(); who of
 * NC_PEER: a Unix socket.  0; -EINVAL: not the name of a process; -ESRCH;
 * -EBADF; errors of nc_identity_of_listener().
 */
int nc_grant_ops_identify(enum NC_principal principal, unsigned who, struct nc_identity *identity);

/*
 * Owner: whether a process may use a unit.  0; -EACCES: it may not; -ENOENT;
 * -EPERM: this process is not the owner, who alone knows.
 */
int nc_grant_ops_access(struct nc_index *index, size_t id, const struct nc_identity *who);

/* Owner: exports to a member, for whom a copy is made if it may ask for any unit. */
int nc_grant_ops_export(struct nc_index *index, size_t id, struct nc_subject *to,
			struct nc_export_info *info);

/* Bytes of a unit that is held, fewer at its end; -ERANGE: offset behind its end. */
ssize_t nc_grant_ops_read(const struct nc_unit *unit, void *data, size_t length, size_t offset);

/* Owner: what a member made sealed, or has leave for; as nc_inspect_list(). */
unsigned nc_grant_ops_list(struct nc_index *index, const struct nc_subject *subject, size_t *cursor,
			   struct NC_stat *units, unsigned count);

/*
 * All units that this process may use, wherever they are; as nc_inspect_list(),
 * or errors of asking.
 */
int nc_grant_ops_list_all(struct nc_index *index, size_t *cursor, struct NC_stat *units,
			  unsigned count);

#endif
