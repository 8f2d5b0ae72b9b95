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
#include "config/path-rules.h"
#include "config/pool-config.h"
#include "core/file-path.h"
#include "core/server.h"
#include "core/short-response.h"
#include "core/site.h"
#include "core/transaction.h"
#include "files/docroot.h"
#include "files/file-cache.h"
#include "handler/phase.h"
#include "handler/static.h"
#include "http/redirect.h"
#include "http/request.h"
#include "rules/path-pattern.h"

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

/* Whether these rules let something other than a file respond, which may know the path. */
static bool may_respond(const struct transaction *transaction, const struct scope *scope)
{
	return scope->pool || scope->try_count || scope->rewrite || scope->rewrite_text ||
	       scope->redirect_to ||
	       config_mount(transaction->config_ref->config, transaction->path);
}

/* The path has its slash. */
static bool is_there(struct transaction *transaction)
{
	struct path_captures captures;
	const struct path_rule *rule;
	const struct scope *scope =
		path_rules_find(transaction->config_ref->site->number, transaction->host,
				transaction->path, &transaction->thread->paths, &captures, &rule);
	struct file_version version;
	bool folder;

	if (!scope || scope == transaction->scope || may_respond(transaction, scope))
		return true;
	return !scope->internal && !file_path_is_hidden(scope, transaction->path) &&
	       docroot_look(file_cache_root(site_scope(transaction->config_ref, scope)->file_cache),
			    file_path_of(scope, transaction->path), &folder, &version) == 0 &&
	       folder;
}

bool phase_folder_is_there(struct transaction *transaction)
{
	size_t length = strlen(transaction->path);
	bool there;

	if (length + 1 >= sizeof(transaction->path))
		return true;
	strcpy(transaction->path + length, "/");
	there = is_there(transaction);
	transaction->path[length] = '\0';
	return there;
}

enum phase phase_folder(struct transaction *transaction)
{
	size_t length;

	if (!phase_folder_is_there(transaction))
		return phase_responds(transaction_fail(transaction, 404, NULL));
	length = redirect_write_folder(transaction->path, transaction_query(transaction),
				       transaction->head_buffer, sizeof(transaction->head_buffer));
	return phase_responds(short_response_head(transaction, 301, length, 414));
}
