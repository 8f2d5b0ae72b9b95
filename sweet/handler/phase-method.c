/* SPDX-License-Identifier: MIT */
/*
 * phase-method.c - refuses methods that no resource supports, and responds to "OPTIONS *", which
 * asks about the whole server (RFC 9110, section 9.3.7).
 *
 * Of other methods, a pool can name those that its programs know: phase_pool() refuses the rest.
 */
#include "backend/cache-lookup.h"
#include "core/request-value.h"
#include "core/server.h"
#include "core/short-response.h"
#include "handler/phase.h"
#include "rules/request-rule.h"

enum phase phase_method(struct transaction *transaction)
{
	const struct request *request = transaction->request;
	const struct config *config = transaction->config_ref->config;

	if (request->method == METHOD_OTHER && !config->methods && !config->webdav)
		return phase_responds(transaction_refuse(transaction, 501, "an unknown method"));
	if (request->path.at[0] == '*')
		return phase_responds(short_response_options(transaction, ALLOW_ANY));
	if (request->method == METHOD_TRACE)
		return phase_responds(short_response_method(transaction, ALLOW_ANY));
	return PHASE_NEXT;
}

enum phase phase_no_pool(struct transaction *transaction)
{
	if (transaction->request->method != METHOD_OTHER)
		return PHASE_NEXT;
	return phase_responds(transaction_refuse(transaction, 501, "an unknown method"));
}

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
	respond = cache_lookup(pool->running, transaction, skip);
	transaction->request = request;
	g_free(head);
	return respond;
}

enum phase phase_pool(struct transaction *transaction, const struct pool_config *pool, size_t skip)
{
	const struct request *request = transaction->request;

	if (request->method == METHOD_OTHER && !pool_config_takes(pool, request->method_name))
		return phase_no_pool(transaction);
	transaction->pool_name = pool->name;
	if (transaction->scope->request_rule_count)
		return phase_responds(look_up_changed(transaction, pool, skip));
	return phase_responds(cache_lookup(pool->running, transaction, skip));
}
