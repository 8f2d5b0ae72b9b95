/* SPDX-License-Identifier: MIT */
/*
 * phase-pool.c - a pool responds, unless the path is that of a folder, or means something else to a
 * program than to the rules.
 */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/transaction.h"
#include "handler/phase.h"
#include "handler/pool-respond.h"
#include "http/request.h"
#include "http/uri.h"

/*
 * Whether the path has other rules without its parameters, which many HTTP servers drop before they
 * look at it: "/admin;a" is /admin for them.
 */
static bool parameters_hide_rules(const struct transaction *transaction)
{
	char plain[REQUEST_TARGET_MAX + 1];
	const struct scope *scope;

	if (strlen(transaction->path) >= sizeof(plain))
		return true;
	if (!uri_without_parameters(transaction->path, plain))
		return false;
	scope = phase_scope_of(transaction, transaction->path);
	return !scope || scope != phase_scope_of(transaction, plain);
}

enum phase phase_pool(struct transaction *transaction, const struct pool_config *pool, size_t skip)
{
	const struct request *request = transaction->request;
	enum phase phase;

	if (request->method == METHOD_OTHER && !pool_config_takes(pool, request->method_name))
		return phase_no_pool(transaction);
	if (phase_is_folder(transaction, pool, skip))
		return phase_folder(transaction);
	phase = phase_script_index(transaction, pool, skip);
	if (phase != PHASE_NEXT)
		return phase;
	if (pool->protocol == POOL_HTTP && uri_has_dot_parameter(transaction->path))
		return phase_responds(transaction_refuse(
			transaction, 400,
			"a path with a segment . or .. that has a parameter, for an HTTP server, "
			"which may resolve it"));
	if (pool->protocol == POOL_HTTP && parameters_hide_rules(transaction))
		return phase_responds(transaction_refuse(
			transaction, 400,
			"a path that has other rules without its parameters, for an HTTP server, "
			"which may drop them"));
	transaction->response.pool_name = pool->name;
	/* After a redirect of a program, the request is one that rules have changed. */
	if (!transaction->route.redirects)
		transaction->has_authorization = request_find(request, "Authorization");
	return phase_responds(pool_respond(transaction, pool, skip));
}
