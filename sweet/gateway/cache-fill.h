/* SPDX-License-Identifier: MIT */
/*
 * cache-fill.h - fetches a response from a pool for the response cache: for a client, or while
 * clients get the stale response (stale-while-revalidate, RFC 5861).
 */
#ifndef SWEET_CACHE_FILL_H
#define SWEET_CACHE_FILL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/transaction.h"

struct gateway_pool;
struct respcache_entry;
struct respcache_flight;

/*
 * As backend_call_start(), for the flight, which it ends in every case. outdated: an entry to be
 * validated, which it puts back, or NULL; client_has_it: the client knows that response.
 */
enum respond cache_fill(struct gateway_pool *pool, struct transaction *transaction, size_t skip,
			struct respcache_flight *flight, struct respcache_entry *outdated,
			bool client_has_it);

/* Repeats the transaction's request in the background, without a client. */
void cache_fill_refresh(struct gateway_pool *pool, const struct transaction *transaction,
			size_t skip, struct respcache_flight *flight);

#endif
