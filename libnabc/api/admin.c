/* SPDX-License-Identifier: MIT */
/*
 * admin.c - calls about a whole cache, both ends; see admin.h.
 *
 * The caller states the size of a structure as it knows it, and the reply contains
 * it in that size.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "api/admin.h"
#include "base/versioned.h"
#include "cache/index.h"
#include "cache/inspect.h"
#include "send/route.h"
#include "send/transmit.h"
#include "wire/rpc-client.h"
#include "wire/wire.h"

/* Routes in one reply, and the maximum length of an address. */
#define ROUTES_ONCE (NC_WIRE_BEHIND_MAX / sizeof(struct NC_route))
#define ADDRESS_MAX 63u

static_assert(NC_PURGE_MAX < NC_WIRE_BEHIND_MAX, "must fit a question");

static void count_up(struct nc_transmit *transmit, struct NC_cache_stat *stat)
{
	nc_inspect_counters(transmit->index, stat);
	nc_transmit_stat(transmit, stat);
}

/* --- the owner's end -------------------------------------------------------- */

static int serve_counters(struct nc_transmit *transmit, const struct nc_wire_call *call, void *room)
{
	struct NC_cache_stat stat;

	if (!nc_wire_is_size(call->size) || call->length)
		return -EPROTO;
	count_up(transmit, &stat);
	nc_versioned_write(room, call->size, &stat, sizeof(stat));
	return (int)call->size;
}

/* Sends routes from the caller's position on, as many as it requests and a reply can contain. */
static int serve_routes(struct nc_transmit *transmit, const struct nc_wire_call *call,
			struct nc_wire_reply *reply, void *room)
{
	struct NC_route routes[NC_ROUTES];
	size_t found, stride = call->size, count = call->who;

	if (!nc_wire_is_size(stride) || call->length)
		return -EPROTO;
	if (count > NC_WIRE_BEHIND_MAX / stride)
		count = NC_WIRE_BEHIND_MAX / stride;
	/* Clear the padding too: it is sent. */
	memset(routes, 0, sizeof(routes));
	found = (size_t)nc_transmit_routes(transmit, routes, NC_ROUTES);
	reply->size = found;
	if (call->id >= found)
		return 0;
	if (count > found - call->id)
		count = found - call->id;
	nc_versioned_write_all(room, stride, routes + call->id, sizeof(*routes), count);
	return (int)(count * stride);
}

static int set_route(struct nc_transmit *transmit, const struct nc_wire_call *call,
		     const void *payload)
{
	char address[ADDRESS_MAX + 1];

	if (call->length > ADDRESS_MAX)
		return -EINVAL;
	memcpy(address, payload, call->length);
	address[call->length] = '\0';
	if (strlen(address) != call->length)
		return -EINVAL;
	return nc_transmit_route_set(transmit, address, (int)call->who);
}

static int forget(struct nc_purge *purge, const char *name)
{
	int forgotten = -EOPNOTSUPP;

	pthread_mutex_lock(&purge->lock);
	if (purge->purger)
		forgotten = purge->purger(purge->context, name);
	pthread_mutex_unlock(&purge->lock);
	return forgotten;
}

static int serve_purge(struct nc_transmit *transmit, const struct nc_wire_call *call,
		       const void *payload, struct nc_wire_reply *reply)
{
	char name[NC_PURGE_MAX + 1];
	int forgotten;

	if (call->length > NC_PURGE_MAX)
		return -EINVAL;
	memcpy(name, payload, call->length);
	name[call->length] = '\0';
	if (strlen(name) != call->length)
		return -EINVAL;
	forgotten = forget(&transmit->index->purge, name);
	if (forgotten < 0)
		return forgotten;
	reply->size = (uint64_t)forgotten;
	return 0;
}

int nc_admin_handle(void *context, const struct nc_wire_call *call, const void *payload,
		    struct nc_wire_reply *reply, void *room, size_t size)
{
	static_assert(sizeof(struct NC_cache_stat) <= NC_WIRE_BEHIND_MAX, "must fit an answer");

	if (size < NC_WIRE_BEHIND_MAX)
		return -EMSGSIZE;
	switch ((enum nc_wire_op)call->op) {
	case NC_WIRE_COUNTERS:
		return serve_counters(context, call, room);
	case NC_WIRE_ROUTES:
		return serve_routes(context, call, reply, room);
	case NC_WIRE_ROUTE:
		return set_route(context, call, payload);
	case NC_WIRE_PURGE:
		return serve_purge(context, call, payload, reply);
	default:
		return -EOPNOTSUPP;
	}
}

/* --- the operator's end ------------------------------------------------------- */

/* Requests one structure of that size. */
static int call_for(struct nc_index *index, struct nc_wire_call *call, void *room, size_t size)
{
	struct nc_rpc_client_load load = {.room = room, .room_size = size};
	struct nc_wire_reply reply;
	int error = nc_rpc_client_call(&index->rpc, call, &load, &reply);

	if (error)
		return error;
	return reply.length == size ? 0 : -EPROTO;
}

int nc_admin_counters(struct nc_transmit *transmit, struct NC_cache_stat *stat)
{
	struct nc_wire_call call = {.op = NC_WIRE_COUNTERS, .size = sizeof(*stat)};
	int error;

	if (!transmit->index->operates) {
		count_up(transmit, stat);
		return 0;
	}
	error = call_for(transmit->index, &call, stat, sizeof(*stat));
	if (!error)
		stat->uring[sizeof(stat->uring) - 1] = stat->kernel[sizeof(stat->kernel) - 1] =
			'\0';
	return error;
}

int nc_admin_stat(struct nc_index *index, size_t id, struct NC_stat *stat)
{
	struct nc_wire_call call = {.op = NC_WIRE_STAT, .id = id, .size = sizeof(*stat)};

	return index->operates ? call_for(index, &call, stat, sizeof(*stat))
			       : nc_inspect_unit(index, id, stat);
}

/* Requests routes from position `filled` on; *found: how many exist in all. */
static int call_routes(struct nc_index *index, size_t filled, struct NC_route *routes,
		       unsigned count, size_t *found)
{
	struct nc_wire_call call = {
		.op = NC_WIRE_ROUTES, .id = filled, .size = sizeof(*routes), .who = count};
	struct nc_rpc_client_load load = {.room = routes, .room_size = count * sizeof(*routes)};
	struct nc_wire_reply reply;
	int error = nc_rpc_client_call(&index->rpc, &call, &load, &reply);
	size_t got;

	if (error)
		return error;
	if (reply.length % sizeof(*routes) || reply.size > INT_MAX)
		return -EPROTO;
	got = reply.length / sizeof(*routes);
	for (size_t i = 0; i < got; i++) {
		routes[i].address[sizeof(routes[i].address) - 1] = '\0';
		routes[i].why[sizeof(routes[i].why) - 1] = '\0';
	}
	*found = reply.size;
	return (int)got;
}

int nc_admin_routes(struct nc_transmit *transmit, struct NC_route *routes, unsigned count)
{
	size_t found = 0, filled = 0;
	int got;

	if (!transmit->index->operates)
		return nc_transmit_routes(transmit, routes, count);
	if (count && !routes)
		return -EINVAL;
	do {
		unsigned more = count - (unsigned)filled;

		if (more > ROUTES_ONCE)
			more = ROUTES_ONCE;
		got = call_routes(transmit->index, filled, routes + filled, more, &found);
		if (got < 0)
			return got;
		filled += (size_t)got;
	} while (got && filled < count && filled < found);
	/* The owner has fewer routes now than in an earlier reply: return the number received. */
	return (int)(filled < count ? filled : found > filled ? found : filled);
}

int nc_admin_route_set(struct nc_transmit *transmit, const char *address, int method)
{
	struct nc_wire_call call = {.op = NC_WIRE_ROUTE, .who = (uint32_t)method};
	struct nc_rpc_client_load load = {.bytes = address};
	struct nc_wire_reply reply;

	if (!transmit->index->operates)
		return nc_transmit_route_set(transmit, address, method);
	if (!address || strlen(address) > ADDRESS_MAX)
		return -EINVAL;
	call.length = (uint32_t)strlen(address);
	return nc_rpc_client_call(&transmit->index->rpc, &call, &load, &reply);
}

int nc_admin_on_purge(struct nc_index *index, NC_purger purger, void *context)
{
	if (!index->owner)
		return -EPERM;
	pthread_mutex_lock(&index->purge.lock);
	index->purge.purger = purger;
	index->purge.context = context;
	pthread_mutex_unlock(&index->purge.lock);
	return 0;
}

int nc_admin_purge(struct nc_index *index, const char *name)
{
	struct nc_wire_call call = {.op = NC_WIRE_PURGE};
	struct nc_rpc_client_load load = {.bytes = name};
	struct nc_wire_reply reply;
	int error;

	if (!name || strlen(name) > NC_PURGE_MAX)
		return -EINVAL;
	if (index->owner)
		return forget(&index->purge, name);
	if (!index->operates)
		return -EPERM;
	call.length = (uint32_t)strlen(name);
	error = nc_rpc_client_call(&index->rpc, &call, &load, &reply);
	if (error)
		return error;
	return reply.size <= INT_MAX ? (int)reply.size : INT_MAX;
}
