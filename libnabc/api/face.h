/* SPDX-License-Identifier: MIT */
/*
 * face.h - the process's caches: the library's only global state.
 *
 * The exported calls find them here.  The first one is the default; a process
 * that has none attaches to the one that $NABC_CACHE names at its first call.
 */
#ifndef NC_FACE_H
#define NC_FACE_H

#include <errno.h>

#include "cache/cache.h"
#include "membership/serve.h"
#include "membership/collector.h"
#include "send/operation.h"
#include "send/transmit.h"

struct NC_cache {
	struct nc_cache cache;
	struct nc_transmit transmit;
	struct nc_serve serve;
	struct nc_collector collector;
	int socket;		    /* attached: kept open for as long as we are a member */
	_Atomic unsigned exchanges; /* that were started and not closed */
	struct nc_operations operations;
};

#define NC_FACES_MAX 64u

/*
 * The cache that is meant; NULL: the default.  NULL and *error when it is not
 * one of this process's, or there is no default and none can be attached to.
 */
struct NC_cache *nc_face_find(struct NC_cache *given, int *error);

/* Opens one as the owner, or attaches to one; -EMFILE: NC_FACES_MAX are open. */
int nc_face_open(const struct NC_cache_options *options, struct NC_cache **face);
int nc_face_attach(const char *path, const struct NC_attach_options *options,
		   struct NC_cache **face);

/*
 * Attaches by a step that fills face->cache from socket; for workers.  The
 * socket belongs to the face afterwards, and on failure still to the caller.
 */
typedef int nc_face_join(struct nc_cache *cache, int socket, void *context);
int nc_face_adopt(int socket, nc_face_join *join, void *context, struct NC_cache **face);

/* Does what is due; the caller has entered the collector.  Events handled, or -errno. */
int nc_face_dispatch(struct NC_cache *face);

/* How a call of the face ends: what is below zero becomes -1 and errno. */
static inline ssize_t nc_answer(ssize_t result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

/* 0; -EBUSY: handles, exchanges, rings or operations are open; -EINVAL: none of the process's. */
int nc_face_close(struct NC_cache *face);

#endif
