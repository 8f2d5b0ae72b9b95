/* SPDX-License-Identifier: MIT */
/*
 * phase-index.c - the index of a folder is a path of its own: if other rules hold for it than for the
 * folder, the request has to pass these too, and the index's pool answers, as if try-files led there.
 *
 * Few folders have such an index. All others pass without a look at the file system: static.c finds
 * their index, and cannot find one with other rules.
 */
#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "config/config-script.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/site.h"
#include "core/transaction.h"
#include "gateway/cgi-env.h"
#include "handler/phase.h"
#include "handler/static.h"
#include "http/request.h"

/* Returns the scope of the path, which has become another one; NULL: phase_scope() refuses it. */
static const struct scope *scope_of(struct transaction *transaction)
{
	return phase_scope_of(transaction, transaction->path);
}

/*
 * The request is tried once more, at its first index: try-files of the folder has decided about the
 * folder.
 */
static enum phase go_to(struct transaction *transaction)
{
	transaction->route.rewritten_by = transaction->scope;
	if (!transaction->route.indexed)
		transaction->route.tried = false;
	transaction->route.indexed = true;
	transaction->route.found = false;
	return PHASE_REWRITTEN;
}

enum phase phase_take_index(struct transaction *transaction)
{
	return scope_of(transaction) == transaction->scope ? PHASE_NEXT : go_to(transaction);
}

bool phase_add_index(struct transaction *transaction, size_t length, const char *name)
{
	size_t bytes = strlen(name);

	if (length + bytes >= sizeof(transaction->path))
		return false;
	memcpy(transaction->path + length, name, bytes + 1);
	return true;
}

static bool is_missing(const struct transaction *transaction)
{
	int error = static_hides(transaction) ? -ENOENT : static_look(transaction, false);

	return error == -ENOENT || error == -ENOTDIR || error == -EISDIR;
}

bool phase_has_script_index(struct transaction *transaction)
{
	const struct config *config = transaction->config_ref->config;
	size_t length = strlen(transaction->path), end = length;
	bool missing = true, source = false;

	/* Without its slash, too: phase_pool() redirects then. */
	if (transaction->path[length - 1] != '/' && phase_add_index(transaction, length, "/"))
		end++;
	for (char **name = transaction->scope->index; name && *name && missing; name++) {
		if (!phase_add_index(transaction, end, *name))
			break;
		missing = is_missing(transaction);
		source =
			!missing && config_is_source(config, transaction->scope, transaction->path);
	}
	transaction->path[length] = '\0';
	return source;
}

/* Whether an index of the folder, if it is there, has other rules than the folder. */
static bool differs(struct transaction *transaction, size_t length)
{
	bool keeps = true;

	for (char **name = transaction->scope->index; name && *name && keeps; name++)
		keeps = !phase_add_index(transaction, length, *name) ||
			scope_of(transaction) == transaction->scope;
	transaction->path[length] = '\0';
	return !keeps;
}

/* Whether the folder itself answers: a pool does not, and clients that write mean the folder. */
static bool is_of_folder(struct transaction *transaction, size_t length)
{
	const struct scope *scope = transaction->scope;

	return transaction->path[length - 1] == '/' &&
	       !config_mount(transaction->config_ref->config, transaction->path) &&
	       (!scope->pool || transaction->route.found) && !static_hides(transaction) &&
	       (!scope->webdav || request_is_reading(transaction->request));
}

/* A script that no pool runs does not exist. */
static bool is_dead(struct transaction *transaction)
{
	const struct scope *scope = scope_of(transaction);

	return scope && scope->no_scripts &&
	       config_is_source(transaction->config_ref->config, scope, transaction->path);
}

/* A client that writes names the file itself. */
static bool is_written(struct transaction *transaction)
{
	const struct scope *scope = scope_of(transaction);

	return scope && scope->webdav && !request_is_reading(transaction->request);
}

enum phase phase_index(struct transaction *transaction)
{
	size_t length = strlen(transaction->path);

	if (!is_of_folder(transaction, length) || !differs(transaction, length))
		return PHASE_NEXT;
	for (char **name = transaction->scope->index; *name; name++) {
		if (!phase_add_index(transaction, length, *name))
			return phase_responds(transaction_fail(transaction, 414, NULL));
		if (is_missing(transaction) || is_dead(transaction))
			continue;
		/* What cannot be read is refused by its own rules. */
		if (!is_written(transaction))
			return go_to(transaction);
		break;
	}
	transaction->path[length] = '\0';
	/* One that appears now must not be sent by the rules of the folder. */
	transaction->route.no_index = true;
	return PHASE_NEXT;
}

enum phase phase_script_index(struct transaction *transaction, const struct pool_config *pool,
			      size_t skip)
{
	size_t length = strlen(transaction->path);
	const char *index;
	enum phase phase;

	if (pool->protocol != POOL_FASTCGI)
		return PHASE_NEXT;
	index = cgi_env_index(transaction->scope, transaction->path, skip, pool->script_suffix);
	if (!index)
		return PHASE_NEXT;
	if (!phase_add_index(transaction, length, index))
		return phase_responds(transaction_fail(transaction, 414, NULL));
	phase = phase_take_index(transaction);
	if (phase == PHASE_NEXT)
		transaction->path[length] = '\0';
	return phase;
}

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
