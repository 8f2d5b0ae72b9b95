/* SPDX-License-Identifier: MIT */
/*
 * rpc-client.h - a member's end of the socket to the owner: one call, one reply.
 */
#ifndef NC_RPC_CLIENT_H
#define NC_RPC_CLIENT_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/segment.h"

struct nc_wire_call;
struct nc_wire_reply;

struct nc_rpc_client {
	int socket; /* not owned; -1: none */
	pthread_mutex_t lock;
	uint64_t tag;
	/* bits of the last 64 tags: SEAL calls whose reply is missing */
	uint64_t lost;
	pid_t owner;		       /* the process at the other end */
	struct nc_segment revocations; /* base NULL: nothing was imported yet */
};

/* What is sent with a call, and what came with its reply. */
struct nc_rpc_client_load {
	const int *fds; /* sent; the caller still owns them */
	unsigned fd_count;
	const void *bytes; /* sent after the call; call->length of them */
	void *room;	   /* for the bytes that follow the reply; may be NULL */
	size_t room_size;
	int fd; /* received; the caller owns it; -1: none */
};

void nc_rpc_client_init(struct nc_rpc_client *rpc);
void nc_rpc_client_open(struct nc_rpc_client *rpc, int socket);
void nc_rpc_client_fini(struct nc_rpc_client *rpc);

/*
 * Calls and waits for the reply, until the owner dispatches, at most five seconds.
 * Fills in magic, tag and, if the reply may carry the revocation map, slot.
 * Returns 0, the negated errno of the reply, -EPIPE (the owner is gone),
 * -ETIMEDOUT, -EMFILE (no descriptor was free for a received one), or -EPROTO.  Any
 * thread; one call at a time.
 */
int nc_rpc_client_call(struct nc_rpc_client *rpc, struct nc_wire_call *call,
		       struct nc_rpc_client_load *load, struct nc_wire_reply *reply);

#endif
