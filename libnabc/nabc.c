/* SPDX-License-Identifier: MIT */
/*
 * nabc.c - the calls of nabc.h: each finds the process's cache, calls one
 * function of a lower floor and turns its error into errno.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include <nabc.h>

#include "face.h"
#include "handle.h"
#include "id.h"

static_assert(sizeof(size_t) == 8, "cache ids need 64 bits");

/* Results below zero are errors; what is above passes through. */
static ssize_t answer(ssize_t result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

static struct NC_cache *given_or_found(struct NC_cache *cache, int *error)
{
	return cache ? cache : nc_face_find(error);
}

NC_cache *NC_cache_open(const struct NC_cache_options *options)
{
	struct NC_cache *face = NULL;

	answer(nc_face_open(options, &face));
	return face;
}

NC_cache *NC_cache_attach(const char *path)
{
	struct NC_cache *face = NULL;

	answer(path ? nc_face_attach(path, &face) : -EINVAL);
	return face;
}

int NC_cache_close(NC_cache *cache)
{
	return (int)answer(nc_face_close(cache));
}

int NC_cache_stat(NC_cache *cache, struct NC_cache_stat *stat)
{
	int error = -EINVAL;

	cache = given_or_found(cache, &error);
	if (!cache || !stat)
		return (int)answer(cache ? -EINVAL : error);
	nc_cache_stat(&cache->cache, stat);
	snprintf(stat->uring, sizeof(stat->uring), "%s", cache->transmit.ring.why);
	return 0;
}

int NC_cache_serve(NC_cache *cache, const char *path)
{
	int error;

	cache = given_or_found(cache, &error);
	if (!cache)
		return (int)answer(error);
	if (!path)
		return (int)answer(-EINVAL);
	return (int)answer(cache->cache.owner ? nc_attach_serve(&cache->attach, path) : -EPERM);
}

int NC_cache_fd(NC_cache *cache)
{
	if (!cache)
		return (int)answer(-EINVAL);
	return (int)answer(cache->cache.owner ? cache->attach.epoll : -EPERM);
}

int NC_cache_dispatch(NC_cache *cache)
{
	unsigned reaped;
	int events = 0;

	if (!cache)
		return (int)answer(-EINVAL);
	reaped = nc_transmit_reap(&cache->transmit);
	if (cache->cache.owner)
		events = nc_attach_dispatch(&cache->attach);
	return (int)answer(events < 0 ? events : events + (int)reaped);
}

int NC_alloc_kind(NC_handle *handle, size_t size, size_t fraglen, enum NC_kind kind)
{
	int error;
	struct NC_cache *cache = nc_face_find(&error);

	if (!cache)
		return (int)answer(error);
	/* Memory that only waits for a notification is there to be had again. */
	nc_transmit_reap(&cache->transmit);
	return (int)answer(nc_handle_alloc(handle, &cache->cache, size, fraglen, kind));
}

int NC_alloc(NC_handle *handle, size_t size, size_t fraglen)
{
	return NC_alloc_kind(handle, size, fraglen, NC_KIND_AUTO);
}

int NC_free(NC_handle *handle)
{
	return (int)answer(nc_handle_free(handle));
}

ssize_t NC_read(int fd, NC_handle *handle, size_t handle_offset, size_t len)
{
	return answer(nc_handle_read(fd, handle, handle_offset, len));
}

ssize_t NC_write(NC_handle *handle, size_t handle_offset, const void *data, size_t len)
{
	return answer(nc_handle_write(handle, handle_offset, data, len));
}

int NC_printf(NC_handle *handle, size_t handle_offset, const char *format, ...)
{
	va_list arguments;
	int result;

	va_start(arguments, format);
	result = nc_handle_vprintf(handle, handle_offset, format, arguments);
	va_end(arguments);
	return (int)answer(result);
}

int NC_insert(NC_handle *handle)
{
	return (int)answer(nc_handle_insert(handle));
}

size_t NC_cache_id(const NC_handle *handle)
{
	return nc_handle_id(handle);
}

int NC_destroy(size_t cache_id)
{
	int error;
	struct NC_cache *cache = nc_face_find(&error);

	return (int)answer(cache ? nc_cache_destroy(&cache->cache, cache_id) : error);
}

int NC_hold(size_t cache_id)
{
	struct nc_view view;
	int error;
	struct NC_cache *cache = nc_face_find(&error);

	return (int)answer(cache ? nc_cache_hold(&cache->cache, cache_id, false, &view) : error);
}

int NC_release(size_t cache_id)
{
	int error;
	struct NC_cache *cache = nc_face_find(&error);

	return (int)answer(cache ? nc_cache_release(&cache->cache, cache_id) : error);
}

int NC_stat(size_t cache_id, struct NC_stat *stat)
{
	struct nc_view view;
	int error = -EINVAL;
	struct NC_cache *cache = nc_face_find(&error);

	if (cache)
		error = stat ? nc_cache_hold(&cache->cache, cache_id, false, &view) : -EINVAL;
	if (error)
		return (int)answer(error);
	*stat = (struct NC_stat){
		.id = cache_id,
		.size = view.unit->layout.size,
		.fraglen = view.unit->layout.fraglen,
		.fragments = view.unit->layout.fragments,
		.kind = view.unit->store->kind,
		.member = nc_id_member(cache_id),
		.holds = nc_word_holds(nc_unit_word(view.unit)) - 1,
	};
	return (int)answer(nc_cache_release(&cache->cache, cache_id));
}

ssize_t NC_socksendv(int sock_fd, const struct NC_send *message)
{
	int error;
	struct NC_cache *cache = nc_face_find(&error);

	return answer(cache ? nc_transmit_send(&cache->transmit, sock_fd, message) : error);
}

ssize_t NC_socksend(int sock_fd, size_t cache_id, size_t offset, size_t len)
{
	struct NC_range range = {.id = cache_id, .offset = offset, .length = len};
	struct NC_send message = {.ranges = &range, .range_count = 1};

	return NC_socksendv(sock_fd, &message);
}
