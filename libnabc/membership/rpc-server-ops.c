/* SPDX-License-Identifier: MIT */
/*
 * rpc-server-ops.c - what each call of a member does in the owner: a function for
 * each operation, and the switch between them; see rpc-server-internal.h.
 */
#include <errno.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/fragment.h"
#include "base/id.h"
#include "base/versioned.h"
#include "cache/grant.h"
#include "cache/index.h"
#include "cache/inspect.h"
#include "membership/grant-ops.h"
#include "membership/name-ops.h"
#include "membership/rpc-server-internal.h"
#include "membership/rpc-server.h"
#include "os/segment.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/revocation-map.h"
#include "store/unit.h"
#include "wire/wire.h"

#define LIST_MAX 128u /* units in one reply */

/* The callee owns the descriptor now. */
static int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* How many units are looked at to evict some for a new one; and as many again, in grace or not. */
#define SHARE_TRIES 32u

static void reply_with(struct nc_rpc_call *rpc, size_t id, const struct nc_export_info *info)
{
	rpc->fd = info->fd;
	rpc->reply->id = id;
	rpc->reply->size = info->size;
	rpc->reply->fraglen = info->fraglen;
	rpc->reply->slot = info->slot;
}

static int export_unit(struct nc_rpc_call *rpc, size_t id)
{
	struct nc_export_info info;
	int error = nc_grant_ops_export(rpc->index, id, rpc->caller, &info);

	if (!error)
		reply_with(rpc, id, &info);
	return error;
}

static int export_named(struct nc_rpc_call *rpc)
{
	struct nc_export_info info;
	size_t id;
	int error =
		nc_name_ops_export(rpc->index, rpc->caller, &rpc->call, rpc->payload, &id, &info);

	if (!error)
		reply_with(rpc, id, &info);
	return error;
}

/* Destroys orphans, oldest first, until the caller's limits permit a unit of that size. */
static int evict_orphans(struct nc_rpc_call *rpc, size_t size)
{
	struct nc_grants *grants = &rpc->index->grants;
	int error = nc_grants_room(grants, rpc->caller, size);
	size_t id;

	while (error == -EMFILE && nc_grants_orphan(grants, &id)) {
		(void)nc_index_end(rpc->index, id, NC_EVICTION_MEMORY);
		/* Drop the record, even if the unit was already gone. */
		nc_grants_drop(grants, id);
		error = nc_grants_room(grants, rpc->caller, size);
	}
	return error;
}

/*
 * If one more unit needs memory that others use, evicts older ones of members that have more than
 * their share: at first those that were used.  If too many are held, the cache evicts as usual.
 */
static void keep_share(struct nc_rpc_call *rpc, size_t size)
{
	struct nc_index *index = rpc->index;
	size_t id;

	for (unsigned turn = 0; turn < 2 * SHARE_TRIES && nc_member_is_full(&index->own, size) &&
				nc_grants_exceed(&index->grants, rpc->caller, size, &id);
	     turn++)
		(void)nc_index_evict(index, id, turn >= SHARE_TRIES);
}

/*
 * Adopts the segment that came with the call, after checking that it is frozen and
 * fits the unit.
 */
static int adopt(struct nc_rpc_call *rpc, int *fd, struct nc_layout *layout,
		 struct nc_segment *segment)
{
	const struct nc_wire_call *call = &rpc->call;
	int error;

	if (*fd < 0 || call->fraglen == 0 || nc_layout_init(layout, call->size, call->fraglen))
		return -EINVAL;
	if (layout->size > rpc->index->max_unit)
		return -EFBIG;
	error = evict_orphans(rpc, layout->extent);
	if (error)
		return error;
	error = nc_segment_adopt_frozen(segment, *fd, layout->extent);
	if (error)
		return error;
	(void)take_fd(fd);
	nc_segment_pin(segment, rpc->index->own.pin, true);
	return 0;
}

static int seal(struct nc_rpc_call *rpc)
{
	struct nc_index *index = rpc->index;
	struct nc_segment segment;
	struct nc_layout layout;
	struct nc_unit *unit;
	size_t id;
	int error = adopt(rpc, &rpc->fds[0], &layout, &segment);

	if (error)
		return error;
	keep_share(rpc, layout.extent);
	error = nc_member_adopt(&index->own, &segment, &layout, &unit);
	if (error) {
		nc_segment_close(&segment);
		return error;
	}
	id = nc_index_id(index, unit->slot, nc_word_generation(nc_unit_word(unit)));
	atomic_store(&unit->granted, true);
	error = nc_grants_enter(&index->grants, id, rpc->caller, NULL, layout.size, layout.fraglen);
	if (!error)
		error = export_unit(rpc, id);
	if (error)
		(void)nc_index_destroy(index, id);
	(void)nc_index_release(index, id);
	if (error)
		return error;
	/* Its maker already has the descriptor. */
	close(take_fd(&rpc->fd));
	return 0;
}

/* Whether the caller made the unit, according to the id or the record. */
static bool made_by_caller(const struct nc_rpc_call *rpc, bool *known)
{
	bool made;

	*known = nc_grants_known(&rpc->index->grants, rpc->call.id, rpc->caller, &made);
	return made || (rpc->caller->number && nc_id_member(rpc->call.id) == rpc->caller->number);
}

/* Determines the grantee; a process is identified by the pidfd that came with the call. */
static int grantee_of(struct nc_rpc_call *rpc, struct nc_grantee *grantee)
{
	const struct nc_wire_call *call = &rpc->call;
	int error;

	if (call->principal != NC_PROCESS)
		return call->principal == NC_USER || call->principal == NC_GROUP
			       ? nc_grant_ops_grantee((enum NC_principal)call->principal, call->who,
						      false, grantee)
			       : -EINVAL;
	if (rpc->fds[0] < 0)
		return -EINVAL;
	error = nc_grant_ops_grantee(NC_PROCESS_FD, (unsigned)rpc->fds[0], false, grantee);
	if (!error)
		grantee->pidfd = take_fd(&rpc->fds[0]);
	return error;
}

/* Records a frozen copy of a unit that is in the caller's own segment. */
static int enter_copy(struct nc_rpc_call *rpc)
{
	struct nc_segment copy;
	struct nc_layout layout;
	int *fd = &rpc->fds[rpc->fds[0] < 0 ? 1 : 0];
	int error = adopt(rpc, fd, &layout, &copy);

	if (error)
		return error;
	error = nc_grants_enter(&rpc->index->grants, rpc->call.id, rpc->caller, &copy, layout.size,
				layout.fraglen);
	if (error)
		nc_segment_close(&copy);
	return error;
}

static int add_grant(struct nc_rpc_call *rpc)
{
	struct nc_grantee grantee;
	bool known, made = made_by_caller(rpc, &known);
	int error;

	if (!made && !rpc->caller->operates)
		return -EACCES;
	error = grantee_of(rpc, &grantee);
	if (error)
		return error;
	if (!made)
		return nc_grant_ops_grant(rpc->index, rpc->call.id, &grantee);
	if (!known)
		error = enter_copy(rpc);
	if (!error)
		error = nc_grants_add(&rpc->index->grants, rpc->call.id, &grantee);
	if (error && grantee.pidfd >= 0)
		close(grantee.pidfd);
	return error;
}

static int revoke_grant(struct nc_rpc_call *rpc)
{
	const struct nc_wire_call *call = &rpc->call;
	struct nc_grantee grantee = {
		.principal = (enum NC_principal)call->principal, .who = call->who, .pidfd = -1};
	bool known, made = made_by_caller(rpc, &known);

	if (!made && !rpc->caller->operates)
		return -EACCES;
	return nc_grants_revoke(&rpc->index->grants, call->id, &grantee);
}

static int list_grants(struct nc_rpc_call *rpc)
{
	bool known, made = made_by_caller(rpc, &known);

	if (!made && !rpc->caller->operates)
		return -EACCES;
	return nc_grant_ops_reply(rpc->index, &rpc->call, rpc->reply, rpc->room);
}

static int destroy(struct nc_rpc_call *rpc)
{
	bool known, made = made_by_caller(rpc, &known);

	if (rpc->caller->operates)
		return nc_index_end(rpc->index, rpc->call.id, NC_EVICTION_DESTROYED);
	if (!made)
		return -EACCES;
	if (nc_id_member(rpc->call.id) == 0)
		return nc_index_end(rpc->index, rpc->call.id, NC_EVICTION_DESTROYED);
	/* The member has already unlinked it, through the shared table. */
	nc_grants_drop(&rpc->index->grants, rpc->call.id);
	return 0;
}

static int keep(struct nc_rpc_call *rpc)
{
	const struct nc_wire_call *call = &rpc->call;
	bool known, made = made_by_caller(rpc, &known), operates = rpc->caller->operates;

	if (!made && !operates)
		return -EACCES;
	switch (call->slot) {
	case NC_WIRE_PRIORITY:
		if (call->size > NC_PRIORITY_PINNED)
			return -EINVAL;
		/* A member must not evict units of others by raising the priority of its own. */
		if (call->size > NC_PRIORITY_NORMAL && !operates)
			return -EPERM;
		return nc_index_set_priority(rpc->index, call->id, (enum NC_priority)call->size);
	case NC_WIRE_LIFETIME:
		return nc_index_set_lifetime(rpc->index, call->id, call->size);
	}
	return -EINVAL;
}

static int serve_admin(struct nc_rpc_call *rpc)
{
	const struct nc_rpc_admin *admin = rpc->admin;
	int length;

	if (!rpc->caller->operates)
		return -EPERM;
	if (!admin || !admin->handle)
		return -EOPNOTSUPP;
	length = admin->handle(admin->context, &rpc->call, rpc->payload, rpc->reply, rpc->room,
			       NC_WIRE_BEHIND_MAX);
	if (length < 0)
		return length;
	rpc->reply->length = (uint32_t)length;
	return 0;
}

static int list(struct nc_rpc_call *rpc)
{
	struct NC_stat units[LIST_MAX];
	size_t cursor = rpc->call.size, stride = rpc->call.fraglen;
	unsigned most = LIST_MAX, count;

	if (!nc_wire_is_size(stride))
		return -EPROTO;
	if (most > NC_WIRE_BEHIND_MAX / stride)
		most = (unsigned)(NC_WIRE_BEHIND_MAX / stride);
	if (rpc->call.who < most)
		most = rpc->call.who;
	count = rpc->caller->operates
			? nc_inspect_list(rpc->index, &cursor, units, most)
			: nc_grant_ops_list(rpc->index, rpc->caller, &cursor, units, most);
	nc_versioned_write_all(rpc->room, stride, units, sizeof(units[0]), count);
	rpc->reply->size = cursor;
	rpc->reply->length = count * (uint32_t)stride;
	return 0;
}

static int stat_unit(struct nc_rpc_call *rpc)
{
	bool made, known = nc_grants_known(&rpc->index->grants, rpc->call.id, rpc->caller, &made);
	struct NC_stat stat;
	int error;

	if (!rpc->caller->operates && !(known && made))
		return -EACCES;
	if (!nc_wire_is_size(rpc->call.size))
		return -EPROTO;
	error = nc_inspect_unit(rpc->index, rpc->call.id, &stat);
	if (!error) {
		nc_versioned_write(rpc->room, rpc->call.size, &stat, sizeof(stat));
		rpc->reply->length = (uint32_t)rpc->call.size;
	}
	return error;
}

/* If the caller never got the revocation map, it cannot use earlier exports: end them. */
static void drop_lost_exports(struct nc_rpc_call *rpc)
{
	const struct nc_revocation_map *map = &rpc->caller->revocations;

	if ((rpc->call.op == NC_WIRE_SEAL || rpc->call.op == NC_WIRE_FETCH ||
	     rpc->call.op == NC_WIRE_NAME_HOLD) &&
	    rpc->call.slot == NC_WIRE_NO_MAP && map->segment.base && map->segment.fd < 0)
		nc_grants_lose_map(&rpc->index->grants, rpc->caller);
}

int nc_rpc_server_act(struct nc_rpc_call *rpc)
{
	drop_lost_exports(rpc);
	switch ((enum nc_wire_op)rpc->call.op) {
	case NC_WIRE_SEAL:
		return seal(rpc);
	case NC_WIRE_FETCH:
		return export_unit(rpc, rpc->call.id);
	case NC_WIRE_DROP:
		return nc_grants_return(&rpc->index->grants, rpc->caller, rpc->call.slot);
	case NC_WIRE_GRANT:
		return add_grant(rpc);
	case NC_WIRE_REVOKE:
		return revoke_grant(rpc);
	case NC_WIRE_GRANTS:
		return list_grants(rpc);
	case NC_WIRE_DESTROY:
		return destroy(rpc);
	case NC_WIRE_LIST:
		return list(rpc);
	case NC_WIRE_STAT:
		return stat_unit(rpc);
	case NC_WIRE_KEEP:
		return keep(rpc);
	case NC_WIRE_COUNTERS:
	case NC_WIRE_ROUTES:
	case NC_WIRE_ROUTE:
	case NC_WIRE_PURGE:
		return serve_admin(rpc);
	case NC_WIRE_JOINED:
		return 0;
	case NC_WIRE_NAME_SET:
	case NC_WIRE_NAME_REMOVE:
		return nc_name_ops_reply(rpc->index, rpc->caller, &rpc->call, rpc->payload);
	case NC_WIRE_NAME_HOLD:
		return export_named(rpc);
	case NC_WIRE_OPS:
		break;
	}
	/* A newer member's, which learns that this owner cannot do it. */
	return -EOPNOTSUPP;
}
