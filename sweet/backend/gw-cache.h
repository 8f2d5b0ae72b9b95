/* SPDX-License-Identifier: MIT */
/*
 * gw-cache.h - requests for a gateway's programs that may be answered from the
 * response cache, or wait there for another's answer.
 */
#ifndef SWEET_GW_CACHE_H
#define SWEET_GW_CACHE_H

#include "backend/gateway.h"

/* As gw_respond() does, unless there is an answer, or will be. */
enum respond gw_cache_respond(struct gateway_pool *pool, struct transaction *transaction,
			      size_t skip);

/*
 * Opens the site's response cache, whose bounds follow the size of the cache
 * of units, and lets operators purge it.  False: there is no memory.
 */
bool gw_cache_open(struct site *site, size_t cache_size);

/* The threads have ended, and the connections; before the gateway is closed. */
void gw_cache_end(struct site *site);

/* And after that. */
void gw_cache_close(struct site *site);

#endif
