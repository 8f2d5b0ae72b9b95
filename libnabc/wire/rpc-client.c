/* SPDX-License-Identifier: MIT */
/*
 * rpc-client.c - calls the owner; see rpc-client.h.
 *
 * A reply that comes too late is recognised by its tag and skipped, so one slow
 * dispatch of the owner fails only one call.  A unit that was entered too late is
 * destroyed again, and so is one whose reply carried a descriptor that this process
 * had no free number for; an import is dropped in that case.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/peer.h"
#include "wire/rpc-client.h"
#include "wire/wire.h"

#define TIMEOUT_MS 5000
#define ANSWERS_WAITING_MAX 128u

struct message {
	union {
		struct nc_wire_call call;
		struct nc_wire_reply reply;
	};
	char behind[NC_WIRE_BEHIND_MAX];
};

void nc_rpc_client_init(struct nc_rpc_client *rpc)
{
	*rpc = (struct nc_rpc_client){.socket = -1};
	pthread_mutex_init(&rpc->lock, NULL);
}

void nc_rpc_client_open(struct nc_rpc_client *rpc, int socket)
{
	struct ucred owner;
	socklen_t length = sizeof(owner);

	rpc->socket = socket;
	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &owner, &length) == 0)
		rpc->owner = owner.pid;
}

/*
 * Whether the reply gives something: a unit or an import, and with the first one
 * the revocation map.
 */
static bool gives(const struct nc_wire_call *call)
{
	return call->op == NC_WIRE_SEAL || call->op == NC_WIRE_FETCH ||
	       call->op == NC_WIRE_NAME_HOLD;
}

/*
 * The revocation map comes with the first import, and again as long as this end
 * reports that it has none, since a reply can be lost.  In that case nothing was
 * imported earlier.
 */
static int take_map(struct nc_rpc_client *rpc, const struct nc_wire_call *call, int fd)
{
	struct nc_segment map;
	int error = call->slot == NC_WIRE_NO_MAP && gives(call)
			    ? nc_segment_adopt_readable(&map, fd, NC_WIRE_MAP_SIZE)
			    : -EPROTO;

	if (error) {
		close(fd);
		return error;
	}
	if (rpc->revocations.base)
		nc_segment_close(&rpc->revocations);
	rpc->revocations = map;
	return 0;
}

static uint64_t bit_of(uint64_t tag)
{
	return UINT64_C(1) << tag % 64;
}

/* Returns what the reply to a call of that kind gave; the call has failed. */
static void give_back(struct nc_rpc_client *rpc, uint32_t op, const struct nc_wire_reply *reply)
{
	struct nc_wire_call call = {.magic = NC_WIRE_MAGIC};

	if (reply->flags & NC_WIRE_HAS_UNIT) {
		call.op = NC_WIRE_DROP;
		call.slot = reply->slot;
	} else if (op == NC_WIRE_SEAL) {
		call.op = NC_WIRE_DESTROY;
		call.id = reply->id;
	} else {
		return;
	}
	/* The reply to this call will be skipped. */
	(void)nc_peer_send(rpc->socket, &call, sizeof(call), NULL, 0);
}

static void undo(struct nc_rpc_client *rpc, const struct nc_wire_reply *late)
{
	if (late->error || late->tag + 64 <= rpc->tag || !(rpc->lost & bit_of(late->tag)))
		return;
	rpc->lost &= ~bit_of(late->tag);
	give_back(rpc, NC_WIRE_SEAL, late);
}

/* Undoes the calls whose replies came after a timeout: no later call will read them. */
static void undo_waiting(struct nc_rpc_client *rpc)
{
	struct nc_wire_reply late;
	struct message message;
	int fds[NC_PEER_FDS_MAX];
	unsigned count;

	for (unsigned i = 0; rpc->lost && i < ANSWERS_WAITING_MAX; i++) {
		ssize_t got =
			nc_peer_receive(rpc->socket, &message, sizeof(message), fds, &count, 0);

		if (nc_peer_is_later((int)got))
			continue;
		if (got <= 0)
			return;
		nc_peer_close_fds(fds, count);
		if (!nc_wire_check_reply(&message, (size_t)got, count, &late))
			undo(rpc, &late);
	}
}

void nc_rpc_client_fini(struct nc_rpc_client *rpc)
{
	/*
	 * Stop receiving first: closing a socket with unread data would discard
	 * what is sent now.
	 */
	if (rpc->socket >= 0 && rpc->lost && shutdown(rpc->socket, SHUT_RD) == 0)
		undo_waiting(rpc);
	if (rpc->revocations.base)
		nc_segment_close(&rpc->revocations);
	pthread_mutex_destroy(&rpc->lock);
}

/*
 * Handles a reply whose descriptors were lost because this process had none free.
 * Returns true if it belongs to another call, so that the right reply is still to
 * come.
 */
static bool pass_over_cut(struct nc_rpc_client *rpc, const struct nc_wire_call *call,
			  const struct nc_wire_reply *reply)
{
	if (reply->magic != NC_WIRE_MAGIC)
		return false;
	if (reply->tag == call->tag) {
		if (!reply->error && gives(call))
			give_back(rpc, call->op, reply);
		return false;
	}
	undo(rpc, reply);
	return true;
}

static int take_reply(struct nc_rpc_client *rpc, const struct nc_wire_call *call,
		      struct nc_rpc_client_load *load, struct nc_wire_reply *reply)
{
	struct message message;
	int fds[NC_PEER_FDS_MAX], error;
	unsigned count;

	for (;;) {
		ssize_t got;

		message.reply.magic = 0;
		got = nc_peer_receive(rpc->socket, &message, sizeof(message), fds, &count,
				      TIMEOUT_MS);
		if (got == -EMFILE && pass_over_cut(rpc, call, &message.reply))
			continue;
		if (got <= 0)
			return got == 0 || got == -ECONNRESET ? -EPIPE : (int)got;
		error = nc_wire_check_reply(&message, (size_t)got, count, reply);
		if (!error && reply->flags & NC_WIRE_HAS_MAP)
			error = take_map(rpc, call, fds[--count]);
		if (error && error != -EPROTO && reply->tag == call->tag && !reply->error)
			give_back(rpc, call->op, reply);
		if (!error && reply->tag == call->tag)
			break;
		nc_peer_close_fds(fds, count);
		if (error)
			return error;
		undo(rpc, reply);
	}
	error = -reply->error;
	if (!error && reply->length > (load->room ? load->room_size : 0))
		error = -EPROTO;
	if (error) {
		nc_peer_close_fds(fds, count);
		return error;
	}
	if (reply->length)
		memcpy(load->room, message.behind, reply->length);
	load->fd = count ? fds[0] : -1;
	return 0;
}

int nc_rpc_client_call(struct nc_rpc_client *rpc, struct nc_wire_call *call,
		       struct nc_rpc_client_load *load, struct nc_wire_reply *reply)
{
	struct message message;
	int error;

	load->fd = -1;
	if (rpc->socket < 0)
		return -EPIPE;
	if (call->length > NC_WIRE_BEHIND_MAX)
		return -EMSGSIZE;
	pthread_mutex_lock(&rpc->lock);
	call->magic = NC_WIRE_MAGIC;
	call->tag = ++rpc->tag;
	rpc->lost &= ~bit_of(call->tag);
	if (gives(call))
		call->slot = rpc->revocations.base ? 0 : NC_WIRE_NO_MAP;
	message.call = *call;
	if (call->length)
		memcpy(message.behind, load->bytes, call->length);
	error = nc_peer_send(rpc->socket, &message, sizeof(*call) + call->length, load->fds,
			     load->fd_count);
	if (!error)
		error = take_reply(rpc, call, load, reply);
	else if (error == -ECONNRESET)
		error = -EPIPE;
	if ((error == -ETIMEDOUT || nc_peer_is_later(error)) && call->op == NC_WIRE_SEAL)
		rpc->lost |= bit_of(call->tag);
	pthread_mutex_unlock(&rpc->lock);
	return error;
}
