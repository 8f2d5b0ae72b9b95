/* SPDX-License-Identifier: MIT */
/*
 * registry.c - opens, attaches, finds and closes the process's caches; see
 * registry.h.
 *
 * Finding a cache takes no lock; opening and closing take one.  A forked child has
 * no cache: its parent's memory is not mapped into it (segment.c), since two
 * processes must not allocate the same pages.
 */
#include <errno.h>
#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/registry.h"
#include "api/admin.h"
#include "base/diagnostics.h"
#include "cache/evictions.h"
#include "cache/prefetch.h"
#include "membership/attach.h"
#include "membership/rpc-server.h"
#include "os/device.h"
#include "os/identity.h"
#include "os/peer.h"
#include "os/random.h"
#include "os/ring.h"
#include "os/segment.h"
#include "send/zerocopy.h"
#include "wire/wire.h"

#define JOIN_TIMEOUT_MS 5000

static _Atomic(struct NC_cache *) the_default;
static _Atomic(struct NC_cache *) caches[NC_REGISTRY_MAX];
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void registry_forget(void)
{
	atomic_store_explicit(&the_default, NULL, memory_order_relaxed);
	for (unsigned i = 0; i < NC_REGISTRY_MAX; i++)
		atomic_store_explicit(&caches[i], NULL, memory_order_relaxed);
	pthread_mutex_init(&opening, NULL);
}

static void registry_prepare(void)
{
	(void)pthread_atfork(NULL, NULL, registry_forget);
}

/* Returns the element with the cache; for NULL, a free element; NULL if there is none. */
static _Atomic(struct NC_cache *) *place_of(const struct NC_cache *cache)
{
	for (unsigned i = 0; i < NC_REGISTRY_MAX; i++)
		if (atomic_load_explicit(&caches[i], memory_order_acquire) == cache)
			return &caches[i];
	return NULL;
}

int nc_registry_dispatch(struct NC_cache *cache)
{
	int reaped = (int)nc_transmit_reap(&cache->transmit), events = 0;

	if (cache->index.owner) {
		/* With a thread for the members, nothing left here blocks. */
		if (!(cache->index.flags & NC_CACHE_MEMBERS_THREAD))
			events = nc_serve_dispatch(&cache->serve);
		(void)nc_collector_step(&cache->collector);
		nc_index_report_evictions(&cache->index);
	} else {
		events = nc_prefetch_drain(&cache->index.prefetch);
	}
	return events < 0 ? events : events + reaped;
}

static int registry_dispatch(void *cache)
{
	return nc_registry_dispatch(cache);
}

/* Uses the kernel module if it exists; its absence is not reported. */
static void use_device(struct nc_index *index)
{
	int error;

	if (index->owner ? index->flags & NC_CACHE_NO_KERNEL : !index->device_offered)
		return;
	error = nc_index_use_device(index, &nc_device_kernel);
	if (error && error != -ENOENT && error != -ENXIO && error != -ENODEV)
		nc_diagnostics_report(
			&index->diagnostics, NC_DIAGNOSTIC_DEVICE,
			"the kernel module nabc is %s; let this process open /dev/nabc (by its "
			"group), load the module of this version, or open the cache with "
			"NC_CACHE_NO_KERNEL",
			index->device.why);
}

/* Initialises the parts above the index, then starts the threads. */
static int complete(struct NC_cache *cache)
{
	int error = nc_serve_init(&cache->serve, &cache->index);

	if (error)
		return error;
	error = nc_collector_init(&cache->collector, &cache->index, &cache->serve,
				  cache->index.scrub_rate);
	if (error) {
		nc_serve_fini(&cache->serve);
		return error;
	}
	use_device(&cache->index);
	nc_transmit_init(&cache->transmit, &cache->index);
	cache->serve.admin = (struct nc_rpc_admin){nc_admin_handle, &cache->transmit};
	if (!cache->transmit.zerocopy.ring.usable && !(cache->index.flags & NC_CACHE_NO_URING))
		nc_diagnostics_report(
			&cache->index.diagnostics, NC_DIAGNOSTIC_URING,
			"io_uring is %s: large units in recycled memory are copied when sent to "
			"other machines; allow io_uring (sysctl kernel.io_uring_disabled=0, the "
			"container's seccomp profile) or open the cache with NC_CACHE_NO_URING",
			cache->transmit.zerocopy.ring.why);
	/* Checked only if a log function exists. */
	if (cache->index.owner && cache->index.diagnostics.log && !nc_segment_can_seal())
		nc_diagnostics_report(
			&cache->index.diagnostics, NC_DIAGNOSTIC_SEALS,
			"this system cannot seal memory files (memfd_create, F_ADD_SEALS): units "
			"cannot be shared with other processes, and none can attach");
	if (cache->index.owner && nc_ring_fd(&cache->transmit.zerocopy.ring) >= 0)
		error = nc_serve_watch(&cache->serve, nc_ring_fd(&cache->transmit.zerocopy.ring));
	if (!error && cache->index.owner && !(cache->index.flags & NC_CACHE_NO_THREAD))
		error = nc_collector_start(&cache->collector, registry_dispatch, cache);
	if (!error && cache->index.owner && cache->index.flags & NC_CACHE_MEMBERS_THREAD)
		error = nc_serve_start(&cache->serve);
	if (error) {
		nc_collector_fini(&cache->collector);
		nc_transmit_fini(&cache->transmit);
		nc_serve_fini(&cache->serve);
	}
	return error;
}

static int registry_open_owner(struct nc_index *index, int socket, void *context)
{
	(void)socket;
	return nc_index_init_owner(index, context);
}

/* context: struct NC_attach_options, or NULL for a light attachment with default options. */
static int registry_join_guest(struct nc_index *index, int socket, void *context)
{
	const struct NC_attach_options *options = context;
	struct nc_wire_welcome welcome = {0};
	int unused[NC_PEER_FDS_MAX], error;
	uint32_t wants = NC_WIRE_SEGMENT;

	if (!options || options->flags & NC_ATTACH_LIGHT)
		wants = 0;
	else if (options->flags & NC_ATTACH_OPERATOR)
		wants = NC_WIRE_OPERATOR;
	error = nc_attach_hello(socket, wants);
	/* The owner has already refused: its message states the reason. */
	if (!error || error == -EPIPE || error == -ECONNRESET)
		error = nc_attach(index, socket, JOIN_TIMEOUT_MS, &welcome, unused);
	if (error == -EPROTONOSUPPORT && options) {
		struct nc_diagnostics said;
		struct nc_identity owner = {.pidfd = -1};

		nc_diagnostics_init(&said, options->log, options->log_context);
		(void)nc_identity_of_peer(socket, &owner);
		nc_attach_report(&said, "owner", owner.pid, welcome.version, welcome.oldest);
		nc_identity_close(&owner);
	}
	if (error)
		return error;
	if (welcome.channels) {
		/* A worker's welcome on an attach socket: not ours. */
		nc_peer_close_fds(unused, nc_wire_welcome_fds(&welcome) - 1);
		nc_index_fini(index);
		return -EPROTO;
	}
	index->operates = welcome.flags & NC_WIRE_OPERATOR;
	if (options)
		nc_diagnostics_init(&index->diagnostics, options->log, options->log_context);
	return 0;
}

/* A worker's inherited socket allows only one membership. */
static bool is_in_use(int socket)
{
	for (unsigned i = 0; i < NC_REGISTRY_MAX; i++) {
		struct NC_cache *cache = atomic_load_explicit(&caches[i], memory_order_relaxed);

		if (cache && cache->socket == socket)
			return true;
	}
	return false;
}

static int set_up_locked(int socket, nc_registry_step *join, void *context, struct NC_cache **cache)
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
	error = join(&made->index, socket, context);
	if (!error) {
		error = complete(made);
		if (error)
			nc_index_fini(&made->index);
	}
	if (error) {
		free(made);
		return error;
	}
	made->socket = socket;
	made->index.serial = nc_random();
	/* Pair with the acquires in place_of() and nc_registry_find(). */
	atomic_store_explicit(place, made, memory_order_release);
	(void)atomic_compare_exchange_strong(&the_default, &none, made);
	*cache = made;
	return 0;
}

int nc_registry_adopt(int socket, nc_registry_step *join, void *context, struct NC_cache **cache)
{
	int error;

	pthread_once(&once, registry_prepare);
	pthread_mutex_lock(&opening);
	error = set_up_locked(socket, join, context, cache);
	pthread_mutex_unlock(&opening);
	return error;
}

int nc_registry_open(const struct NC_cache_options *options, struct NC_cache **cache)
{
	return nc_registry_adopt(-1, registry_open_owner, (void *)options, cache);
}

static int attach_locked(const char *path, const struct NC_attach_options *options,
			 struct NC_cache **cache)
{
	int error, socket = nc_peer_connect(path, JOIN_TIMEOUT_MS);

	if (socket < 0)
		return socket;
	error = set_up_locked(socket, registry_join_guest, (void *)options, cache);
	if (error)
		close(socket);
	return error;
}

int nc_registry_attach(const char *path, const struct NC_attach_options *options,
		       struct NC_cache **cache)
{
	static const struct NC_attach_options defaults;
	int error;

	if (!options)
		options = &defaults;
	if (options->flags & ~(NC_ATTACH_LIGHT | NC_ATTACH_OPERATOR))
		return -EINVAL;
	pthread_once(&once, registry_prepare);
	pthread_mutex_lock(&opening);
	error = attach_locked(path, options, cache);
	pthread_mutex_unlock(&opening);
	return error;
}

/* The first thread that needs a default cache creates it; the others then find it. */
static struct NC_cache *make_default(int *error)
{
	/* A program with more privileges than its caller must not trust the environment. */
	const char *path = secure_getenv("NABC_CACHE");
	struct NC_cache *cache;

	pthread_once(&once, registry_prepare);
	pthread_mutex_lock(&opening);
	cache = atomic_load_explicit(&the_default, memory_order_relaxed);
	if (!cache)
		*error = path && *path ? attach_locked(path, NULL, &cache)
				       : set_up_locked(-1, registry_open_owner, NULL, &cache);
	pthread_mutex_unlock(&opening);
	return cache;
}

struct NC_cache *nc_registry_find(struct NC_cache *given, int *error)
{
	struct NC_cache *cache;

	*error = 0;
	if (given) {
		if (place_of(given))
			return given;
		*error = -EINVAL;
		return NULL;
	}
	cache = atomic_load_explicit(&the_default, memory_order_acquire);
	return cache ? cache : make_default(error);
}

static int close_locked(struct NC_cache *cache)
{
	_Atomic(struct NC_cache *) *place = cache ? place_of(cache) : NULL;
	struct NC_cache *expected = cache;

	if (!place)
		return -EINVAL;
	/* Pair with the release of the threads that end the last one: they are done with the cache. */
	if (nc_index_filling(&cache->index) ||
	    atomic_load_explicit(&cache->backends, memory_order_acquire) ||
	    atomic_load_explicit(&cache->operations.open, memory_order_acquire))
		return -EBUSY;
	if (!nc_serve_stop(&cache->serve))
		return -EBUSY;
	/* Before a function that uses the default cache would wait for this thread to open one. */
	(void)nc_evictions_set(&cache->index.evictions, NULL, NULL);
	(void)atomic_compare_exchange_strong(&the_default, &expected, NULL);
	atomic_store_explicit(place, NULL, memory_order_release);
	nc_collector_fini(&cache->collector);
	nc_transmit_fini(&cache->transmit);
	nc_serve_fini(&cache->serve);
	nc_index_fini(&cache->index);
	nc_send_ops_fini(&cache->operations);
	if (cache->socket >= 0)
		close(cache->socket);
	free(cache);
	return 0;
}

int nc_registry_close(struct NC_cache *cache)
{
	int error;

	pthread_mutex_lock(&opening);
	error = close_locked(cache);
	pthread_mutex_unlock(&opening);
	return error;
}
