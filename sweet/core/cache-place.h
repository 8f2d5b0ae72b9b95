/* SPDX-License-Identifier: MIT */
/*
 * cache-place.h - where a request for a gateway came in: distinguishes its responses in the cache
 * from those to the same URL elsewhere.
 */
#ifndef SWEET_CACHE_PLACE_H
#define SWEET_CACHE_PLACE_H

#include <stdbool.h>

#include "base/slice.h"
#include "http/cachekey.h"

struct pool_config;
struct transaction;

#define CACHE_PLACE_HOST_MAX 64 /* bytes of "[2001:db8::1]:8080" */

struct cache_place {
	struct cachekey_place key; /* for the texts below */
	char host[CACHE_PLACE_HOST_MAX], text[CACHEKEY_PLACE_MAX];
};

/* Returns the host that is used if a request does not name one. */
struct slice cache_place_host(const struct transaction *transaction,
			      char host[CACHE_PLACE_HOST_MAX]);

/*
 * Writes scheme, the socket's own address, host, scope and pool.  Returns false if the names are
 * too long.
 */
bool cache_place_write(struct cache_place *place, const struct transaction *transaction,
		       const struct pool_config *pool);

#endif
