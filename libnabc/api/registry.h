/* SPDX-License-Identifier: MIT */
/*
 * registry.h - the process's caches: the library's only global state.
 *
 * The exported calls find their cache here.  The first one is the default.  A process
 * that has none gets one at its first call: it attaches to the cache that $NABC_CACHE
 * names, or else opens one with default options.
 */
#ifndef NC_REGISTRY_H
#define NC_REGISTRY_H

#include <errno.h>

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
	int socket;		   /* attached: kept open for as long as we are a member */
	_Atomic unsigned backends; /* that were started and not closed */
	struct nc_send_ops operations;
};

#define NC_REGISTRY_MAX 64u

/*
 * The cache that is meant; NULL: the default.  NULL and *error when it is not
 * one of this process's, or there is no default and none can be attached to.
 */
struct NC_cache *nc_registry_find(struct NC_cache *given, int *error);

/* Opens one as the owner, or attaches to one; -EMFILE: NC_REGISTRY_MAX are open. */
int nc_registry_open(const struct NC_cache_options *options, struct NC_cache **cache);
int nc_registry_attach(const char *path, const struct NC_attach_options *options,
		       struct NC_cache **cache);

/*
 * Attaches by a step that fills cache->index from socket; for workers.  The
 * socket belongs to the cache afterwards, and on failure still to the caller.
 */
typedef int nc_registry_step(struct nc_index *index, int socket, void *context);
int nc_registry_adopt(int socket, nc_registry_step *join, void *context, struct NC_cache **cache);

/* Does what is due; the caller has entered the collector.  Events handled, or -errno. */
int nc_registry_dispatch(struct NC_cache *cache);

/* Returns what an exported call returns: an error becomes -1 and errno. */
static inline ssize_t nc_api_result(ssize_t result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

/*
 * The caller's message as the library knows it: the caller's own, or a copy in *known.  0;
 * -EINVAL: none, or too small; -E2BIG.
 */
static inline int nc_api_message(const struct NC_send **message, struct NC_send *known)
{
	int error;

	if (!*message)
		return -EINVAL;
	if ((*message)->size == sizeof(*known))
		return 0;
	error = nc_versioned_read(known, sizeof(*known), sizeof(*known), *message);
	*message = known;
	return error;
}

/* 0; -EBUSY: handles, backends, rings or operations are open; -EINVAL: none of the process's. */
int nc_registry_close(struct NC_cache *cache);

#endif
