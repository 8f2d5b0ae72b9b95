/* SPDX-License-Identifier: MIT */
/*
 * upstream-pool.c - pools of applications with sockets, and the life of their calls.
 */
#include <assert.h>
#include <errno.h>
#include <glib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "backend/protocol.h"
#include "backend/response-stream.h"
#include "base/address.h"
#include "base/balancer.h"
#include "base/container.h"
#include "base/list.h"
#include "base/timer.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/site.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "event/sender.h"
#include "gateway/cgi-env.h"
#include "gateway/gateway.h"
#include "gateway/pool-process.h"
#include "gateway/upstream-internal.h"
#include "log/log.h"
#include "upstream/capacity.h"
#include "upstream/permits.h"
#include "upstream/upstream-link.h"
#include "upstream/upstream-table.h"

#define OWN_MS 3600000 /* ms that a link is kept if only this server uses the application */

static_assert(PERMIT_STALL_MS == POOL_PROCESS_SLOW_MS,
	      "requests of all pools move after the same time");

/* --- a call's life ---------------------------------------------------------------------------- */

static void break_off(struct backend_call *call, const char *fault)
{
	struct upstream_call *own = upstream_call_of(call);
	struct upstream_channel *channel = upstream_channel_of(call);

	/* Without a link the response is complete, and the body is not read any more. */
	if (!own->link)
		return;
	upstream_drop(own->link);
	response_stream_end(&own->stream, fault);
	call_queue_room(channel->pool, channel->thread);
}

static void upstream_too_late(struct backend_call *call)
{
	struct upstream_call *own = upstream_call_of(call);
	struct upstream_channel *channel = upstream_channel_of(call);

	if (call->state == CALL_ANSWERED) {
		break_off(call, "stopped writing in the middle of its response");
		return;
	}
	if (own->link) {
		log_warning("pool %s: %s: took too long to answer", call->pool->settings->name,
			    own->link->upstream->address.text);
		(void)balancer_failed(own->link->upstream, loop_now_ms(channel->thread->loop));
		upstream_drop(own->link);
	}
	backend_call_fail(call, 504, "The application took too long to answer.");
	call_queue_room(channel->pool, channel->thread);
}

static void upstream_body_lost(struct backend_call *call)
{
	break_off(call, "the request body cannot be read back from disk");
}

static void upstream_gone(struct backend_call *call)
{
	struct upstream_call *own = upstream_call_of(call);

	if (own->link && own->link->reading)
		return; /* the reader checks for this */
	backend_call_fail(call, 502, NULL);
}

static void upstream_finish(struct backend_call *call)
{
	struct upstream_call *own = upstream_call_of(call);
	bool has_link = own->link;

	timer_stop(&own->later);
	if (has_link)
		upstream_abandon(own->link);
	upstream_tunnel_leave(call);
	upstream_message_free(&own->message);
	sender_close(&own->sender);
	response_stream_clear(&own->stream);
	/* The client disconnected during the response: queued calls may use the permit. */
	if (has_link)
		call_queue_room(call->pool, call->transaction->thread);
}

/* --- pools ------------------------------------------------------------------------------------ */

/* Each process that the server starts has one connection. */
static unsigned permits_of(const struct pool_config *settings, unsigned threads)
{
	return settings->command ? settings->processes : settings->in_flight * threads;
}

static void open_thread(struct upstream_channel *channel, struct gateway_pool *pool,
			struct thread *thread)
{
	const struct pool_config *settings = pool->settings;
	struct upstream_pool *all = pool->own;
	unsigned count = all->permits.place_count;

	channel->pool = pool;
	channel->thread = thread;
	channel->keep_ms = settings->command ? OWN_MS : settings->keep_ms;
	channel->user = &all->permits.users[thread->number];
	channel->user->loop = thread->loop;
	channel->user->news.run = upstream_news;
	channel->addresses.task.run = upstream_names_news;
	channel->links = g_ptr_array_new();
	channel->places = g_new0(struct upstream_place, count);
	channel->balancer = g_malloc0(sizeof(*channel->balancer) + count * sizeof(struct upstream));
	channel->balancer->count = count;
	for (unsigned i = 0; i < count; i++) {
		struct upstream *upstream = &channel->balancer->all[i];

		upstream->address = all->table.places[i].address;
		upstream->out = !(all->table.used >> i & 1);
		upstream->number = i;
		upstream->own = &channel->places[i];
		channel->places[i].channel = channel;
		channel->places[i].capacity = all->capacities ? &all->capacities[i] : NULL;
	}
	if (all->names)
		upstream_names_read(channel);
}

/* Sorts what upstream has: the addresses into the table.  Returns the number of names. */
static unsigned read_addresses(struct upstream_pool *all, char **texts,
			       struct host_port hosts[BALANCER_MAX])
{
	struct listen_address addresses[BALANCER_MAX];
	unsigned count = 0, names = 0;

	/* They were checked when the configuration was read. */
	for (; texts && *texts && count + names < BALANCER_MAX; texts++)
		if (address_parse(*texts, &addresses[count]))
			count++;
		else
			names += address_parse_name(*texts, &hosts[names]);
	upstream_table_init(&all->table, all->pool->server->threads, names);
	for (unsigned i = 0; i < count; i++)
		upstream_table_add(&all->table, &addresses[i]);
	return names;
}

/* The processes that the server starts are known; what others serve is learned. */
static void set_limits(struct upstream_pool *all, unsigned count)
{
	unsigned total = permits_of(all->pool->settings, all->count);

	permits_init(&all->permits, all->count, count, total);
	if (all->pool->settings->command)
		return;
	all->capacities = g_new(struct capacity, count);
	for (unsigned i = 0; i < count; i++)
		capacity_init(&all->capacities[i], total);
}

static int open_pool(struct gateway_pool *pool, const struct upstream_wire *wire)
{
	struct server *server = pool->server;
	struct host_port hosts[BALANCER_MAX];
	struct upstream_pool *all =
		g_malloc0(sizeof(*all) + server->threads * sizeof(all->channels[0]));
	struct listen_address own;
	unsigned names;
	int error = 0;

	pool->own = all;
	all->wire = wire;
	all->pool = pool;
	all->has_members =
		wire == &fastcgi_wire && pool->gateway->main->config_ref->config->cache_socket;
	all->count = server->threads;
	names = read_addresses(all, pool->settings->upstream, hosts);
	set_limits(all, names ? BALANCER_MAX : pool->settings->command ? 1 : all->table.fixed);
	if (pool->settings->command) {
		error = fastcgi_spawn_open(&all->spawn, pool, &own);
		if (error)
			return error;
		upstream_table_add(&all->table, &own);
	}
	if (names)
		upstream_names_open(all, hosts, names);
	for (unsigned i = 0; i < all->count; i++)
		open_thread(&all->channels[i], pool, server->per_thread[i]);
	upstream_names_start(all);
	return 0;
}

static void upstream_pool_ended(struct loop_task *task)
{
	struct upstream_pool *all = container_of(task, struct upstream_pool, ended);

	if (all->spawn)
		pool_processes_end(all->pool);
	else
		all->pool->ended(all->pool);
}

/* The thread's loop has ended but may hold the sockets until its close: shuts them down. */
static void close_resting(struct upstream_channel *channel)
{
	for (unsigned i = 0; i < channel->balancer->count; i++) {
		list_each (struct upstream_link, link, &channel->places[i].resting, resting) {
			(void)shutdown(link->fd, SHUT_RDWR);
			upstream_idled(link);
		}
	}
}

/* The server ends: the remaining calls fail. */
static void close_links(struct upstream_channel *channel)
{
	while (channel->links->len) {
		struct upstream_link *link = channel->links->pdata[channel->links->len - 1];
		struct backend_call *call = link->user;

		if (call) {
			upstream_drop(link);
			backend_call_fail(call, 502, NULL);
		} else {
			if (!link->abandoned)
				upstream_forget(link);
			upstream_close_link(link);
		}
	}
}

static void upstream_end_thread(struct loop_task *task)
{
	struct upstream_channel *channel = container_of(task, struct upstream_channel, end);
	struct upstream_pool *all = channel->pool->own;

	timer_stop(&channel->stall);
	timer_stop(&channel->look);
	close_links(channel);
	if (atomic_fetch_sub_explicit(&all->leaving, 1, memory_order_acq_rel) == 1)
		loop_post(all->pool->gateway->main->loop, &all->ended);
}

static void upstream_end_pool(struct gateway_pool *pool)
{
	struct upstream_pool *all = pool->own;

	/* Tasks that were posted before run before upstream_end_thread(). */
	upstream_names_stop(all);
	permits_close(&all->permits);
	all->ended.run = upstream_pool_ended;
	atomic_store_explicit(&all->leaving, all->count, memory_order_release);
	for (unsigned i = 0; i < all->count; i++) {
		all->channels[i].end.run = upstream_end_thread;
		loop_post(all->channels[i].thread->loop, &all->channels[i].end);
	}
}

static void upstream_close_pool(struct gateway_pool *pool)
{
	struct upstream_pool *all = pool->own;

	upstream_names_stop(all);
	permits_close(&all->permits);
	for (unsigned i = 0; i < all->count; i++) {
		struct upstream_channel *channel = &all->channels[i];

		timer_stop(&channel->stall);
		timer_stop(&channel->look);
		close_links(channel);
		g_ptr_array_free(channel->links, TRUE);
		g_free(channel->balancer);
		g_free(channel->places);
	}
	if (all->spawn)
		fastcgi_spawn_close(all->spawn);
	upstream_names_close(all);
	upstream_table_clear(&all->table);
	for (unsigned i = 0; all->capacities && i < all->permits.place_count; i++)
		capacity_clear(&all->capacities[i]);
	g_free(all->capacities);
	permits_clear(&all->permits);
	g_free(all);
	pool->own = NULL;
}

/* Other threads can use the permits of the thread that ended. */
static void upstream_thread_ended(struct gateway_pool *pool, struct thread *thread)
{
	struct upstream_pool *all = pool->own;
	struct upstream_channel *channel = &all->channels[thread->number];

	channel->ended = true;
	permit_user_gone(channel->user);
	close_resting(channel);
}

static void upstream_renew_pool(struct gateway_pool *pool)
{
	const struct upstream_pool *all = pool->own;

	if (all->spawn)
		pool_processes_renew(pool);
}

static bool upstream_is_unavailable(struct gateway_pool *pool)
{
	const struct upstream_pool *all = pool->own;

	return all->spawn && pool_processes_fail(pool);
}

static char **upstream_addresses(const struct gateway_pool *pool)
{
	struct upstream_pool *all = pool->own;
	struct listen_address addresses[BALANCER_MAX];
	GPtrArray *texts;
	uint64_t used;

	/* The name of the server's own socket is of no use to an operator. */
	if (all->spawn)
		return NULL;
	used = upstream_table_read(&all->table, 0, addresses);
	texts = g_ptr_array_new();
	for (unsigned i = 0; i < BALANCER_MAX; i++)
		if (used >> i & 1)
			g_ptr_array_add(texts, g_strdup(addresses[i].text));
	g_ptr_array_add(texts, NULL);
	return (char **)g_ptr_array_free(texts, FALSE);
}

static int upstream_open_fastcgi(struct gateway_pool *pool)
{
	return open_pool(pool, &fastcgi_wire);
}

static int upstream_open_http(struct gateway_pool *pool)
{
	return open_pool(pool, &http_wire);
}

#define SHARED                                                                                     \
	.end = upstream_end_pool, .close = upstream_close_pool, .renew = upstream_renew_pool,      \
	.thread_ended = upstream_thread_ended, .addresses = upstream_addresses,                    \
	.is_unavailable = upstream_is_unavailable, .submit = upstream_submit,                      \
	.body = upstream_body, .body_lost = upstream_body_lost, .too_late = upstream_too_late,     \
	.gone = upstream_gone, .finish = upstream_finish

const struct backend_protocol fastcgi_protocol = {
	.redirects = true,
	.wants_length = true,
	.describe = cgi_env_write,
	.open = upstream_open_fastcgi,
	SHARED,
};

const struct backend_protocol http_protocol = {
	.validates = true,
	.frames_body = true,
	.complete = true,
	.describe = http_describe,
	.open = upstream_open_http,
	SHARED,
};
