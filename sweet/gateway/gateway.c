/* SPDX-License-Identifier: MIT */
/*
 * gateway.c - see gateway.h.  Runs on the main thread; only the release of a site may run on
 * any thread.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include <nabc-worker.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "backend/protocol.h"
#include "base/container.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/site.h"
#include "event/loop.h"
#include "gateway/gateway.h"
#include "gateway/process-leaving.h"
#include "log/log.h"
#include "spawn/program-log.h"
#include "spawn/spawn-child.h"
#include "spawn/spawn-table.h"
#include "upstream/name-lookup.h"
#include "upstream/resolver.h"

static const struct backend_protocol *const protocols[] = {
	[POOL_WORKER] = &worker_protocol,
	[POOL_CGI] = &cgi_protocol,
	[POOL_FASTCGI] = &fastcgi_protocol,
	[POOL_HTTP] = &http_protocol,
};

/* --- the life of a pool ------------------------------------------------------------ */

static void pool_free(struct gateway_pool *pool)
{
	pool_config_unref(pool->settings);
	g_free(pool->queues);
	g_free(pool->pages);
	g_free(pool->ahead);
	g_free(pool);
}

/* No call of a transaction can use the pool any more. */
static void gateway_over(struct loop_task *task)
{
	struct gateway_pool *pool = container_of(task, struct gateway_pool, over);

	log_notice("pool %s: ending", pool->settings->name);
	pool->protocol->end(pool);
}

static void gateway_pool_ended(struct gateway_pool *pool)
{
	g_ptr_array_remove_fast(pool->gateway->pools, pool);
	pool->protocol->close(pool);
	pool_free(pool);
}

/* Drops one reference; returns how many are left.  At 0 the pool has been freed. */
static unsigned drop_use(struct gateway_pool *pool)
{
	unsigned left = atomic_fetch_sub_explicit(&pool->users, 1, memory_order_acq_rel) - 1;

	if (left == 0)
		pool_free(pool);
	return left;
}

/* May run on any thread. */
static void gateway_release_pool(struct gateway_pool *pool)
{
	struct gateway *gateway = pool->gateway;

	/* Only the gateway's own reference is left: no configuration uses the pool again. */
	if (drop_use(pool) == 1 && gateway)
		loop_post(gateway->main->loop, &pool->over);
}

static struct gateway_pool *open_pool(struct gateway *gateway, const struct pool_config *settings,
				      char **why)
{
	struct gateway_pool *pool;
	unsigned threads = gateway->server->threads;
	int error;

	if (settings->protocol >= G_N_ELEMENTS(protocols) || !protocols[settings->protocol]) {
		*why = g_strdup_printf("pool \"%s\": this server does not support %s",
				       settings->name, pool_protocols[settings->protocol]);
		return NULL;
	}
	pool = g_new0(struct gateway_pool, 1);
	pool->gateway = gateway;
	pool->server = gateway->server;
	pool->settings = pool_config_ref(settings);
	pool->protocol = protocols[settings->protocol];
	pool->over.run = gateway_over;
	pool->ended = gateway_pool_ended;
	atomic_init(&pool->users, 1);
	pool->fresh = gateway->started;
	pool->queues = g_new0(struct call_queue, threads);
	for (unsigned i = 0; i < threads; i++) {
		pool->queues[i].room.task.run = call_queue_room_task;
		pool->queues[i].pool = pool;
		pool->queues[i].thread = gateway->server->per_thread[i];
	}
	error = pool->protocol->open(pool);
	if (!error)
		return pool;
	*why = g_strdup_printf("pool \"%s\": cannot start: %s", settings->name, strerror(-error));
	pool->protocol->close(pool);
	pool_free(pool);
	return NULL;
}

/*
 * Adds a reference, unless only the gateway has one: then the pool is about to end.  In one step:
 * another thread may release the last configuration meanwhile.
 */
static bool add_use(struct gateway_pool *pool)
{
	unsigned users = atomic_load_explicit(&pool->users, memory_order_relaxed);

	while (users > 1)
		if (atomic_compare_exchange_weak_explicit(&pool->users, &users, users + 1,
							  memory_order_relaxed,
							  memory_order_relaxed))
			return true;
	return false;
}

/* Returns the running pool with the same settings, with a reference, or NULL. */
static struct gateway_pool *find(struct gateway *gateway, const struct pool_config *settings)
{
	for (unsigned i = 0; i < gateway->pools->len; i++) {
		struct gateway_pool *pool = gateway->pools->pdata[i];

		if (pool_config_same(pool->settings, settings) && add_use(pool))
			return pool;
	}
	return NULL;
}

int gateway_use(struct gateway *gateway, struct site *site, char **why)
{
	const struct config *config = site->config;

	if (!spawn_table_knows_variables(gateway->server->spawn_table, config, why))
		return -EINVAL;
	site->release_pool = gateway_release_pool;
	for (unsigned i = 0; i < config->pool_count; i++) {
		const struct pool_config *settings = config->pools[i];
		struct gateway_pool *pool = find(gateway, settings);

		if (!pool) {
			pool = open_pool(gateway, settings, why);
			/* The pools before it end with the site. */
			if (!pool)
				return -EINVAL;
			g_ptr_array_add(gateway->pools, pool);
			atomic_fetch_add_explicit(&pool->users, 1, memory_order_relaxed);
		}
		site->pools[i] = pool;
	}
	gateway->started = true;
	return 0;
}

struct resolver *gateway_resolver(struct gateway *gateway)
{
	if (!gateway->resolver)
		gateway->resolver = resolver_open(gateway->main->loop, name_lookup);
	return gateway->resolver;
}

bool gateway_settle(struct gateway *gateway, unsigned ms, char **why)
{
	spawn_table_settle(gateway->server->spawn_table, ms);
	if (gateway->resolver)
		resolver_settle(gateway->resolver, ms);
	gateway->settled = true;
	*why = g_steal_pointer(&gateway->why);
	return !*why;
}

void gateway_renew(const struct site *site)
{
	for (unsigned i = 0; i < site->config->pool_count; i++) {
		struct gateway_pool *pool = site->pools[i];

		if (pool->protocol->renew && !pool->fresh)
			pool->protocol->renew(pool);
		pool->fresh = false;
	}
}

void gateway_thread_ended(struct gateway *gateway, struct thread *thread)
{
	for (unsigned i = 0; i < gateway->pools->len; i++) {
		struct gateway_pool *pool = gateway->pools->pdata[i];

		if (pool->protocol->thread_ended)
			pool->protocol->thread_ended(pool, thread);
	}
}

struct gateway *gateway_open(struct server *server)
{
	struct gateway *gateway = g_new0(struct gateway, 1);

	gateway->server = server;
	gateway->main = server->per_thread[0];
	gateway->pools = g_ptr_array_new();
	gateway->pid = (int)getpid();
	gateway->program_log = program_log_open(gateway->main->loop);
	return gateway;
}

void gateway_close(struct gateway *gateway, unsigned ms, int hurry)
{
	if (!gateway)
		return;
	gateway->closing = true;
	for (unsigned i = 0; i < gateway->pools->len; i++)
		((struct gateway_pool *)gateway->pools->pdata[i])->closing = true;
	while (gateway->pools->len) {
		struct gateway_pool *pool =
			g_ptr_array_remove_index_fast(gateway->pools, gateway->pools->len - 1);

		for (unsigned i = 0; i < gateway->server->threads; i++)
			call_queue_abandon(&pool->queues[i]);
		pool->protocol->close(pool);
		/* Sites may still refer to it. */
		pool->gateway = NULL;
		drop_use(pool);
	}
	resolver_close(gateway->resolver);
	process_leaving_await(gateway, ms, hurry);
	spawn_children_free(&gateway->leaving);
	program_log_close(gateway->program_log);
	g_ptr_array_free(gateway->pools, TRUE);
	g_free(gateway->why);
	g_free(gateway);
}
