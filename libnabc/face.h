/* SPDX-License-Identifier: MIT */
/*
 * face.h - the process's cache: the library's only global state.
 *
 * The exported calls find it here.  A process that has none joins the one
 * that $NABC_CACHE names at its first call.
 */
#ifndef NC_FACE_H
#define NC_FACE_H

#include "attach.h"
#include "cache.h"
#include "transmit.h"

struct NC_cache {
	struct nc_cache cache;
	struct nc_transmit transmit;
	struct nc_attach attach;
	int socket;		    /* joined: kept open for as long as we are a member */
	_Atomic unsigned exchanges; /* that were started and not closed */
};

/* The process's cache; NULL and *error when there is none and none can be joined. */
struct NC_cache *nc_face_find(int *error);

/* Opens one as the owner, or joins one; -EBUSY when the process has one. */
int nc_face_open(const struct NC_cache_options *options, struct NC_cache **face);
int nc_face_attach(const char *path, struct NC_cache **face);

/*
 * Joins by a step that fills face->cache from socket; for workers.  The
 * socket belongs to the face afterwards, and on failure still to the caller.
 */
typedef int nc_face_join(struct nc_cache *cache, int socket, void *context);
int nc_face_adopt(int socket, nc_face_join *join, void *context, struct NC_cache **face);

/* 0; -EBUSY: handles or exchanges are open; -EINVAL: not the process's cache. */
int nc_face_close(struct NC_cache *face);

#endif
