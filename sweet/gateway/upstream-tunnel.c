/* SPDX-License-Identifier: MIT */
/*
 * upstream-tunnel.c - connections of clients that are passed to an application in another protocol,
 * as WebSocket: their bytes, and their end.
 *
 * A tunnel has no permit, which ordinary requests would wait for, but counts for limits of its own.
 * The request for it counts from the moment that the application gets it.
 */
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
#include "event/loop.h"
#include "gateway/tunnel-limits.h"
#include "gateway/upstream-internal.h"
#include "log/log.h"
#include "upstream/permits.h"
#include "upstream/upstream-link.h"

bool upstream_tunnel_enter(struct backend_call *call)
{
	return tunnel_limits_enter(call, &upstream_call_of(call)->tunnel);
}

void upstream_tunnel_leave(struct backend_call *call)
{
	tunnel_limits_leave(call, &upstream_call_of(call)->tunnel);
}

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
