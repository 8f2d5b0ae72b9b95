/* SPDX-License-Identifier: MIT */
/*
 * cache-lookup.h - responds to requests for a pool from the response cache, or lets them wait for
 * the response to an equal request (coalescing).
 */
#ifndef SWEET_CACHE_LOOKUP_H
#define SWEET_CACHE_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>

#include "core/transaction.h"

struct gateway_pool;
struct server;

/* As backend_call_start(), unless the cache has the response, or will have it. */
enum respond cache_lookup(struct gateway_pool *pool, struct transaction *transaction, size_t skip);

/*
 * Opens the server's response cache, with limits in proportion to the cache of units, and registers
 * the purge function for operators.  Returns false if there is no memory.
 */
bool cache_lookup_open(struct server *server);

/* Call it after the threads and the connections have ended, before the gateway is closed. */
void cache_lookup_end(struct server *server);

/* Call it after the gateway is closed. */
void cache_lookup_close(struct server *server);

#endif
