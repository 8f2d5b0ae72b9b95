/* SPDX-License-Identifier: MIT */
/*
 * phase-scope.c - finds the scope of the path, whose rules apply.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include "config/configuration.h"
#include "config/path-rules.h"
#include "core/server.h"
#include "core/transaction.h"
#include "handler/phase.h"
#include "log/log.h"

static enum phase refuse(struct transaction *transaction, struct path_rule *rule)
{
	if (!rule)
		return phase_responds_early(transaction,
					    transaction_refuse(transaction, 503, "no memory"));
	if (!atomic_exchange_explicit(&rule->reported, true, memory_order_relaxed))
		log_error("[pattern %s]: the expression backtracks too much for \"%.200s\": such "
			  "requests are answered with 500",
			  rule->name, transaction->path);
	/* The rules of the path are not known: those of its prefix have the error page. */
	transaction->scope = host_scope(transaction->host, transaction->path);
	return phase_responds_early(
		transaction,
		transaction_refuse(transaction, 500, "a pattern that backtracks too much"));
}

enum phase phase_scope(struct transaction *transaction)
{
	struct path_rule *rule;

	transaction->scope = path_rules_find(transaction->config_ref->config, transaction->host,
					     transaction->path, &transaction->thread->paths,
					     &transaction->captures, &rule);
	return transaction->scope ? PHASE_NEXT : refuse(transaction, rule);
}
