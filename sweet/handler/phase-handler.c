/* SPDX-License-Identifier: MIT */
/*
 * phase-handler.c - chooses what responds: the pool that is mounted at the path, the pool of the
 * scope, or a file.
 */
#include "config/configuration.h"
#include "core/short-response.h"
#include "core/site.h"
#include "core/transaction.h"
#include "dav/dav.h"
#include "handler/phase.h"
#include "handler/static.h"
#include "http/request.h"

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
