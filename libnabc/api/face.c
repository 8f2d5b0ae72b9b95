/* SPDX-License-Identifier: MIT */
/*
 * face.c - opens, attaches, finds and closes the process's caches; see face.h.
 *
 * Whoever uses a cache finds it without a lock; opening and closing are under
 * one.  A forked child has no cache: the memory of its parent's is not mapped
 * into it (segment.c), since two processes must not give out the same pages.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/face.h"
#include "api/operator.h"
#include "membership/attach.h"
#include "os/peer.h"

#define JOIN_TIMEOUT_MS 5000

static _Atomic(struct NC_cache *) the_default;
static _Atomic(struct NC_cache *) faces[NC_FACES_MAX];
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void forget(void)
{
	atomic_store_explicit(&the_default, NULL, memory_order_relaxed);
	for (unsigned i = 0; i < NC_FACES_MAX; i++)
		atomic_store_explicit(&faces[i], NULL, memory_order_relaxed);
	pthread_mutex_init(&opening, NULL);
}

static void prepare(void)
{
	(void)pthread_atfork(NULL, NULL, forget);
}

/* Where it is entered, or where NULL is: a free place.  NULL: nowhere. */
static _Atomic(struct NC_cache *) *place_of(const struct NC_cache *face)
{
	for (unsigned i = 0; i < NC_FACES_MAX; i++)
		if (atomic_load_explicit(&faces[i], memory_order_acquire) == face)
			return &faces[i];
	return NULL;
}

int nc_face_dispatch(struct NC_cache *face)
{
	int reaped = (int)nc_transmit_reap(&face->transmit), events = 0;

	if (face->cache.owner) {
		/* With a thread for the members all that is left here never waits. */
		if (!(face->cache.flags & NC_CACHE_MEMBERS_THREAD))
			events = nc_serve_dispatch(&face->serve);
		(void)nc_collector_step(&face->collector);
	}
	return events < 0 ? events : events + reaped;
}

static int dispatch(void *face)
{
	return nc_face_dispatch(face);
}

/* The kernel module, if it is there; one that is not is not missed. */
static void use_device(struct nc_cache *cache)
{
	int error;

	if (cache->owner ? cache->flags & NC_CACHE_NO_KERNEL : !cache->device_offered)
		return;
	error = nc_cache_use_device(cache, &nc_device_kernel);
	if (error && error != -ENOENT && error != -ENXIO && error != -ENODEV)
		nc_diagnostics_report(
			&cache->diagnostics, NC_DIAGNOSTIC_DEVICE,
			"the kernel module nabc is %s; let this process open /dev/nabc (it has a "
			"group), load the module of this version, or open the cache with "
			"NC_CACHE_NO_KERNEL",
			cache->device.why);
}

/* The floors above the cache, once it is there; the thread, when they are. */
static int complete(struct NC_cache *face)
{
	int error = nc_serve_init(&face->serve, &face->cache);

	if (error)
		return error;
	error = nc_collector_init(&face->collector, &face->cache, &face->serve,
				  face->cache.scrub_rate);
	if (error) {
		nc_serve_fini(&face->serve);
		return error;
	}
	use_device(&face->cache);
	nc_transmit_init(&face->transmit, &face->cache);
	face->serve.admin = (struct nc_rpc_admin){nc_operator_answer, &face->transmit};
	if (!face->transmit.zerocopy.ring.usable && !(face->cache.flags & NC_CACHE_NO_URING))
		nc_diagnostics_report(
			&face->cache.diagnostics, NC_DIAGNOSTIC_URING,
			"io_uring is %s: large units in recycled memory are copied on their way "
			"to other machines; allow it (sysctl kernel.io_uring_disabled=0, the "
			"container's seccomp profile) or open the cache with NC_CACHE_NO_URING",
			face->transmit.zerocopy.ring.why);
	/* Looked into only if somebody wants to know. */
	if (face->cache.owner && face->cache.diagnostics.log && !nc_segment_can_seal())
		nc_diagnostics_report(
			&face->cache.diagnostics, NC_DIAGNOSTIC_SEALS,
			"this system cannot seal memory files (memfd_create, F_ADD_SEALS): units "
			"cannot be handed to other processes, and none can become members");
	if (face->cache.owner && nc_ring_fd(&face->transmit.zerocopy.ring) >= 0)
		error = nc_serve_watch(&face->serve, nc_ring_fd(&face->transmit.zerocopy.ring));
	if (!error && face->cache.owner && !(face->cache.flags & NC_CACHE_NO_THREAD))
		error = nc_collector_start(&face->collector, dispatch, face);
	if (!error && face->cache.owner && face->cache.flags & NC_CACHE_MEMBERS_THREAD)
		error = nc_serve_start(&face->serve);
	if (error) {
		nc_collector_fini(&face->collector);
		nc_transmit_fini(&face->transmit);
		nc_serve_fini(&face->serve);
	}
	return error;
}

static int open_owner(struct nc_cache *cache, int socket, void *context)
{
	(void)socket;
	return nc_cache_init_owner(cache, context);
}

/* context: struct NC_attach_options, or NULL: by itself, to make sealed units. */
static int join_guest(struct nc_cache *cache, int socket, void *context)
{
	const struct NC_attach_options *options = context;
	struct nc_wire_welcome welcome;
	int unused[NC_PEER_FDS_MAX], error;
	uint32_t wants = NC_WIRE_SEGMENT;

	if (!options || options->flags & NC_ATTACH_LIGHT)
		wants = 0;
	else if (options->flags & NC_ATTACH_OPERATOR)
		wants = NC_WIRE_OPERATOR;
	error = nc_attach_hello(socket, wants);
	/* Refused already: the answer says why. */
	if (!error || error == -EPIPE || error == -ECONNRESET)
		error = nc_attach(cache, socket, JOIN_TIMEOUT_MS, &welcome, unused);
	if (error)
		return error;
	if (welcome.lanes) {
		/* A worker's welcome on an attach socket: not ours. */
		nc_peer_close_fds(unused, nc_wire_welcome_fds(&welcome) - 1);
		nc_cache_fini(cache);
		return -EPROTO;
	}
	cache->operates = welcome.flags & NC_WIRE_OPERATOR;
	if (options)
		nc_diagnostics_init(&cache->diagnostics, options->log, options->log_context);
	return 0;
}

/* A worker's inherited socket makes one membership. */
static bool is_in_use(int socket)
{
	for (unsigned i = 0; i < NC_FACES_MAX; i++) {
		struct NC_cache *face = atomic_load_explicit(&faces[i], memory_order_relaxed);

		if (face && face->socket == socket)
			return true;
	}
	return false;
}

static int set_up_locked(int socket, nc_face_join *join, void *context, struct NC_cache **face)
{
	_Atomic(struct NC_cache *) *place = place_of(NULL);
	struct NC_cache *made, *none = NULL;
	int error;

	if (socket >= 0 && is_in_use(socket))
		return -EBUSY;
	if (!place)
		return -EMFILE;
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
	atomic_store_explicit(place, made, memory_order_release);
	(void)atomic_compare_exchange_strong(&the_default, &none, made);
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

static int attach_locked(const char *path, const struct NC_attach_options *options,
			 struct NC_cache **face)
{
	int error, socket = nc_peer_connect(path, JOIN_TIMEOUT_MS);

	if (socket < 0)
		return socket;
	error = set_up_locked(socket, join_guest, (void *)options, face);
	if (error)
		close(socket);
	return error;
}

int nc_face_attach(const char *path, const struct NC_attach_options *options,
		   struct NC_cache **face)
{
	static const struct NC_attach_options defaults;
	int error;

	if (!options)
		options = &defaults;
	if (options->flags & ~(NC_ATTACH_LIGHT | NC_ATTACH_OPERATOR))
		return -EINVAL;
	pthread_once(&once, prepare);
	pthread_mutex_lock(&opening);
	error = attach_locked(path, options, face);
	pthread_mutex_unlock(&opening);
	return error;
}

/* The first thread that needs one attaches; the others find it then. */
static struct NC_cache *attach_default(const char *path, int *error)
{
	struct NC_cache *face;

	pthread_once(&once, prepare);
	pthread_mutex_lock(&opening);
	face = atomic_load_explicit(&the_default, memory_order_relaxed);
	if (!face)
		*error = attach_locked(path, NULL, &face);
	pthread_mutex_unlock(&opening);
	return face;
}

struct NC_cache *nc_face_find(struct NC_cache *given, int *error)
{
	struct NC_cache *face;
	const char *path;

	if (given) {
		if (place_of(given))
			return given;
		*error = -EINVAL;
		return NULL;
	}
	face = atomic_load_explicit(&the_default, memory_order_acquire);
	if (face)
		return face;
	path = getenv("NABC_CACHE");
	if (!path || !*path) {
		*error = -ENXIO;
		return NULL;
	}
	return attach_default(path, error);
}

static int close_locked(struct NC_cache *face)
{
	_Atomic(struct NC_cache *) *place = face ? place_of(face) : NULL;
	struct NC_cache *expected = face;

	if (!place)
		return -EINVAL;
	if (nc_cache_filling(&face->cache) ||
	    atomic_load_explicit(&face->exchanges, memory_order_relaxed) ||
	    atomic_load_explicit(&face->operations.open, memory_order_relaxed))
		return -EBUSY;
	if (!nc_serve_stop(&face->serve))
		return -EBUSY;
	(void)atomic_compare_exchange_strong(&the_default, &expected, NULL);
	atomic_store_explicit(place, NULL, memory_order_release);
	nc_collector_fini(&face->collector);
	nc_transmit_fini(&face->transmit);
	nc_serve_fini(&face->serve);
	nc_cache_fini(&face->cache);
	nc_operations_fini(&face->operations);
	if (face->socket >= 0)
		close(face->socket);
	free(face);
	return 0;
}

int nc_face_close(struct NC_cache *face)
{
	int error;

	pthread_mutex_lock(&opening);
	error = close_locked(face);
	pthread_mutex_unlock(&opening);
	return error;
}
