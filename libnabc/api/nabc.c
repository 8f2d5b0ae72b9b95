/* SPDX-License-Identifier: MIT */
/*
 * nabc.c - the calls of nabc.h: each finds the process's cache, calls one function
 * of a lower folder, and sets errno on failure.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <nabc-async.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "api/registry.h"
#include "api/admin.h"
#include "base/fragment.h"
#include "base/versioned.h"
#include "cache/index.h"
#include "cache/prefetch.h"
#include "membership/collector.h"
#include "membership/handle.h"
#include "membership/serve.h"
#include "send/route.h"
#include "send/sendfile.h"
#include "send/transmit.h"
#include "store/member.h"
#include "store/unit-checksum.h"
#include "store/unit.h"
#include "worker/stream.h"

static_assert(sizeof(size_t) == 8, "cache ids need 64 bits");
static_assert(offsetof(struct NC_cache, index) == 0, "a handle's cache is one of the process's");

/* Size of each structure in version 1.0: callers know at least these bytes. */
#define CACHE_OPTIONS_LEAST 120u
#define SERVE_OPTIONS_LEAST 40u
#define ATTACH_OPTIONS_LEAST 32u
#define SENDFILE_LEAST 64u
#define INSERT_OPTIONS_LEAST 32u

static_assert(offsetof(struct NC_cache_options, member_share) == CACHE_OPTIONS_LEAST,
	      "grows at its end only");
static_assert(sizeof(struct NC_serve_options) == SERVE_OPTIONS_LEAST, "grows at its end only");
static_assert(sizeof(struct NC_attach_options) == ATTACH_OPTIONS_LEAST, "grows at its end only");
static_assert(offsetof(struct NC_send, cookie) == NC_API_SEND_LEAST, "grows at its end only");
static_assert(sizeof(struct NC_sendfile) == SENDFILE_LEAST, "grows at its end only");
static_assert(sizeof(struct NC_insert_options) == INSERT_OPTIONS_LEAST, "grows at its end only");

unsigned NC_version(void)
{
	return NC_VERSION;
}

size_t NC_sizeof(const char *type)
{
	static const struct {
		const char *name;
		size_t size;
	} types[] = {
		{"NC_handle", sizeof(NC_handle)},
		{"struct NC_attach_options", sizeof(struct NC_attach_options)},
		{"struct NC_backend_options", sizeof(struct NC_backend_options)},
		{"struct NC_cache_options", sizeof(struct NC_cache_options)},
		{"struct NC_cache_stat", sizeof(struct NC_cache_stat)},
		{"struct NC_completion", sizeof(struct NC_completion)},
		{"struct NC_grant_info", sizeof(struct NC_grant_info)},
		{"struct NC_hold", sizeof(struct NC_hold)},
		{"struct NC_insert_options", sizeof(struct NC_insert_options)},
		{"struct NC_range", sizeof(struct NC_range)},
		{"struct NC_request", sizeof(struct NC_request)},
		{"struct NC_response", sizeof(struct NC_response)},
		{"struct NC_route", sizeof(struct NC_route)},
		{"struct NC_send", sizeof(struct NC_send)},
		{"struct NC_sendfile", sizeof(struct NC_sendfile)},
		{"struct NC_serve_options", sizeof(struct NC_serve_options)},
		{"struct NC_stat", sizeof(struct NC_stat)},
		{"struct NC_text", sizeof(struct NC_text)},
		{"struct NC_worker_options", sizeof(struct NC_worker_options)},
	};

	for (size_t i = 0; type && i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, type) == 0)
			return types[i].size;
	return 0;
}

NC_cache *NC_cache_open(const struct NC_cache_options *options)
{
	struct NC_cache_options known;
	struct NC_cache *cache = NULL;
	int error = options ? nc_versioned_read(&known, sizeof(known), CACHE_OPTIONS_LEAST, options)
			    : 0;

	if (!error)
		error = nc_registry_open(options ? &known : NULL, &cache);
	nc_api_result(error);
	return cache;
}

NC_cache *NC_cache_attach(const char *path, const struct NC_attach_options *options)
{
	struct NC_attach_options known;
	struct NC_cache *cache = NULL;
	int error = path ? 0 : -EINVAL;

	if (!error && options)
		error = nc_versioned_read(&known, sizeof(known), ATTACH_OPTIONS_LEAST, options);
	if (!error)
		error = nc_registry_attach(path, options ? &known : NULL, &cache);
	nc_api_result(error);
	return cache;
}

int NC_cache_close(NC_cache *cache)
{
	return (int)nc_api_result(nc_registry_close(cache));
}

int NC_cache_stat(NC_cache *cache, struct NC_cache_stat *stat, size_t size)
{
	struct NC_cache_stat known;
	int error;

	cache = nc_registry_find(cache, &error);
	if (!cache || !stat || !size)
		return (int)nc_api_result(cache ? -EINVAL : error);
	error = nc_admin_counters(&cache->transmit, &known);
	if (!error)
		nc_versioned_write(stat, size, &known, sizeof(known));
	return (int)nc_api_result(error);
}

int NC_cache_serve(NC_cache *cache, const char *path, const struct NC_serve_options *options)
{
	struct NC_serve_options known;
	int error;

	cache = nc_registry_find(cache, &error);
	if (!cache)
		return (int)nc_api_result(error);
	error = path ? 0 : -EINVAL;
	if (!error && options)
		error = nc_versioned_read(&known, sizeof(known), SERVE_OPTIONS_LEAST, options);
	if (!error)
		error = cache->index.owner
				? nc_serve_listen(&cache->serve, path, options ? &known : NULL)
				: -EPERM;
	return (int)nc_api_result(error);
}

int NC_cache_fd(NC_cache *cache)
{
	int error;

	cache = nc_registry_find(cache, &error);
	if (!cache)
		return (int)nc_api_result(error);
	return (int)nc_api_result(cache->index.owner ? cache->serve.epoll
						     : nc_prefetch_fd(&cache->index.prefetch));
}

int NC_cache_dispatch(NC_cache *cache)
{
	int error, events;

	cache = nc_registry_find(cache, &error);
	if (!cache)
		return (int)nc_api_result(error);
	if (!nc_collector_enter(&cache->collector))
		return 0;
	events = nc_registry_dispatch(cache);
	nc_collector_leave(&cache->collector);
	return (int)nc_api_result(events);
}

/* Whether the handle has a unit that a second allocation would leak. */
static bool is_filling(const NC_handle *handle)
{
	struct NC_cache *cache = (struct NC_cache *)(void *)nc_handle_filling(handle);
	int error;

	/* A forked child has a copy of the handle, but neither the cache nor the unit. */
	return cache && nc_registry_find(cache, &error);
}

int NC_unit_alloc(NC_cache *cache, NC_handle *handle, size_t size, size_t fraglen,
		  enum NC_kind kind, unsigned flags)
{
	int error;

	cache = nc_registry_find(cache, &error);
	if (!cache)
		return (int)nc_api_result(error);
	if (is_filling(handle))
		return (int)nc_api_result(-EBUSY);
	/* First reclaim memory whose notifications have arrived. */
	nc_transmit_reap(&cache->transmit);
	return (int)nc_api_result(
		nc_handle_alloc(handle, &cache->index, size, fraglen, kind, flags));
}

int NC_alloc(NC_handle *handle, size_t size, size_t fraglen)
{
	return NC_unit_alloc(NULL, handle, size, fraglen, NC_KIND_AUTO, 0);
}

int NC_unit_grow(NC_handle *handle, size_t size)
{
	struct NC_cache *cache = (struct NC_cache *)(void *)nc_handle_filling(handle);

	if (is_filling(handle))
		nc_transmit_reap(&cache->transmit);
	return (int)nc_api_result(nc_handle_grow(handle, size));
}

int NC_free(NC_handle *handle)
{
	return (int)nc_api_result(nc_handle_free(handle));
}

ssize_t NC_unit_read(NC_handle *handle, int fd, size_t len, size_t handle_offset)
{
	return nc_api_result(nc_handle_read(fd, handle, handle_offset, len));
}

ssize_t NC_read(int fd, NC_handle *handle, size_t handle_offset, size_t len)
{
	return NC_unit_read(handle, fd, len, handle_offset);
}

ssize_t NC_write(NC_handle *handle, const void *data, size_t len, size_t handle_offset)
{
	return nc_api_result(nc_handle_write(handle, handle_offset, data, len));
}

int NC_vprintf(NC_handle *handle, size_t handle_offset, const char *format, va_list arguments)
{
	return (int)nc_api_result(nc_handle_vprintf(handle, handle_offset, format, arguments));
}

int NC_printf(NC_handle *handle, size_t handle_offset, const char *format, ...)
{
	va_list arguments;
	int result;

	va_start(arguments, format);
	result = NC_vprintf(handle, handle_offset, format, arguments);
	va_end(arguments);
	return result;
}

void *NC_fragment(NC_handle *handle, size_t index, size_t *length)
{
	void *bytes = NULL;
	ssize_t result = nc_api_result(nc_handle_fragment(handle, index, &bytes));

	if (result >= 0 && length)
		*length = (size_t)result;
	return bytes;
}

FILE *NC_stream(NC_handle *handle, const char *mode)
{
	int error;
	FILE *file = nc_stream_open(handle, mode, &error);

	if (!file)
		nc_api_result(error);
	return file;
}

int NC_unit_insert(NC_handle *handle, size_t len)
{
	return (int)nc_api_result(nc_handle_insert(handle, len));
}

int NC_unit_insert_with(NC_handle *handle, size_t len, const struct NC_insert_options *options)
{
	struct NC_insert_options known;
	struct nc_insertion with = {.priority = NC_PRIORITY_NORMAL};
	int error;

	if (!options)
		return NC_unit_insert(handle, len);
	error = nc_versioned_read(&known, sizeof(known), INSERT_OPTIONS_LEAST, options);
	if (!error && known.flags & ~NC_INSERT_PRIORITY)
		error = -EINVAL;
	if (error)
		return (int)nc_api_result(error);
	if (known.flags & NC_INSERT_PRIORITY)
		with.priority = known.priority;
	with.lifetime = known.lifetime;
	with.hold = known.hold;
	return (int)nc_api_result(nc_handle_insert_with(handle, len, &with));
}

int NC_insert(NC_handle *handle)
{
	return NC_unit_insert(handle, NC_WHOLE);
}

size_t NC_cache_id(const NC_handle *handle)
{
	return nc_handle_id(handle);
}

int NC_destroy(NC_cache *cache, size_t cache_id)
{
	int error;

	cache = nc_registry_find(cache, &error);
	return (int)nc_api_result(cache ? nc_index_destroy(&cache->index, cache_id) : error);
}

int NC_stat(NC_cache *cache, size_t cache_id, struct NC_stat *stat, size_t size)
{
	struct NC_stat known;
	int error;

	cache = nc_registry_find(cache, &error);
	if (!cache || !stat || !size)
		return (int)nc_api_result(cache ? -EINVAL : error);
	error = nc_admin_stat(&cache->index, cache_id, &known);
	if (!error)
		nc_versioned_write(stat, size, &known, sizeof(known));
	return (int)nc_api_result(error);
}

ssize_t NC_send(NC_cache *cache, int sock_fd, const struct NC_send *message)
{
	struct NC_send known;
	int error;

	cache = nc_registry_find(cache, &error);
	if (cache)
		error = nc_api_message(&message, &known);
	return nc_api_result(error ? error : nc_transmit_send(&cache->transmit, sock_fd, message));
}

ssize_t NC_socksend(int sock_fd, size_t cache_id, size_t offset, size_t len)
{
	struct NC_range range = {.id = cache_id, .offset = offset, .length = len};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);

	return NC_send(NULL, sock_fd, &message);
}

int NC_checksum(NC_cache *cache, size_t cache_id, uint32_t *value, enum NC_checksum_kind kind,
		size_t len, size_t offset)
{
	struct nc_view view;
	uint32_t sum;
	size_t size;
	int error;

	if (kind < NC_CHECKSUM_DEFAULT || kind > NC_CHECKSUM_CRC32C || !value)
		return (int)nc_api_result(-EINVAL);
	cache = nc_registry_find(cache, &error);
	if (cache)
		error = nc_index_hold(&cache->index, cache_id, false, &view);
	if (error)
		return (int)nc_api_result(error);
	if (kind == NC_CHECKSUM_DEFAULT)
		kind = cache->index.checksum;
	size = view.unit->layout.size;
	if (offset > size || len > size - offset)
		error = -ERANGE;
	else
		error = nc_index_checksum(&cache->index, &view, kind, offset, len, &sum);
	if (!error)
		*value = kind == NC_CHECKSUM_INET ? ntohs((uint16_t)sum) : sum;
	nc_index_release(&cache->index, cache_id);
	return (int)nc_api_result(error);
}

int NC_verify(NC_cache *cache, size_t cache_id)
{
	struct nc_view view;
	ssize_t good;
	int error;

	cache = nc_registry_find(cache, &error);
	if (cache)
		error = nc_index_hold(&cache->index, cache_id, false, &view);
	if (error)
		return (int)nc_api_result(error);
	good = view.unit->sum_size ? nc_index_fetch(&cache->index, &view) : -ENODATA;
	if (!good)
		good = nc_unit_checksum_make(view.unit);
	if (!good)
		good = nc_unit_checksum_verify(view.unit, 0, SIZE_MAX);
	nc_index_release(&cache->index, cache_id);
	return (int)nc_api_result(good < 0 ? good : 0);
}

int NC_set_priority(NC_cache *cache, size_t cache_id, enum NC_priority priority)
{
	int error;

	cache = nc_registry_find(cache, &error);
	return (int)nc_api_result(cache ? nc_index_set_priority(&cache->index, cache_id, priority)
					: error);
}

int NC_set_lifetime(NC_cache *cache, size_t cache_id, uint64_t milliseconds)
{
	int error;

	cache = nc_registry_find(cache, &error);
	return (int)nc_api_result(
		cache ? nc_index_set_lifetime(&cache->index, cache_id, milliseconds) : error);
}

ssize_t NC_sendfile(NC_cache *cache, int sock_fd, const struct NC_sendfile *message)
{
	struct NC_sendfile known;
	int error;

	cache = nc_registry_find(cache, &error);
	if (cache)
		error = message ? nc_versioned_read(&known, sizeof(known), SENDFILE_LEAST, message)
				: -EINVAL;
	return nc_api_result(error ? error : nc_sendfile(&cache->transmit, sock_fd, &known));
}

int NC_routes(NC_cache *cache, struct NC_route *routes, size_t stride, unsigned count)
{
	struct NC_route known[NC_ROUTES];
	int error, found;

	cache = nc_registry_find(cache, &error);
	if (!cache)
		return (int)nc_api_result(error);
	if (count && (!routes || !stride))
		return (int)nc_api_result(-EINVAL);
	if (count > NC_ROUTES)
		count = NC_ROUTES;
	found = nc_admin_routes(&cache->transmit, known, count);
	if (found > 0)
		nc_versioned_write_all(routes, stride, known, sizeof(known[0]),
				       (unsigned)found < count ? (unsigned)found : count);
	return (int)nc_api_result(found);
}

int NC_route_set(NC_cache *cache, const char *address, int method)
{
	int error;

	cache = nc_registry_find(cache, &error);
	return (int)nc_api_result(cache ? nc_admin_route_set(&cache->transmit, address, method)
					: error);
}

int NC_cache_on_purge(NC_cache *cache, NC_purger purger, void *context)
{
	int error;

	cache = nc_registry_find(cache, &error);
	return (int)nc_api_result(cache ? nc_admin_on_purge(&cache->index, purger, context)
					: error);
}

int NC_cache_on_evict(NC_cache *cache, NC_evicted evicted, void *context)
{
	int error;

	cache = nc_registry_find(cache, &error);
	if (cache)
		error = cache->index.owner ? nc_index_on_evict(&cache->index, evicted, context)
					   : -EPERM;
	return (int)nc_api_result(error);
}

int NC_purge(NC_cache *cache, const char *name)
{
	int error;

	cache = nc_registry_find(cache, &error);
	return (int)nc_api_result(cache ? nc_admin_purge(&cache->index, name) : error);
}
