/* SPDX-License-Identifier: MIT */
/*
 * phase-try.c - the key try-files: a file or folder that exists, or what answers instead of it:
 * another path of the host, whose rules the request has to pass too, a pool, or a status.
 *
 * A request is tried once: the path that answers instead must exist.
 */
#include <stdbool.h>
#include <string.h>

#include "config/config-script.h"
#include "config/configuration.h"
#include "core/site.h"
#include "core/transaction.h"
#include "handler/phase.h"
#include "handler/static.h"

static enum phase answer(struct transaction *transaction, const struct try_file *item)
{
	const struct scope *scope = transaction->scope;

	switch (item->kind) {
	case TRY_PATH:
		strcpy(transaction->path, item->text);
		transaction->route.rewritten_by = scope;
		return PHASE_REWRITTEN;
	case TRY_POOL:
		return phase_pool(transaction, item->pool, scope->try_skip);
	default:
		return phase_responds(transaction_fail(transaction, item->status, NULL));
	}
}

static bool exists(const struct transaction *transaction, bool folder)
{
	const struct config *config = transaction->config_ref->config;

	/* The index of a folder, which has rules of its own, answers for the folder. */
	if (transaction->route.indexed)
		folder = false;
	if (!folder && config_is_source(config, transaction->scope, transaction->path))
		return false;
	return !static_hides(transaction) && static_finds(transaction, folder);
}

/* The index of the folder may be a script of the pool that answers there: then the pool does. */
static enum phase find_folder(struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;
	const struct try_file *last = &scope->tries[scope->try_count - 1];

	if ((scope->pool || last->pool) && phase_has_script_index(transaction))
		return scope->pool ? phase_pool(transaction, scope->pool, scope->pool_skip)
				   : phase_pool(transaction, last->pool, scope->try_skip);
	transaction->route.found = true;
	return PHASE_NEXT;
}

enum phase phase_try(struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;

	if (transaction->route.tried ||
	    config_mount(transaction->config_ref->config, transaction->path))
		return PHASE_NEXT;
	transaction->route.tried = true;
	for (unsigned i = 0; i < scope->try_count; i++) {
		const struct try_file *item = &scope->tries[i];

		if (item->kind != TRY_FILE && item->kind != TRY_FOLDER)
			return answer(transaction, item);
		if (!exists(transaction, item->kind == TRY_FOLDER))
			continue;
		if (item->kind == TRY_FOLDER)
			return find_folder(transaction);
		transaction->route.found = true;
		return PHASE_NEXT;
	}
	return phase_responds(transaction_fail(transaction, 404, NULL));
}
