/* SPDX-License-Identifier: MIT */
/*
 * phase-folder.c - paths of folders without the slash at their end: what is in a folder, and its
 * index, are below the slash.
 */
#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "backend/cgi-env.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/short-response.h"
#include "core/transaction.h"
#include "handler/phase.h"
#include "handler/static.h"
#include "http/redirect.h"
#include "http/request.h"

/* Whether an index is a script of the pool: else no folder is looked for. */
static bool has_index(const struct scope *scope, const struct pool_config *pool)
{
	for (char **name = scope->index; name && *name; name++)
		if (g_str_has_suffix(*name, pool->script_suffix))
			return true;
	return false;
}

/* Whether the path, without its slash, is a folder whose index is a script of the pool. */
static bool is_folder_of(struct transaction *transaction, const struct pool_config *pool)
{
	const char *suffix = pool->script_suffix;
	char *path = transaction->path;
	size_t length = strlen(path);
	bool found = false;

	if (path[length - 1] == '/' || !static_finds(transaction, true))
		return false;
	for (char **name = transaction->scope->index; name && *name && !found; name++) {
		if (!g_str_has_suffix(*name, suffix) ||
		    length + 1 + strlen(*name) >= sizeof(transaction->path))
			continue;
		path[length] = '/';
		strcpy(path + length + 1, *name);
		found = static_finds(transaction, false);
	}
	path[length] = '\0';
	return found;
}

bool phase_is_folder(struct transaction *transaction, const struct pool_config *pool, size_t skip)
{
	return pool->protocol == POOL_FASTCGI && *pool->script_suffix &&
	       request_is_reading(transaction->request) && has_index(transaction->scope, pool) &&
	       cgi_env_script_length(transaction->path, skip, pool->script_suffix) == skip &&
	       is_folder_of(transaction, pool);
}

enum phase phase_folder(struct transaction *transaction)
{
	size_t length =
		redirect_write_folder(transaction->path, transaction_query(transaction),
				      transaction->head_buffer, sizeof(transaction->head_buffer));

	return phase_responds(short_response_head(transaction, 301, length, 414));
}
