/* SPDX-License-Identifier: MIT */
/*
 * upstream-names.c - the addresses of a pool's applications that are names: looks them up, and
 * passes what changes to the threads.
 *
 * The main thread writes the table of the addresses and asks the threads to read it.  A thread that
 * finds an address gone closes its idle links to it; the others end with their requests.
 */
#include <glib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "base/address.h"
#include "base/balancer.h"
#include "base/container.h"
#include "base/list.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "event/loop.h"
#include "gateway/gateway.h"
#include "gateway/upstream-internal.h"
#include "log/log.h"
#include "upstream/capacity.h"
#include "upstream/name-lookup.h"
#include "upstream/permits.h"
#include "upstream/resolver.h"
#include "upstream/upstream-link.h"
#include "upstream/upstream-table.h"

#define LOGGED_MAX 8u /* addresses in a line of the log */

struct upstream_name {
	struct resolver_watch watch;
	struct upstream_pool *all;
	struct host_port to;
	unsigned number;
	bool short_of_places; /* the log says that some addresses are not used */
};

struct upstream_names {
	unsigned count;
	bool started;		 /* the threads use the pool */
	_Atomic bool none;	 /* there is no address, and every name has been looked up */
	struct loop_notice late; /* on the main thread: an address does not answer */
	struct upstream_pool *all;
	struct upstream_name names[];
};

/* --- on the main thread ----------------------------------------------------------------------- */

static int compare_texts(const void *one, const void *other)
{
	return strcmp(*(const char *const *)one, *(const char *const *)other);
}

static void log_addresses(const struct upstream_name *name)
{
	const struct upstream_table *table = &name->all->table;
	const char *texts[BALANCER_MAX] = {NULL};
	unsigned count = 0;
	GString *line = g_string_new(NULL);

	/* Only this thread writes the table. */
	for (unsigned i = 0; i < BALANCER_MAX; i++)
		if (table->used >> i & 1 && table->places[i].name == name->number)
			texts[count++] = table->places[i].address.text;
	qsort(texts, count, sizeof(texts[0]), compare_texts);
	for (unsigned i = 0; i < count && i < LOGGED_MAX; i++)
		g_string_append_printf(line, "%s%s", i ? ", " : "", texts[i]);
	if (count > LOGGED_MAX)
		g_string_append_printf(line, " and %u more", count - LOGGED_MAX);
	log_notice("pool %s: \"%s:%u\" is %s", name->all->pool->settings->name, name->to.host,
		   name->to.port, line->str);
	g_string_free(line, TRUE);
}

static void log_left_out(struct upstream_name *name, unsigned left_out)
{
	if (left_out && !name->short_of_places)
		log_warning("pool %s: \"%s:%u\": %u addresses are not used: there are too many, or "
			    "requests to former ones still run",
			    name->all->pool->settings->name, name->to.host, name->to.port,
			    left_out);
	name->short_of_places = left_out > 0;
}

static void note_none(struct upstream_pool *all)
{
	struct upstream_names *names = all->names;
	bool looked = true;

	for (unsigned i = 0; i < names->count; i++)
		looked = looked && resolver_has_looked(&names->names[i].watch);
	atomic_store_explicit(&names->none, looked && !all->table.used, memory_order_relaxed);
}

/* Calls may wait for the first lookup. */
static void notify_threads(struct upstream_pool *all)
{
	for (unsigned i = 0; i < all->count; i++) {
		struct upstream_channel *channel = &all->channels[i];

		if (!channel->ended)
			loop_notify(channel->thread->loop, &channel->addresses);
	}
}

static void take_addresses(struct upstream_name *name)
{
	const struct name_addresses *found = resolver_addresses(&name->watch);
	struct upstream_pool *all = name->all;
	struct upstream_table_change change;

	if (!found->count)
		return;
	change = upstream_table_set(&all->table, name->number, found, name->to.port);
	log_left_out(name, change.left_out);
	if (!change.added && !change.removed)
		return;
	for (unsigned i = 0; i < BALANCER_MAX; i++)
		if (change.removed >> i & 1)
			permit_place_shut(&all->permits, i);
	/* Before the permits: a thread that gets one finds the address. */
	if (all->names->started)
		notify_threads(all);
	for (unsigned i = 0; i < BALANCER_MAX; i++)
		if (change.added >> i & 1) {
			/* What was learned is of another application. */
			capacity_forget(&all->capacities[i]);
			permits_limit(&all->permits, i, &all->capacities[i].limit);
			permit_place_open(&all->permits, i);
		}
	log_addresses(name);
}

static void names_looked_up(struct resolver_watch *watch)
{
	struct upstream_name *name = container_of(watch, struct upstream_name, watch);
	struct upstream_names *names = name->all->names;
	bool none = atomic_load_explicit(&names->none, memory_order_relaxed);

	take_addresses(name);
	note_none(name->all);
	if (names->started && none != atomic_load_explicit(&names->none, memory_order_relaxed))
		notify_threads(name->all);
}

static void names_on_late(struct loop_task *task)
{
	struct upstream_names *names = container_of(task, struct upstream_names, late.task);

	loop_notice_begin(&names->late);
	for (unsigned i = 0; i < names->count; i++)
		if (names->names[i].watch.name)
			resolver_hurry(&names->names[i].watch);
}

void upstream_names_open(struct upstream_pool *all, const struct host_port *hosts, unsigned count)
{
	struct upstream_names *names = g_malloc0(sizeof(*names) + count * sizeof(names->names[0]));

	all->names = names;
	names->count = count;
	names->all = all;
	names->late.task.run = names_on_late;
	for (unsigned i = 0; i < BALANCER_MAX; i++)
		if (!(all->table.used >> i & 1))
			permit_place_shut(&all->permits, i);
	for (unsigned i = 0; i < count; i++) {
		struct upstream_name *name = &names->names[i];

		*name = (struct upstream_name){.watch.looked_up = names_looked_up,
					       .all = all,
					       .to = hosts[i],
					       .number = i};
		resolver_watch_start(gateway_resolver(all->pool->gateway), &name->watch,
				     name->to.host, all->pool->settings->resolve_ms);
		/* Another pool, or this one before a reload, may have looked it up. */
		take_addresses(name);
	}
	note_none(all);
}

void upstream_names_start(struct upstream_pool *all)
{
	if (all->names)
		all->names->started = true;
}

void upstream_names_stop(struct upstream_pool *all)
{
	for (unsigned i = 0; all->names && i < all->names->count; i++)
		if (all->names->names[i].watch.name)
			resolver_watch_stop(&all->names->names[i].watch);
}

void upstream_names_close(struct upstream_pool *all)
{
	upstream_names_stop(all);
	g_clear_pointer(&all->names, g_free);
}

/* --- on any thread ---------------------------------------------------------------------------- */

bool upstream_names_none(const struct upstream_pool *all)
{
	return all->names && atomic_load_explicit(&all->names->none, memory_order_relaxed);
}

void upstream_names_late(struct upstream_channel *channel)
{
	struct upstream_pool *all = channel->pool->own;

	if (all->names)
		loop_notify(all->pool->gateway->main->loop, &all->names->late);
}

/* --- on the pool's threads -------------------------------------------------------------------- */

static void leave(struct upstream_channel *channel, struct upstream *upstream)
{
	struct upstream_place *place = upstream->own;

	upstream->out = true;
	list_each (struct upstream_link, link, &place->resting, resting)
		upstream_idled(link);
	if (!place->links)
		upstream_names_release(channel, upstream);
}

static void enter(struct upstream *upstream, const struct listen_address *address)
{
	struct upstream_place *place = upstream->own;

	upstream->address = *address;
	upstream->failures = 0;
	upstream->aside_until_ms = 0;
	upstream->out = false;
	place->keeps = false;
	place->measured = false;
}

void upstream_names_read(struct upstream_channel *channel)
{
	struct upstream_pool *all = channel->pool->own;
	struct balancer *balancer = channel->balancer;
	struct listen_address addresses[BALANCER_MAX];
	uint64_t known = 0, used;

	for (unsigned i = 0; i < BALANCER_MAX; i++)
		known |= (uint64_t)!balancer->all[i].out << i;
	used = upstream_table_read(&all->table, known, addresses);
	balancer->count = 0;
	for (unsigned i = 0; i < BALANCER_MAX; i++) {
		if (used >> i & 1)
			balancer->count = i + 1;
		if (used & ~known & UINT64_C(1) << i)
			enter(&balancer->all[i], &addresses[i]);
		else if (known & ~used & UINT64_C(1) << i)
			leave(channel, &balancer->all[i]);
	}
}

void upstream_names_release(struct upstream_channel *channel, const struct upstream *upstream)
{
	struct upstream_pool *all = channel->pool->own;

	upstream_table_release(&all->table, channel->thread->number, upstream->number);
}

void upstream_names_news(struct loop_task *task)
{
	struct upstream_channel *channel =
		container_of(task, struct upstream_channel, addresses.task);

	loop_notice_begin(&channel->addresses);
	upstream_names_read(channel);
	call_queue_room(channel->pool, channel->thread);
}
