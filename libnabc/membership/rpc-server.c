/* SPDX-License-Identifier: MIT */
/*
 * rpc-server.c - receives calls of members, one at a time, and replies; see
 * rpc-server.h.  Called by the thread that dispatches.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cache/grant.h"
#include "cache/index.h"
#include "membership/rpc-server-internal.h"
#include "membership/attach.h"
#include "membership/disposal.h"
#include "membership/rpc-server.h"
#include "os/identity.h"
#include "os/peer.h"
#include "os/segment.h"
#include "store/revocation-map.h"
#include "wire/wire.h"

#define UNREAD_MAX (64 << 10) /* bytes of unread replies, as the kernel counts them */

static void close_if(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Undoes what was given with a reply that did not arrive, or that reported failure. */
static void take_back(struct nc_rpc_call *rpc)
{
	if (rpc->call.op == NC_WIRE_SEAL)
		(void)nc_index_destroy(rpc->index, rpc->reply->id);
	if (rpc->call.op == NC_WIRE_SEAL || rpc->call.op == NC_WIRE_FETCH)
		(void)nc_grants_return(&rpc->index->grants, rpc->caller, rpc->reply->slot);
	/* Only what was new. */
	if (rpc->call.op == NC_WIRE_NAME_HOLD && rpc->fd >= 0)
		(void)nc_grants_return(&rpc->index->grants, rpc->caller, rpc->reply->slot);
}

/* The revocation map is sent with the first reply that needs it. */
static int send_reply(struct nc_rpc_call *rpc, int socket)
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

static int close_all(const struct nc_rpc_server_lock *lock, const struct nc_subject *caller,
		     const int *fds, unsigned count)
{
	const struct nc_disposal_origin from = {caller->who.pid, caller->who.uid};
	int error;

	if (!count)
		return 0;
	unlock(lock);
	error = nc_disposal_take(lock ? lock->disposal : NULL, from, fds, count);
	(void)relock(lock);
	return error;
}

/* Closes what came with a call and was not taken. */
static int close_rest(const struct nc_rpc_server_lock *lock, const struct nc_rpc_call *rpc)
{
	int fds[NC_RPC_CALL_FDS];
	unsigned count = 0;

	for (unsigned i = 0; i < NC_RPC_CALL_FDS; i++)
		if (rpc->fds[i] >= 0)
			fds[count++] = rpc->fds[i];
	return close_all(lock, rpc->caller, fds, count);
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
	struct nc_rpc_call rpc = {.index = index,
				  .caller = caller,
				  .admin = admin,
				  .payload = call.behind,
				  .fds = {-1, -1},
				  .fd = -1,
				  .reply = &reply.head,
				  .room = reply.room};
	int fds[NC_PEER_FDS_ALL];
	bool complete = false, there, good;
	unsigned count;
	pid_t sender;
	int error;
	ssize_t got;

	if (reads_nothing(socket))
		return -ENOBUFS;
	call.head = (struct nc_wire_call){0};
	unlock(lock);
	got = nc_peer_receive_from(socket, &call, sizeof(call), fds, &count, &sender);
	there = relock(lock);
	good = there && got > 0 && count <= NC_RPC_CALL_FDS;
	if (!good) {
		(void)close_all(lock, caller, fds, count);
		count = 0;
	}
	if (!there)
		return -EPIPE;
	/* This process had no free descriptor for those that came: not the caller's fault. */
	if (got == -EMFILE)
		got = (ssize_t)(sizeof(call.head) + call.head.length);
	else if (got <= 0)
		return nc_peer_is_later((int)got) ? 0 : got == 0 ? -EPIPE : (int)got;
	else if (!good)
		return -EPROTO;
	else
		complete = true;
	memcpy(rpc.fds, fds, count * sizeof(*fds));
	if (nc_wire_check_call(&call, (size_t)got, count, &rpc.call)) {
		(void)close_rest(lock, &rpc);
		return complete ? nc_attach_last_word(&index->diagnostics, caller->who.pid, &call,
						      (size_t)got)
				: -EPROTO;
	}
	reply.head = (struct nc_wire_reply){.magic = NC_WIRE_MAGIC, .tag = rpc.call.tag};
	/* A socket may be passed on or inherited; a membership may not. */
	if (sender != caller->who.pid)
		caller->stranger = sender;
	if (sender != caller->who.pid || nc_identity_ended(caller->who.pidfd))
		error = -EACCES;
	else
		error = complete ? nc_rpc_server_act(&rpc) : -EMFILE;
	reply.head.error = -error;
	if (error)
		reply.head.length = 0;
	error = send_reply(&rpc, socket);
	close_if(rpc.fd);
	/* A caller that is gone may have queued more calls before. */
	if (error == -EPIPE)
		error = 0;
	if (close_rest(lock, &rpc))
		error = -EBUSY;
	return error ? error : 1;
}
