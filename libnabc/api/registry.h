/* SPDX-License-Identifier: MIT */
/*
 * registry.h - the process's caches: the library's only global state.
 *
 * The exported calls find their cache here.  The first one is the default.  A
 * process without a cache gets one at its first call: it attaches to the cache at
 * $NABC_CACHE, or else opens one with default options.
 */
#ifndef NC_REGISTRY_H
#define NC_REGISTRY_H

#include <errno.h>
#include <sys/types.h>
#include <nabc.h>

#include "base/versioned.h"
#include "cache/index.h"
#include "membership/serve.h"
#include "membership/collector.h"
#include "send/send-op.h"
#include "send/transmit.h"

struct NC_cache {
	struct nc_index index;
	struct nc_transmit transmit;
	struct nc_serve serve;
	struct nc_collector collector;
	int socket;		   /* attached: open as long as the membership lasts */
	_Atomic unsigned backends; /* started and not closed */
	struct nc_send_ops operations;
};

#define NC_REGISTRY_MAX 64u

/*
 * Returns the given cache; NULL: the default.  Returns NULL and sets *error if it
 * does not belong to this process, or if there is no default and none can be opened
 * or attached to.
 */
struct NC_cache *nc_registry_find(struct NC_cache *given, int *error);

/* Opens a cache as its owner, or attaches to one; -EMFILE: NC_REGISTRY_MAX are open. */
int nc_registry_open(const struct NC_cache_options *options, struct NC_cache **cache);
int nc_registry_attach(const char *path, const struct NC_attach_options *options,
		       struct NC_cache **cache);

/*
 * Attaches with a function that fills cache->index from socket; for workers.  On
 * success the cache owns the socket, on failure the caller still does.
 */
typedef int nc_registry_step(struct nc_index *index, int socket, void *context);
int nc_registry_adopt(int socket, nc_registry_step *join, void *context, struct NC_cache **cache);

/*
 * Does the pending work; call it between nc_collector_enter() and _leave().
 * Returns events handled, or -errno.
 */
int nc_registry_dispatch(struct NC_cache *cache);

/* Converts a result to that of an exported call: an error becomes -1 and errno. */
static inline ssize_t nc_api_result(ssize_t result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

/* Bytes of struct NC_send that callers know at least. */
#define NC_API_SEND_LEAST 64u

/*
 * Points *message to a message of the library's size: the caller's own, or a copy
 * in *known.  Returns 0, -EINVAL (NULL, or too small), or -E2BIG.
 */
static inline int nc_api_message(const struct NC_send **message, struct NC_send *known)
{
	int error;

	if (!*message)
		return -EINVAL;
	if ((*message)->size == sizeof(*known))
		return 0;
	error = nc_versioned_read(known, sizeof(*known), NC_API_SEND_LEAST, *message);
	*message = known;
	return error;
}

/*
 * Returns 0, -EBUSY (handles, backends, senders or operations are open), or -EINVAL
 * (not a cache of this process).
 */
int nc_registry_close(struct NC_cache *cache);

#endif
