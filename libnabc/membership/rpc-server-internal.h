/* SPDX-License-Identifier: MIT */
/*
 * rpc-server-internal.h - a call between rpc-server.c, which receives it and replies, and
 * rpc-server-ops.c, which executes it.
 */
#ifndef NC_RPC_SERVER_INTERNAL_H
#define NC_RPC_SERVER_INTERNAL_H

#include "wire/wire.h"

#define NC_RPC_CALL_FDS 2u /* descriptors that come with a call, at most */

/* A call that is being served. */
struct nc_rpc_call {
	struct nc_index *index;
	struct nc_subject *caller;
	const struct nc_rpc_admin *admin;
	struct nc_wire_call call;
	const void *payload;	  /* what followed the call */
	int fds[NC_RPC_CALL_FDS]; /* descriptors that came with the call; -1: none, or taken */
	int fd;			  /* descriptor to send with the reply; -1: none */
	struct nc_wire_reply *reply;
	char *room; /* follows the reply */
};

/* Executes the call: returns 0 and fills the reply, or returns -errno. */
int nc_rpc_server_act(struct nc_rpc_call *rpc);

#endif
