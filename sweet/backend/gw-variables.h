/* SPDX-License-Identifier: MIT */
/*
 * gw-variables.h - what the programs of a pool are told about a request.
 */
#ifndef SWEET_GW_VARIABLES_H
#define SWEET_GW_VARIABLES_H

#include "backend/gateway.h"

/*
 * Writes the variables of a request whose path begins with skip bytes that
 * name the pool; see meta_write().
 */
long gw_variables(const struct gateway_pool *pool, const struct transaction *transaction,
		  size_t skip, char *out, size_t out_size);

/*
 * The bytes of path that name a script: up to the first segment behind skip
 * that ends with suffix; skip when there is none.
 */
size_t gw_script_length(const char *path, size_t skip, const char *suffix);

#endif
