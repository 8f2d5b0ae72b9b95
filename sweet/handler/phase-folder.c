/* SPDX-License-Identifier: MIT */
/*
 * phase-folder.c - paths of folders without the slash at their end: what is in a folder, and its
 * index, are below the slash.
 */
#include <stdbool.h>
#include <string.h>

#include "config/configuration.h"
#include "core/short-response.h"
#include "core/site.h"
#include "core/transaction.h"
#include "handler/phase.h"
#include "handler/static.h"
#include "http/redirect.h"

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

enum phase phase_folder(struct transaction *transaction)
{
	size_t length;

	if (!phase_folder_is_there(transaction))
		return phase_responds(transaction_fail(transaction, 404, NULL));
	length = redirect_write_folder(transaction->path, transaction_query(transaction),
				       transaction->head_buffer, sizeof(transaction->head_buffer));
	return phase_responds(short_response_head(transaction, 301, length, 414));
}
