/* SPDX-License-Identifier: MIT */
/*
 * tunnel-limits.c - see tunnel-limits.h.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/client-limit.h"
#include "gateway/tunnel-limits.h"
#include "log/log.h"

/* Returns the key whose limit does not permit it; NULL: it is counted. */
static const char *count_one(struct backend_call *call, struct tunnel_count *count)
{
	const struct pool_config *settings = call->pool->settings;
	const struct transaction *transaction = call->transaction;
	uint64_t before = atomic_fetch_add_explicit(&call->pool->tunnels, 1, memory_order_relaxed);

	count->counted = true;
	if (settings->tunnels && before >= settings->tunnels)
		return "max-tunnels";
	if (!settings->tunnels_per_client)
		return NULL;
	count->client = client_limits_enter(transaction->thread->server->limits,
					    client_limits_scope(settings->name),
					    transaction->peer.remote, settings->tunnels_per_client);
	return count->client ? NULL : "tunnels-per-client";
}

bool tunnel_limits_enter(struct backend_call *call, struct tunnel_count *count)
{
	const char *key = count_one(call, count);

	if (!key)
		return true;
	tunnel_limits_leave(call, count);
	atomic_fetch_add_explicit(&call->pool->tunnels_refused, 1, memory_order_relaxed);
	log_info("%s: pool %s: answered 503: more than %s", call->transaction->peer.remote_addr,
		 call->pool->settings->name, key);
	return false;
}

void tunnel_limits_leave(struct backend_call *call, struct tunnel_count *count)
{
	if (!count->counted)
		return;
	count->counted = false;
	if (count->client)
		client_limits_leave(call->transaction->thread->server->limits, count->client);
	count->client = NULL;
	atomic_fetch_sub_explicit(&call->pool->tunnels, 1, memory_order_relaxed);
}
