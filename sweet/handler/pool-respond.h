/* SPDX-License-Identifier: MIT */
/*
 * pool-respond.h - a pool responds to the client's request, or to what request-header makes of it.
 */
#ifndef SWEET_POOL_RESPOND_H
#define SWEET_POOL_RESPOND_H

#include <stddef.h>

#include "core/transaction.h"

struct pool_config;

/* skip: as for cache_lookup(). */
enum respond pool_respond(struct transaction *transaction, const struct pool_config *pool,
			  size_t skip);

#endif
