/* SPDX-License-Identifier: MIT */
/*
 * upstream-tunnel.c - connections of clients that are passed to an application in another protocol,
 * as WebSocket: how many there may be, their bytes, and their end.
 *
 * A tunnel may last for hours, and most of the time it does nothing.  Therefore it has no permit,
 * which ordinary requests would wait for, but counts for limits of its own, of the pool and of the
 * client.  The request for it counts from the moment that the application gets it.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "backend/response-stream.h"
#include "base/balancer.h"
#include "base/container.h"
#include "base/timer.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/client-limit.h"
#include "event/loop.h"
#include "gateway/upstream-internal.h"
#include "log/log.h"
#include "upstream/permits.h"
#include "upstream/upstream-link.h"

/* --- limits ----------------------------------------------------------------------------------- */

/* Returns the key whose limit does not permit it; NULL: it is counted. */
static const char *count(struct backend_call *call)
{
	struct upstream_call *own = upstream_call_of(call);
	const struct pool_config *settings = call->pool->settings;
	const struct transaction *transaction = call->transaction;
	uint64_t before = atomic_fetch_add_explicit(&call->pool->tunnels, 1, memory_order_relaxed);

	own->counted = true;
	if (settings->tunnels && before >= settings->tunnels)
		return "max-tunnels";
	if (!settings->tunnels_per_client)
		return NULL;
	own->client = client_limits_enter(transaction->thread->server->limits,
					  client_limits_scope(settings->name),
					  transaction->peer.remote, settings->tunnels_per_client);
	return own->client ? NULL : "tunnels-per-client";
}

bool upstream_tunnel_enter(struct backend_call *call)
{
	const char *key = count(call);

	if (!key)
		return true;
	upstream_tunnel_leave(call);
	atomic_fetch_add_explicit(&call->pool->tunnels_refused, 1, memory_order_relaxed);
	log_info("%s: pool %s: answered 503: more than %s", call->transaction->peer.remote_addr,
		 call->pool->settings->name, key);
	return false;
}

void upstream_tunnel_leave(struct backend_call *call)
{
	struct upstream_call *own = upstream_call_of(call);

	if (!own->counted)
		return;
	own->counted = false;
	if (own->client)
		client_limits_leave(call->transaction->thread->server->limits, own->client);
	own->client = NULL;
	atomic_fetch_sub_explicit(&call->pool->tunnels, 1, memory_order_relaxed);
}

/* --- bytes ------------------------------------------------------------------------------------ */

static void silent(struct timer *timer)
{
	struct upstream_call *own = container_of(timer, struct upstream_call, later);
	struct backend_call *call = own->stream.call;
	struct upstream_channel *channel = upstream_channel_of(call);
	char who[256];

	log_info("%s: %s: no byte of %s for upgrade-timeout: closing",
		 call->transaction->peer.remote_addr, upstream_name(call, who, sizeof(who)),
		 own->upgrade);
	upstream_complete(own->link, NULL, false);
	call_queue_room(channel->pool, channel->thread);
}

void upstream_switched(struct upstream_link *link)
{
	struct upstream_call *own = upstream_call_of(link->user);

	/* Others may use the permit, also this loop: if calls wait, it gets news. */
	if (link->permit)
		permit_give(upstream_place_of(link)->channel->user, link->upstream->number, false);
	link->permit = false;
	own->switched = true;
	loop_timer_start(link->loop, &own->later, own->stream.call->pool->settings->upgrade_ms,
			 silent);
}

/* A tunnel has a time limit of its own, in both directions. */
void upstream_tunnel_awaited(struct backend_call *call)
{
	if (!upstream_call_of(call)->switched)
		backend_call_start_timer(call);
}

void upstream_tunnel_from_client(struct transaction *transaction, const char *data, size_t length)
{
	struct upstream_link *link = upstream_call_of(backend_call_of(transaction))->link;

	if (!link)
		return;
	upstream_switched(link);
	if (!length)
		upstream_link_end(link);
	else if (!upstream_link_write(link, data, length))
		transaction->owner->hold_input(transaction, true);
}
