/* SPDX-License-Identifier: MIT */
/*
 * rpc-client.h - a member's end of the socket to the owner: one call, one reply.
 */
#ifndef NC_RPC_CLIENT_H
#define NC_RPC_CLIENT_H

#include <pthread.h>

#include "os/peer.h"
#include "os/segment.h"
#include "wire/wire.h"

struct nc_rpc_client {
	int socket; /* the caller's; -1: none */
	pthread_mutex_t lock;
	uint64_t tag;
	uint64_t lost;		       /* of the last 64 tags: seals whose reply did not come */
	pid_t owner;		       /* the process at the other end */
	struct nc_segment revocations; /* base NULL: nothing was imported yet */
};

/* What goes with a call, and what came with its reply. */
struct nc_rpc_client_load {
	const int *fds; /* sent; stay the caller's */
	unsigned fd_count;
	const void *bytes; /* sent behind; call->length of them */
	void *room;	   /* for the bytes behind the reply; may be NULL */
	size_t room_size;
	int fd; /* received, the caller's; -1: none */
};

void nc_rpc_client_init(struct nc_rpc_client *rpc);
void nc_rpc_client_open(struct nc_rpc_client *rpc, int socket);
void nc_rpc_client_fini(struct nc_rpc_client *rpc);

/*
 * Calls and waits for the reply, which takes as long as the owner needs to
 * dispatch, at most five seconds.  Fills magic, tag and, where it tells of the
 * revocation map, slot.  0; the errno of the reply, negated; -EPIPE: the owner is gone;
 * -ETIMEDOUT; -EMFILE: no descriptor was free for what came; -EPROTO.  Any
 * thread; one call at a time.
 */
int nc_rpc_client_call(struct nc_rpc_client *rpc, struct nc_wire_call *call,
		       struct nc_rpc_client_load *load, struct nc_wire_reply *reply);

#endif
