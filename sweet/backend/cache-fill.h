/* SPDX-License-Identifier: MIT */
/*
 * cache-fill.h - asking a pool for what the response cache is to keep: for a
 * client, or while clients get the old answer (stale-while-revalidate, RFC
 * 5861).
 */
#ifndef SWEET_CACHE_FILL_H
#define SWEET_CACHE_FILL_H

#include "backend/gateway.h"
#include "respcache/respcache.h"

/* As backend_call_start() does, for the flight, which is ended whatever comes. */
enum respond cache_fill(struct gateway_pool *pool, struct transaction *transaction, size_t skip,
			struct respcache_flight *flight);

/*
 * Asks once more for what the transaction asks for, with nobody to send the
 * answer to.
 */
void cache_fill_refresh(struct gateway_pool *pool, const struct transaction *transaction,
			size_t skip, struct respcache_flight *flight);

#endif
