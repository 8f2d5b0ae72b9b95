/* SPDX-License-Identifier: MIT */
/*
 * cgi-env.h - what the programs of a pool are told about a request.
 */
#ifndef SWEET_CGI_ENV_H
#define SWEET_CGI_ENV_H

#include "backend/gateway.h"

/*
 * Writes the variables of a request whose path begins with skip bytes that
 * name the pool; see meta_write().
 */
long cgi_env_write(const struct gateway_pool *pool, const struct transaction *transaction,
		   size_t skip, char *out, size_t out_size);

/*
 * The bytes of path that name a script: up to the first segment behind skip
 * that ends with suffix; skip when there is none.
 */
size_t cgi_env_script_length(const char *path, size_t skip, const char *suffix);

#endif
