/* SPDX-License-Identifier: MIT */
/*
 * cache-lookup.h - requests for a gateway's programs that may be answered from the
 * response cache, or wait there for another's answer.
 */
#ifndef SWEET_CACHE_LOOKUP_H
#define SWEET_CACHE_LOOKUP_H

#include "backend/gateway.h"

/* As backend_call_start() does, unless there is an answer, or will be. */
enum respond cache_lookup(struct gateway_pool *pool, struct transaction *transaction, size_t skip);

/*
 * Opens the server's response cache, whose bounds follow the size of the cache
 * of units, and lets operators purge it.  False: there is no memory.
 */
bool cache_lookup_open(struct server *server);

/* The threads have ended, and the connections; before the gateway is closed. */
void cache_lookup_end(struct server *server);

/* And after that. */
void cache_lookup_close(struct server *server);

#endif
