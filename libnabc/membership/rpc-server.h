/* SPDX-License-Identifier: MIT */
/*
 * rpc-server.h - the owner's end: serves the calls of members.
 *
 * A member is not trusted: each call is copied and checked, must come from the very
 * process that was admitted, and may use only what its caller has leave for.
 */
#ifndef NC_RPC_SERVER_H
#define NC_RPC_SERVER_H

#include <pthread.h>

#include "cache/index.h"
#include "wire/wire.h"

/* What upper floors do for operators; may be NULL. */
struct nc_rpc_admin {
	/*
	 * Bytes written to room, behind the reply, or -errno; reply->size may
	 * be set too.  payload: what came behind the call, call->length bytes.
	 */
	int (*handle)(void *context, const struct nc_wire_call *call, const void *payload,
		      struct nc_wire_reply *reply, void *room, size_t size);
	void *context;
};

/*
 * A lock of the caller's, held but while the RPC server may have to wait; gone: the caller is,
 * behind that.
 */
struct nc_rpc_server_lock {
	pthread_mutex_t *mutex;
	const bool *gone;
};

/*
 * Takes one call from the socket, acts and replies.  It waits for nobody, but
 * the system may: for as long as the last user of a descriptor wants, if that is
 * this process, which descriptors that came along decide.  So they are received
 * and closed without the lock (may be NULL).
 * 1; 0: there is none; -errno: this member is to go.
 */
int nc_rpc_server_serve(struct nc_index *index, int socket, struct nc_subject *caller,
			const struct nc_rpc_admin *admin, const struct nc_rpc_server_lock *lock);

#endif
