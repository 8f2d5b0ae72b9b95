/* SPDX-License-Identifier: MIT */
/*
 * phase-handler.c - chooses what responds: the pool that is mounted at the path, the pool of the
 * scope, or a file; or the redirect to the path of a folder with the slash at its end.
 */
#include <stdbool.h>
#include <string.h>

#include "config/configuration.h"
#include "core/short-response.h"
#include "core/site.h"
#include "core/transaction.h"
#include "dav/dav.h"
#include "handler/phase.h"
#include "handler/static.h"
#include "http/redirect.h"
#include "http/request.h"

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
	const struct scope *scope = phase_scope_of(transaction, transaction->path);

	if (!scope || scope == transaction->scope || may_respond(transaction, scope))
		return true;
	return !scope->internal && static_has_folder(transaction, scope);
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

/* What is in a folder, and its index, are below the slash that the path lacks. */
enum phase phase_folder(struct transaction *transaction)
{
	size_t length;

	if (!phase_folder_is_there(transaction))
		return phase_responds(transaction_fail(transaction, 404, NULL));
	length = redirect_write_folder(transaction->path, transaction_query(transaction),
				       transaction->head_buffer, sizeof(transaction->head_buffer));
	return phase_responds(short_response_head(transaction, 301, length, 414));
}

/* Other methods than GET and HEAD, where clients may write. */
static enum respond write_files(struct transaction *transaction)
{
	if (dav_takes(transaction->request))
		return dav_respond(transaction);
	if (transaction->request->method == METHOD_OPTIONS)
		return short_response_options(transaction, DAV_ALLOW);
	if (transaction->request->method == METHOD_OTHER)
		return transaction_refuse(transaction, 501, "an unknown method");
	return short_response_method(transaction, DAV_ALLOW);
}

enum phase phase_handler(struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;
	const struct mount *mount =
		config_mount(transaction->config_ref->config, transaction->path);

	if (mount)
		return phase_pool(transaction, mount->pool, mount->length);
	if (scope->pool && !transaction->route.found)
		return phase_pool(transaction, scope->pool, scope->pool_skip);
	if (scope->webdav && !request_is_reading(transaction->request))
		return phase_responds(write_files(transaction));
	if (phase_no_pool(transaction) == PHASE_NOW)
		return PHASE_NOW;
	if (transaction->request->method == METHOD_OPTIONS)
		return phase_responds(short_response_options(transaction, ALLOW_FILE));
	if (!request_is_reading(transaction->request))
		return phase_responds(short_response_method(transaction, ALLOW_FILE));
	if (scope->alias && transaction->path[scope->alias_skip] == '\0')
		return phase_folder(transaction);
	return phase_responds(static_respond(transaction));
}
