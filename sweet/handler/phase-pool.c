/* SPDX-License-Identifier: MIT */
/*
 * phase-pool.c - a pool responds: with the client's request, or with what request-header makes of it.
 */

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "backend/cache-lookup.h"
#include "coding/compress-rule.h"
#include "config/configuration.h"
#include "config/path-rules.h"
#include "config/pool-config.h"
#include "core/request-value.h"
#include "core/server.h"
#include "core/site.h"
#include "core/transaction.h"
#include "handler/phase.h"
#include "http/accept.h"
#include "http/request.h"
#include "http/uri.h"
#include "rules/path-pattern.h"
#include "rules/request-rule.h"

/* Looks up with the request that the scope's rules make of the client's. */
static enum respond look_up_changed(struct transaction *transaction, const struct pool_config *pool,
				    size_t skip)
{
	const struct request *request = transaction->request;
	const struct scope *scope = transaction->scope;
	struct request changed;
	enum respond respond;
	char *head;

	head = request_rules_apply(
		(struct request_rules){scope->request_rules, scope->request_rule_count}, request,
		request_value, transaction, &changed);
	if (!head)
		return transaction_refuse(transaction, 431,
					  "a request that the fields of request-header make too "
					  "large");
	/* A rule may hide from the program, which need not compress, what the client accepts. */
	transaction->coding_count =
		accept_codings_by(request, scope->compress.order, transaction->codings);
	transaction->codings_known = true;
	transaction->request = &changed;
	respond = cache_lookup(site_pool(transaction->config_ref, pool), transaction, skip);
	transaction->request = request;
	g_free(head);
	return respond;
}

/*
 * Whether the path has other rules without its parameters, which many HTTP servers drop before they
 * look at it: "/admin;a" is /admin for them.
 */
static bool parameters_hide_rules(const struct transaction *transaction)
{
	unsigned generation = transaction->config_ref->site->number;
	struct path_memory **memory = &transaction->thread->paths;
	char plain[REQUEST_TARGET_MAX + 1];
	const struct scope *scope;
	struct path_captures captures;
	const struct path_rule *rule;

	if (strlen(transaction->path) >= sizeof(plain))
		return true;
	if (!uri_without_parameters(transaction->path, plain))
		return false;
	scope = path_rules_find(generation, transaction->host, transaction->path, memory, &captures,
				&rule);
	return !scope || scope != path_rules_find(generation, transaction->host, plain, memory,
						  &captures, &rule);
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
	transaction->pool_name = pool->name;
	/* After a redirect of a program, the request is one that rules have changed. */
	if (!transaction->redirects)
		transaction->has_authorization = request_find(request, "Authorization");
	if (transaction->scope->request_rule_count)
		return phase_responds(look_up_changed(transaction, pool, skip));
	return phase_responds(
		cache_lookup(site_pool(transaction->config_ref, pool), transaction, skip));
}
