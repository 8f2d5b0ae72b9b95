/* SPDX-License-Identifier: MIT */
/*
 * face.c - opens, joins, finds and closes the process's cache; see face.h.
 *
 * A forked child has no cache: the memory of its parent's is not mapped into
 * it (segment.c), since two processes must not give out the same pages.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "face.h"
#include "peer.h"

#define JOIN_TIMEOUT_MS 5000

static _Atomic(struct NC_cache *) the_cache;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void forget(void)
{
	atomic_store_explicit(&the_cache, NULL, memory_order_relaxed);
	pthread_mutex_init(&opening, NULL);
}

static void prepare(void)
{
	(void)pthread_atfork(NULL, NULL, forget);
}

/* The floors above the cache, once it is there. */
static int complete(struct NC_cache *face)
{
	int error = nc_attach_init(&face->attach, &face->cache);

	if (error)
		return error;
	nc_transmit_init(&face->transmit, &face->cache);
	if (face->cache.owner && nc_ring_fd(&face->transmit.ring) >= 0)
		error = nc_attach_watch(&face->attach, nc_ring_fd(&face->transmit.ring));
	if (error) {
		nc_transmit_fini(&face->transmit);
		nc_attach_fini(&face->attach);
	}
	return error;
}

static int open_owner(struct nc_cache *cache, int socket, void *context)
{
	(void)socket;
	return nc_cache_init_owner(cache, context);
}

static int join_guest(struct nc_cache *cache, int socket, void *context)
{
	struct nc_wire_welcome welcome;
	int unused[NC_WIRE_LANES_MAX + 2];
	int error = nc_attach_join(cache, socket, JOIN_TIMEOUT_MS, &welcome, unused);

	(void)context;
	if (!error && welcome.lanes) {
		/* A worker's welcome on an attach socket: not ours. */
		for (unsigned i = 0; i < nc_wire_welcome_fds(welcome.lanes) - 1; i++)
			close(unused[i]);
		nc_cache_fini(cache);
		error = -EPROTO;
	}
	return error;
}

static int set_up_locked(int socket, nc_face_join *join, void *context, struct NC_cache **face)
{
	struct NC_cache *made;
	int error;

	if (atomic_load_explicit(&the_cache, memory_order_relaxed))
		return -EBUSY;
	made = aligned_alloc(64, (sizeof(*made) + 63) / 64 * 64);
	if (!made)
		return -ENOMEM;
	*made = (struct NC_cache){.socket = -1};
	error = join(&made->cache, socket, context);
	if (!error) {
		error = complete(made);
		if (error)
			nc_cache_fini(&made->cache);
	}
	if (error) {
		free(made);
		return error;
	}
	made->socket = socket;
	atomic_store_explicit(&the_cache, made, memory_order_release);
	*face = made;
	return 0;
}

int nc_face_adopt(int socket, nc_face_join *join, void *context, struct NC_cache **face)
{
	int error;

	pthread_once(&once, prepare);
	pthread_mutex_lock(&opening);
	error = set_up_locked(socket, join, context, face);
	pthread_mutex_unlock(&opening);
	return error;
}

int nc_face_open(const struct NC_cache_options *options, struct NC_cache **face)
{
	return nc_face_adopt(-1, open_owner, (void *)options, face);
}

static int attach_locked(const char *path, struct NC_cache **face)
{
	int error, socket;

	if (atomic_load_explicit(&the_cache, memory_order_relaxed))
		return -EBUSY;
	socket = nc_peer_connect(path);
	if (socket < 0)
		return socket;
	error = set_up_locked(socket, join_guest, NULL, face);
	if (error)
		close(socket);
	return error;
}

int nc_face_attach(const char *path, struct NC_cache **face)
{
	int error;

	pthread_once(&once, prepare);
	pthread_mutex_lock(&opening);
	error = attach_locked(path, face);
	pthread_mutex_unlock(&opening);
	return error;
}

struct NC_cache *nc_face_find(int *error)
{
	struct NC_cache *face = atomic_load_explicit(&the_cache, memory_order_acquire);
	const char *path;

	if (face)
		return face;
	path = getenv("NABC_CACHE");
	if (!path || !*path) {
		*error = -ENXIO;
		return NULL;
	}
	*error = nc_face_attach(path, &face);
	if (*error == -EBUSY) /* another thread was quicker */
		face = atomic_load_explicit(&the_cache, memory_order_acquire);
	return face;
}

int nc_face_close(struct NC_cache *face)
{
	pthread_mutex_lock(&opening);
	if (!face || face != atomic_load_explicit(&the_cache, memory_order_relaxed)) {
		pthread_mutex_unlock(&opening);
		return -EINVAL;
	}
	if (nc_member_filling(&face->cache.own) ||
	    atomic_load_explicit(&face->exchanges, memory_order_relaxed)) {
		pthread_mutex_unlock(&opening);
		return -EBUSY;
	}
	atomic_store_explicit(&the_cache, NULL, memory_order_release);
	nc_transmit_fini(&face->transmit);
	nc_attach_fini(&face->attach);
	nc_cache_fini(&face->cache);
	if (face->socket >= 0)
		close(face->socket);
	free(face);
	pthread_mutex_unlock(&opening);
	return 0;
}
