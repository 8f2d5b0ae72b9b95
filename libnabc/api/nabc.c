/* SPDX-License-Identifier: MIT */
/*
 * nabc.c - the calls of nabc.h: each finds the process's cache, calls one
 * function of a lower floor and turns its error into errno.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include <nabc.h>

#include "api/registry.h"
#include "api/admin.h"
#include "membership/handle.h"
#include "send/sendfile.h"
#include "store/unit-checksum.h"
#include "worker/stream.h"

static_assert(sizeof(size_t) == 8, "cache ids need 64 bits");
static_assert(offsetof(struct NC_cache, index) == 0, "a handle's cache is one of the process's");

NC_cache *NC_cache_open(const struct NC_cache_options *options)
{
	struct NC_cache *cache = NULL;

	nc_api_result(nc_registry_open(options, &cache));
	return cache;
}

NC_cache *NC_cache_attach_as(const char *path, const struct NC_attach_options *options)
{
	struct NC_cache *cache = NULL;

	nc_api_result(path ? nc_registry_attach(path, options, &cache) : -EINVAL);
	return cache;
}

NC_cache *NC_cache_attach(const char *path)
{
	return NC_cache_attach_as(path, NULL);
}

int NC_cache_close(NC_cache *cache)
{
	return (int)nc_api_result(nc_registry_close(cache));
}

int NC_cache_stat(NC_cache *cache, struct NC_cache_stat *stat)
{
	int error;

	cache = nc_registry_find(cache, &error);
	if (!cache || !stat)
		return (int)nc_api_result(cache ? -EINVAL : error);
	return (int)nc_api_result(nc_admin_counters(&cache->transmit, stat));
}

int NC_cache_serve_as(NC_cache *cache, const char *path, const struct NC_serve_options *options)
{
	int error;

	cache = nc_registry_find(cache, &error);
	if (!cache)
		return (int)nc_api_result(error);
	if (!path)
		return (int)nc_api_result(-EINVAL);
	return (int)nc_api_result(cache->index.owner ? nc_serve_listen(&cache->serve, path, options)
						     : -EPERM);
}

int NC_cache_serve(NC_cache *cache, const char *path)
{
	return NC_cache_serve_as(cache, path, NULL);
}

int NC_cache_fd(NC_cache *cache)
{
	int error;

	cache = cache ? nc_registry_find(cache, &error) : NULL;
	if (!cache)
		return (int)nc_api_result(-EINVAL);
	return (int)nc_api_result(cache->index.owner ? cache->serve.epoll : -EPERM);
}

int NC_cache_dispatch(NC_cache *cache)
{
	int error, events;

	cache = cache ? nc_registry_find(cache, &error) : NULL;
	if (!cache)
		return (int)nc_api_result(-EINVAL);
	if (!nc_collector_enter(&cache->collector))
		return 0;
	events = nc_registry_dispatch(cache);
	nc_collector_leave(&cache->collector);
	return (int)nc_api_result(events);
}

/* Returns whether the handle has a unit that a second allocation would leak. */
static bool is_filling(const NC_handle *handle)
{
	struct NC_cache *cache = (struct NC_cache *)(void *)nc_handle_filling(handle);
	int error;

	/* A forked child has a copy of the handle, but neither the cache nor the unit. */
	return cache && nc_registry_find(cache, &error);
}

int NC_alloc_in(NC_cache *cache, NC_handle *handle, size_t size, size_t fraglen, enum NC_kind kind)
{
	int error;

	cache = nc_registry_find(cache, &error);
	if (!cache)
		return (int)nc_api_result(error);
	if (is_filling(handle))
		return (int)nc_api_result(-EBUSY);
	/* Memory that only waits for a notification is there to be had again. */
	nc_transmit_reap(&cache->transmit);
	return (int)nc_api_result(nc_handle_alloc(handle, &cache->index, size, fraglen, kind));
}

int NC_alloc_kind(NC_handle *handle, size_t size, size_t fraglen, enum NC_kind kind)
{
	return NC_alloc_in(NULL, handle, size, fraglen, kind);
}

int NC_alloc(NC_handle *handle, size_t size, size_t fraglen)
{
	return NC_alloc_in(NULL, handle, size, fraglen, NC_KIND_AUTO);
}

int NC_free(NC_handle *handle)
{
	return (int)nc_api_result(nc_handle_free(handle));
}

ssize_t NC_read(int fd, NC_handle *handle, size_t handle_offset, size_t len)
{
	return nc_api_result(nc_handle_read(fd, handle, handle_offset, len));
}

/* A handle is of one cache; whoever names another is mistaken. */
static int mismatch(struct NC_cache *cache, const NC_handle *handle)
{
	int error;

	cache = nc_registry_find(cache, &error);
	if (!cache)
		return error;
	if (!nc_handle_cache(handle))
		return -EINVAL;
	return nc_handle_cache(handle) == &cache->index ? 0 : -EXDEV;
}

ssize_t NC_read_in(NC_cache *cache, int fd, NC_handle *handle, size_t handle_offset, size_t len)
{
	int error = mismatch(cache, handle);

	return error ? nc_api_result(error) : NC_read(fd, handle, handle_offset, len);
}

ssize_t NC_write(NC_handle *handle, size_t handle_offset, const void *data, size_t len)
{
	return nc_api_result(nc_handle_write(handle, handle_offset, data, len));
}

int NC_printf(NC_handle *handle, size_t handle_offset, const char *format, ...)
{
	va_list arguments;
	int result;

	va_start(arguments, format);
	result = nc_handle_vprintf(handle, handle_offset, format, arguments);
	va_end(arguments);
	return (int)nc_api_result(result);
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

int NC_insert(NC_handle *handle)
{
	return (int)nc_api_result(nc_handle_insert(handle));
}

int NC_insert_in(NC_cache *cache, NC_handle *handle)
{
	int error = mismatch(cache, handle);

	return error ? (int)nc_api_result(error) : NC_insert(handle);
}

size_t NC_cache_id(const NC_handle *handle)
{
	return nc_handle_id(handle);
}

int NC_destroy_in(NC_cache *cache, size_t cache_id)
{
	int error;

	cache = nc_registry_find(cache, &error);
	return (int)nc_api_result(cache ? nc_index_destroy(&cache->index, cache_id) : error);
}

int NC_destroy(size_t cache_id)
{
	return NC_destroy_in(NULL, cache_id);
}

int NC_hold_in(NC_cache *cache, size_t cache_id)
{
	struct nc_view view;
	int error;

	cache = nc_registry_find(cache, &error);
	if (cache) {
		error = nc_index_hold(&cache->index, cache_id, false, &view);
		if (!error && view.unit)
			nc_unit_end_grace(view.unit);
	}
	return (int)nc_api_result(error);
}

int NC_hold(size_t cache_id)
{
	return NC_hold_in(NULL, cache_id);
}

int NC_release_in(NC_cache *cache, size_t cache_id)
{
	int error;

	cache = nc_registry_find(cache, &error);
	return (int)nc_api_result(cache ? nc_index_release(&cache->index, cache_id) : error);
}

int NC_release(size_t cache_id)
{
	return NC_release_in(NULL, cache_id);
}

int NC_stat_in(NC_cache *cache, size_t cache_id, struct NC_stat *stat)
{
	int error;

	cache = nc_registry_find(cache, &error);
	if (!cache || !stat)
		return (int)nc_api_result(cache ? -EINVAL : error);
	return (int)nc_api_result(nc_admin_stat(&cache->index, cache_id, stat));
}

int NC_stat(size_t cache_id, struct NC_stat *stat)
{
	return NC_stat_in(NULL, cache_id, stat);
}

ssize_t NC_socksendv_in(NC_cache *cache, int sock_fd, const struct NC_send *message)
{
	int error;

	cache = nc_registry_find(cache, &error);
	return nc_api_result(cache ? nc_transmit_send(&cache->transmit, sock_fd, message) : error);
}

int NC_checksum(NC_cache *cache, size_t cache_id, enum NC_checksum_kind kind, size_t offset,
		size_t len, uint32_t *value)
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
	else if (nc_unit_checksum_reads(view.unit, kind, offset, len))
		error = nc_index_fetch(&cache->index, &view);
	if (!error) {
		sum = nc_unit_checksum_range(view.unit, kind, offset, len);
		*value = kind == NC_CHECKSUM_INET ? ntohs((uint16_t)sum) : sum;
	}
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
	good = view.unit->sum_size ? nc_index_fetch(&cache->index, &view) : 0;
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

ssize_t NC_socksendv(int sock_fd, const struct NC_send *message)
{
	return NC_socksendv_in(NULL, sock_fd, message);
}

ssize_t NC_sendfile(NC_cache *cache, int sock_fd, const struct NC_sendfile *message)
{
	int error;

	cache = nc_registry_find(cache, &error);
	return nc_api_result(cache ? nc_sendfile(&cache->transmit, sock_fd, message) : error);
}

ssize_t NC_socksend_in(NC_cache *cache, int sock_fd, size_t cache_id, size_t offset, size_t len)
{
	struct NC_range range = {.id = cache_id, .offset = offset, .length = len};
	struct NC_send message = {.ranges = &range, .range_count = 1};

	return NC_socksendv_in(cache, sock_fd, &message);
}

ssize_t NC_socksend(int sock_fd, size_t cache_id, size_t offset, size_t len)
{
	return NC_socksend_in(NULL, sock_fd, cache_id, offset, len);
}

int NC_routes(NC_cache *cache, struct NC_route *routes, unsigned count)
{
	int error;

	cache = nc_registry_find(cache, &error);
	return (int)nc_api_result(cache ? nc_admin_routes(&cache->transmit, routes, count) : error);
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

int NC_purge(NC_cache *cache, const char *name)
{
	int error;

	cache = nc_registry_find(cache, &error);
	return (int)nc_api_result(cache ? nc_admin_purge(&cache->index, name) : error);
}
