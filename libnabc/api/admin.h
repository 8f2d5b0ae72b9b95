/* SPDX-License-Identifier: MIT */
/*
 * admin.h - administers a whole cache from another process, both ends: what the
 * owner reports about the cache, and how an operator's process requests that.
 *
 * In a process that is not an operator, each call does the work itself, so the
 * exported calls need not distinguish the two.  Any thread.
 */
#ifndef NC_ADMIN_H
#define NC_ADMIN_H

#include <nabc.h>
#include <stddef.h>

struct nc_index;
struct nc_transmit;
struct nc_wire_call;
struct nc_wire_reply;

/* The owner's end: handle() of struct nc_rpc_admin; context: its struct nc_transmit. */
int nc_admin_handle(void *context, const struct nc_wire_call *call, const void *payload,
		    struct nc_wire_reply *reply, void *room, size_t size);

/*
 * Returns all counters; in an operator's process those of the owner, which may have
 * to be waited for.  Returns 0, errors of nc_rpc_client_call(), or -EPROTO (the
 * reply has a wrong size).
 */
int nc_admin_counters(struct nc_transmit *transmit, struct NC_cache_stat *stat);

/* Returns the figures of one unit: 0, or errors of nc_index_hold() or of the call. */
int nc_admin_stat(struct nc_index *index, size_t id, struct NC_stat *stat);

/* See NC_routes() and NC_route_set(); in an operator's process, for the owner's routes. */
int nc_admin_routes(struct nc_transmit *transmit, struct NC_route *routes, unsigned count);
int nc_admin_route_set(struct nc_transmit *transmit, const char *address, int method);

/* See NC_cache_on_purge() and NC_purge(). */
int nc_admin_on_purge(struct nc_index *index, NC_purger purger, void *context);
int nc_admin_purge(struct nc_index *index, const char *name);

#endif
