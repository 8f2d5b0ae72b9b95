/* SPDX-License-Identifier: MIT */
/*
 * rpc-server.c - serves calls of members, one at a time; see rpc-server.h.  Called
 * by the thread that dispatches.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/id.h"
#include "base/versioned.h"
#include "cache/inspect.h"
#include "membership/rpc-server.h"
#include "membership/attach.h"
#include "membership/grant-ops.h"
#include "os/peer.h"

#define LIST_MAX 128u	      /* units in one reply */
#define UNREAD_MAX (64 << 10) /* bytes of unread replies, as the kernel counts them */

/* A call that is being served. */
struct rpc {
	struct nc_index *index;
	struct nc_subject *caller;
	const struct nc_rpc_admin *admin;
	struct nc_wire_call call;
	const void *payload; /* what followed the call */
	int fds[2];	     /* descriptors that came with the call; -1: none, or taken */
	int fd;		     /* descriptor to send with the reply; -1: none */
	struct nc_wire_reply *reply;
	char *room; /* follows the reply */
};

/* The callee owns the descriptor now. */
static int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static int export_unit(struct rpc *rpc, size_t id)
{
	struct nc_export_info info;
	int error = nc_grant_ops_export(rpc->index, id, rpc->caller, &info);

	if (error)
		return error;
	rpc->fd = info.fd;
	rpc->reply->id = id;
	rpc->reply->size = info.size;
	rpc->reply->fraglen = info.fraglen;
	rpc->reply->slot = info.slot;
	return 0;
}

/* Destroys orphans, oldest first, until the caller's limits permit a unit of that size. */
static int evict_orphans(struct rpc *rpc, size_t size)
{
	struct nc_grants *grants = &rpc->index->grants;
	int error = nc_grants_room(grants, rpc->caller, size);
	size_t id;

	while (error == -EMFILE && nc_grants_orphan(grants, &id)) {
		(void)nc_index_destroy(rpc->index, id);
		/* Drop the record, even if the unit was already gone. */
		nc_grants_drop(grants, id);
		error = nc_grants_room(grants, rpc->caller, size);
	}
	return error;
}

/*
 * Adopts the segment that came with the call, after checking that it is frozen and
 * fits the unit.
 */
static int adopt(struct rpc *rpc, int *fd, struct nc_layout *layout, struct nc_segment *segment)
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
	if (!error)
		(void)take_fd(fd);
	return error;
}

static int seal(struct rpc *rpc)
{
	struct nc_index *index = rpc->index;
	struct nc_segment segment;
	struct nc_layout layout;
	struct nc_unit *unit;
	size_t id;
	int error = adopt(rpc, &rpc->fds[0], &layout, &segment);

	if (error)
		return error;
	error = nc_member_adopt(&index->own, &segment, &layout, &unit);
	if (error) {
		nc_segment_close(&segment);
		return error;
	}
	id = nc_id(0, unit->slot, nc_word_generation(nc_unit_word(unit)));
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
static bool made_by_caller(const struct rpc *rpc, bool *known)
{
	bool made;

	*known = nc_grants_known(&rpc->index->grants, rpc->call.id, rpc->caller, &made);
	return made || (rpc->caller->number && nc_id_member(rpc->call.id) == rpc->caller->number);
}

/* Determines the grantee; a process is identified by the pidfd that came with the call. */
static int grantee_of(struct rpc *rpc, struct nc_grantee *grantee)
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
static int enter_copy(struct rpc *rpc)
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

static int add_grant(struct rpc *rpc)
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

static int revoke_grant(struct rpc *rpc)
{
	const struct nc_wire_call *call = &rpc->call;
	struct nc_grantee grantee = {
		.principal = (enum NC_principal)call->principal, .who = call->who, .pidfd = -1};
	bool known, made = made_by_caller(rpc, &known);

	if (!made && !rpc->caller->operates)
		return -EACCES;
	return nc_grants_revoke(&rpc->index->grants, call->id, &grantee);
}

static int list_grants(struct rpc *rpc)
{
	bool known, made = made_by_caller(rpc, &known);

	if (!made && !rpc->caller->operates)
		return -EACCES;
	return nc_grant_ops_reply(rpc->index, &rpc->call, rpc->reply, rpc->room);
}

static int destroy(struct rpc *rpc)
{
	bool known, made = made_by_caller(rpc, &known);

	if (rpc->caller->operates)
		return nc_index_destroy(rpc->index, rpc->call.id);
	if (!made)
		return -EACCES;
	if (nc_id_member(rpc->call.id) == 0)
		return nc_index_destroy(rpc->index, rpc->call.id);
	/* The member has already unlinked it, through the shared table. */
	nc_grants_drop(&rpc->index->grants, rpc->call.id);
	return 0;
}

static int keep(struct rpc *rpc)
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

static int serve_admin(struct rpc *rpc)
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

static int list(struct rpc *rpc)
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

static int stat_unit(struct rpc *rpc)
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
static void drop_lost_exports(struct rpc *rpc)
{
	const struct nc_revocation_map *map = &rpc->caller->revocations;

	if ((rpc->call.op == NC_WIRE_SEAL || rpc->call.op == NC_WIRE_FETCH) &&
	    rpc->call.slot == NC_WIRE_NO_MAP && map->segment.base && map->segment.fd < 0)
		nc_grants_lose_map(&rpc->index->grants, rpc->caller);
}

static int act(struct rpc *rpc)
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
	case NC_WIRE_OPS:
		break;
	}
	/* A newer member's, which learns that this owner cannot do it. */
	return -EOPNOTSUPP;
}

static void close_if(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Undoes what was given with a reply that did not arrive, or that reported failure. */
static void take_back(struct rpc *rpc)
{
	if (rpc->call.op == NC_WIRE_SEAL)
		(void)nc_index_destroy(rpc->index, rpc->reply->id);
	if (rpc->call.op == NC_WIRE_SEAL || rpc->call.op == NC_WIRE_FETCH)
		(void)nc_grants_return(&rpc->index->grants, rpc->caller, rpc->reply->slot);
}

/* The revocation map is sent with the first reply that needs it. */
static int send_reply(struct rpc *rpc, int socket)
{
	struct nc_wire_reply *reply = rpc->reply;
	struct nc_revocation_map *map = &rpc->caller->revocations;
	unsigned count = 0;
	int fds[2], error;

	if (rpc->fd >= 0) {
		reply->flags |= NC_WIRE_HAS_UNIT;
		fds[count++] = rpc->fd;
	}
	if (map->segment.base && map->segment.fd >= 0) {
		reply->flags |= NC_WIRE_HAS_MAP;
		fds[count++] = map->segment.fd;
	}
	error = nc_peer_send(socket, reply, sizeof(*reply) + reply->length, fds, count);
	if (error && !reply->error)
		take_back(rpc);
	/*
	 * Other processes have too many unread descriptors, or memory is short: not
	 * this caller's fault.
	 */
	if (error == -EMFILE || error == -ENOMEM || error == -ENOBUFS) {
		reply->flags = reply->length = 0;
		reply->error = error == -EMFILE ? EMFILE : ENOMEM;
		error = nc_peer_send(socket, reply, sizeof(*reply), NULL, 0);
		/*
		 * Not even the short reply could be sent: the caller waits in vain,
		 * but remains a member.
		 */
		return error == -ENOMEM || error == -ENOBUFS ? 0 : error;
	}
	/* The owner needs only the mapping. */
	if (reply->flags & NC_WIRE_HAS_MAP) {
		close(map->segment.fd);
		map->segment.fd = -1;
	}
	return error;
}

/*
 * Descriptors in flight count against the owner: a member that does not read its
 * replies is removed.
 */
static bool reads_nothing(int socket)
{
	int unread;

	return ioctl(socket, SIOCOUTQ, &unread) == 0 && unread > UNREAD_MAX;
}

static void unlock(const struct nc_rpc_server_lock *lock)
{
	if (lock)
		pthread_mutex_unlock(lock->mutex);
}

/* Returns false if the caller is gone meanwhile. */
static bool relock(const struct nc_rpc_server_lock *lock)
{
	if (!lock)
		return true;
	pthread_mutex_lock(lock->mutex);
	return !*lock->gone;
}

static void close_all(const struct nc_rpc_server_lock *lock, int fds[2])
{
	if (fds[0] < 0 && fds[1] < 0)
		return;
	unlock(lock);
	close_if(fds[0]);
	close_if(fds[1]);
	(void)relock(lock);
}

int nc_rpc_server_serve(struct nc_index *index, int socket, struct nc_subject *caller,
			const struct nc_rpc_admin *admin, const struct nc_rpc_server_lock *lock)
{
	struct {
		struct nc_wire_call head;
		char behind[NC_WIRE_BEHIND_MAX];
	} call;
	struct {
		struct nc_wire_reply head;
		char room[NC_WIRE_BEHIND_MAX];
	} reply;
	struct rpc rpc = {.index = index,
			  .caller = caller,
			  .admin = admin,
			  .payload = call.behind,
			  .fds = {-1, -1},
			  .fd = -1,
			  .reply = &reply.head,
			  .room = reply.room};
	bool complete = false;
	unsigned count;
	pid_t sender;
	int error;
	ssize_t got;

	if (reads_nothing(socket))
		return -ENOBUFS;
	call.head = (struct nc_wire_call){0};
	unlock(lock);
	got = nc_peer_receive_from(socket, &call, sizeof(call), rpc.fds, 2, &count, &sender);
	if (!relock(lock)) {
		close_all(lock, rpc.fds);
		return -EPIPE;
	}
	/* This process had no free descriptor for those that came: not the caller's fault. */
	if (got == -EMFILE)
		got = (ssize_t)(sizeof(call.head) + call.head.length);
	else if (got <= 0)
		return nc_peer_is_later((int)got) ? 0 : got == 0 ? -EPIPE : (int)got;
	else
		complete = true;
	if (nc_wire_check_call(&call, (size_t)got, count, &rpc.call)) {
		close_all(lock, rpc.fds);
		return complete ? nc_attach_last_word(&index->diagnostics, caller->who.pid, &call,
						      (size_t)got)
				: -EPROTO;
	}
	reply.head = (struct nc_wire_reply){.magic = NC_WIRE_MAGIC, .tag = rpc.call.tag};
	/* A socket may be passed on or inherited; a membership may not. */
	if (sender != caller->who.pid || nc_identity_ended(caller->who.pidfd))
		error = -EACCES;
	else
		error = complete ? act(&rpc) : -EMFILE;
	reply.head.error = -error;
	if (error)
		reply.head.length = 0;
	error = send_reply(&rpc, socket);
	close_if(rpc.fd);
	close_all(lock, rpc.fds);
	/* A caller that is gone may have queued more calls before. */
	return error && error != -EPIPE ? error : 1;
}
