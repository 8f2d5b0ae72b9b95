/* SPDX-License-Identifier: MIT */
/*
 * cgi-env.h - the variables that describe a request to the programs of a pool.
 */
#ifndef SWEET_CGI_ENV_H
#define SWEET_CGI_ENV_H

#include <stddef.h>

struct gateway_pool;
struct scope;
struct transaction;

/*
 * Writes the variables of a request; the first skip bytes of its path name the pool.  Returns as
 * meta_write() does.
 */
long cgi_env_write(const struct gateway_pool *pool, const struct transaction *transaction,
		   size_t skip, char *out, size_t out_size);

/*
 * Returns how many bytes of path name a script: up to the end of the first segment after skip that
 * ends with suffix; skip if there is none.
 */
size_t cgi_env_script_length(const char *path, size_t skip, const char *suffix);

/*
 * Returns the name of the script that stands for the folder which path names; NULL: path names no
 * folder, or a script, or the scope has no such index.
 */
const char *cgi_env_index(const struct scope *scope, const char *path, size_t skip,
			  const char *suffix);

#endif
