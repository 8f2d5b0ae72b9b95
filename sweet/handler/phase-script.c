/* SPDX-License-Identifier: MIT */
/*
 * phase-script.c - the key suffix of a pool: files with it are scripts, which the pool runs,
 * wherever they are; the index of a folder can be one.
 *
 * Only a script that exists gets to the pool: an application that runs scripts must not be asked to
 * look for one.  Its source is never sent (static.c).
 */
#include <stdbool.h>
#include <string.h>

#include "config/config-script.h"
#include "config/configuration.h"
#include "core/site.h"
#include "core/transaction.h"
#include "handler/phase.h"
#include "handler/static.h"

/* Whether the first bytes of the path name a file. */
static bool is_file(struct transaction *transaction, size_t length)
{
	char *end = transaction->path + length, after = *end;
	bool file;

	*end = '\0';
	file = static_finds(transaction, false);
	*end = after;
	return file;
}

/* Appends the first index name that exists, if that is a script; returns its pool, or NULL. */
static const struct pool_config *find_index(struct transaction *transaction)
{
	size_t length = strlen(transaction->path), script;
	char *end = transaction->path + length;

	for (char **name = transaction->scope->index; name && *name; name++) {
		const struct pool_config *pool;

		if (!phase_add_index(transaction, length, *name))
			break;
		if (static_hides(transaction) || !static_finds(transaction, false))
			continue;
		pool = config_script(transaction->host, transaction->path, &script);
		if (pool)
			return pool;
		break;
	}
	*end = '\0';
	return NULL;
}

enum phase phase_script(struct transaction *transaction)
{
	const struct config *config = transaction->config_ref->config;
	const char *path = transaction->path;
	const struct pool_config *pool;
	size_t length;
	enum phase phase;

	if (transaction->scope->pool || transaction->scope->no_scripts ||
	    config_mount(config, path) || static_hides(transaction))
		return PHASE_NEXT;
	pool = config_script(transaction->host, path, &length);
	if (pool && !is_file(transaction, length))
		pool = NULL;
	else if (!pool && path[strlen(path) - 1] == '/') {
		pool = find_index(transaction);
		phase = pool ? phase_take_index(transaction) : PHASE_NEXT;
		if (phase != PHASE_NEXT)
			return phase;
	}
	return pool ? phase_pool(transaction, pool, 0) : PHASE_NEXT;
}
