/* SPDX-License-Identifier: MIT */
/*
 * pool-respond.c - see pool-respond.h.
 */
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

#include "coding/compress-rule.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/request-value.h"
#include "core/site.h"
#include "core/transaction.h"
#include "gateway/cache-lookup.h"
#include "handler/pool-respond.h"
#include "http/accept.h"
#include "http/request.h"
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
	transaction->response.coding_count =
		accept_codings_by(request, scope->compress.order, transaction->response.codings);
	transaction->response.codings_known = true;
	transaction->request = &changed;
	respond = cache_lookup(site_pool(transaction->config_ref, pool), transaction, skip);
	transaction->request = request;
	g_free(head);
	return respond;
}

enum respond pool_respond(struct transaction *transaction, const struct pool_config *pool,
			  size_t skip)
{
	if (transaction->scope->request_rule_count)
		return look_up_changed(transaction, pool, skip);
	return cache_lookup(site_pool(transaction->config_ref, pool), transaction, skip);
}
