/* SPDX-License-Identifier: MIT */
/*
 * rpc-server.h - the owner's end: serves the calls of members.
 *
 * A member is not trusted.  Each call is copied and checked, must come from the
 * same process that was admitted, and may use only units that were granted to its
 * caller.
 */
#ifndef NC_RPC_SERVER_H
#define NC_RPC_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct nc_index;
struct nc_subject;
struct nc_wire_call;
struct nc_wire_reply;

/* What higher layers do for operators; may be NULL. */
struct nc_rpc_admin {
	/*
	 * Returns the number of bytes written to room, which follows the reply, or
	 * -errno; it may also set reply->size.  payload: the call->length bytes
	 * that followed the call.
	 */
	int (*handle)(void *context, const struct nc_wire_call *call, const void *payload,
		      struct nc_wire_reply *reply, void *room, size_t size);
	void *context;
};

/*
 * A lock of the caller's.  The RPC server releases it around operations that may
 * take long; after that, *gone tells whether the caller is gone.  Descriptors that
 * members pass go to the disposal.
 */
struct nc_rpc_server_lock {
	pthread_mutex_t *mutex;
	const bool *gone;
	struct nc_disposal *disposal;
};

/*
 * Receives one call from the socket, executes it and replies; waits for nobody.
 * lock may be NULL.
 *
 * Returns 1, 0 if no call is pending, or -errno if this member must be removed.
 */
int nc_rpc_server_serve(struct nc_index *index, int socket, struct nc_subject *caller,
			const struct nc_rpc_admin *admin, const struct nc_rpc_server_lock *lock);

#endif
