/* SPDX-License-Identifier: MIT */
/*
 * server.h - the server's end of a backend whose worker is not a process: the target
 * writes the worker's data (libnabc/worker/backend.c).
 */
#ifndef FUZZ_SERVER_H
#define FUZZ_SERVER_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "base/fragment.h"
#include "base/id.h"
#include "cache/index.h"
#include "cache/remote-member.h"
#include "membership/serve.h"
#include "os/segment.h"
#include "store/store.h"
#include "store/pool.h"
#include "store/unit.h"
#include "wire/channel.h"
#include "worker/backend.h"

#include "descriptors.h"
#include "fuzz.h"

#define SERVER_MIB ((size_t)1 << 20)
#define SERVER_PAGE ((size_t)4096)
#define SERVER_MEMORY (16 * SERVER_PAGE)
#define SERVER_SLOTS 8u /* of the worker's table, that are used */

static struct nc_index server_cache;
static struct nc_serve server_attach;
static struct NC_backend *server;
static _Atomic unsigned server_count;
static struct nc_channel server_channel; /* the worker's end of the only channel */
static unsigned server_descriptors;
static size_t server_unit; /* one of the server's own */

/* Another function starts it later. */
static inline int server_start(void *context, int socket, char *const *environment, pid_t *pid,
			       int *pidfd)
{
	(void)context;
	(void)socket;
	(void)environment;
	(void)pidfd;
	*pid = 0;
	return 0;
}

static inline void server_make_unit(void)
{
	struct nc_layout layout;
	struct nc_unit *unit;

	MUST(nc_layout_init(&layout, 5000, 0) == 0);
	MUST(nc_index_alloc(&server_cache, &layout, NC_KIND_RECYCLED, &unit) == 0);
	MUST(nc_index_insert(&server_cache, unit, NULL, &server_unit) == 0);
}

static inline void server_open(void)
{
	static const struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = SERVER_MIB, .member_size = SERVER_MEMORY,
				      .flags = NC_CACHE_NO_URING);
	const struct NC_backend_options how =
		NC_BACKEND_OPTIONS_INIT(.channels = 1, .memory = SERVER_MEMORY,
					.start = server_start);

	server_descriptors = open_descriptors();
	MUST(nc_index_init_owner(&server_cache, &options) == 0);
	/* So that the inputs name the same units in each run. */
	server_cache.epoch = (struct nc_id_epoch){.generation = 1};
	server_cache.own.units.generation = 1;
	MUST(nc_serve_init(&server_attach, &server_cache) == 0);
	MUST(nc_backend_open(&server_attach, &server_count, &how, &server) == 0);
	nc_channel_init(&server_channel, server->queues.base, 0, NC_CHANNEL_QUEUE);
	server_make_unit();
}

static inline void server_close(void)
{
	nc_backend_end(server);
	nc_serve_fini(&server_attach);
	nc_index_fini(&server_cache);
	MUST(open_descriptors() == server_descriptors);
}

static inline struct nc_unit_shared *server_entry(uint32_t slot)
{
	return (struct nc_unit_shared *)(void *)server->remote->store->segment.base + slot;
}

/* The offset of the worker's first unit. */
static inline size_t server_first(void)
{
	return server->remote->store->first;
}

static inline size_t server_id(uint32_t slot, unsigned generation)
{
	return nc_id(server->remote->number, slot, generation);
}

/* Reads all bytes of a range, as a send would. */
static inline void server_read(const struct NC_range *range)
{
	volatile char sum = 0;
	struct nc_view view;
	const char *base;

	/* It is held: nothing that the worker does invalidates it. */
	MUST(nc_index_hold(&server_cache, range->id, true, &view) == 0);
	MUST(view.remote == server->remote);
	MUST(range->offset <= view.unit->layout.size &&
	     range->length <= view.unit->layout.size - range->offset);
	base = nc_unit_base(view.unit);
	for (size_t at = range->offset, end = at + range->length, run; at < end; at += run)
		sum += base[nc_layout_at(&view.unit->layout, at, &run)];
	(void)sum;
	MUST(nc_index_release(&server_cache, range->id) == 0);
}

static inline void server_check(const struct NC_response *response)
{
	volatile char sum = 0;

	if (response->flags & (NC_RESPONSE_PIECE | NC_RESPONSE_ABORTED | NC_RESPONSE_TAKEN))
		MUST(response->status == 0 && response->headers_length == 0);
	else
		MUST(response->status >= 200 && response->status <= 599);
	for (size_t i = 0; i < response->headers_length; i++)
		sum += response->headers[i];
	(void)sum;
	MUST(response->range_count <= NC_RESPONSE_RANGES_MAX);
	for (unsigned i = 0; i < response->range_count; i++)
		server_read(&response->ranges[i]);
}

static inline void server_release(const struct NC_response *response)
{
	/* Released as it was received: by then the worker may have overwritten the record. */
	for (unsigned i = 0; i < response->range_count; i++)
		MUST(nc_index_release(&server_cache, response->ranges[i].id) == 0);
}

#endif
