/* SPDX-License-Identifier: MIT */
/*
 * gw-fetch.h - asking a pool for what the response cache is to keep: for a
 * client, or while clients get the old answer (stale-while-revalidate, RFC
 * 5861).
 */
#ifndef SWEET_GW_FETCH_H
#define SWEET_GW_FETCH_H

#include "backend/gateway.h"
#include "respcache/respcache.h"

/* As gw_respond() does, for the flight, which is ended whatever comes. */
enum respond gw_fetch(struct gateway_pool *pool, struct transaction *transaction, size_t skip,
		      struct respcache_flight *flight);

/*
 * Asks once more for what the transaction asks for, with nobody to send the
 * answer to.
 */
void gw_refresh(struct gateway_pool *pool, const struct transaction *transaction, size_t skip,
		struct respcache_flight *flight);

#endif
