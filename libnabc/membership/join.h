/* SPDX-License-Identifier: MIT */
/*
 * join.h - joining another process's cache: the member's end of attach.h.
 */
#ifndef NC_JOIN_H
#define NC_JOIN_H

#include "cache/cache.h"
#include "wire/wire.h"

/* Says what is wanted (NC_WIRE_*). */
int nc_join_hello(int socket, uint32_t flags);

/*
 * Waits at most timeout_ms for the welcome on socket and sets cache up.  fds
 * receives the descriptors behind the segment's, the caller's from then on.
 */
int nc_join(struct nc_cache *cache, int socket, int timeout_ms, struct nc_wire_welcome *welcome,
	    int *fds);

#endif
