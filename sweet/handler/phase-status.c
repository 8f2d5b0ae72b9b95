/* SPDX-License-Identifier: MIT */
/*
 * phase-status.c - the status page.  It has its own list of addresses and comes before the rules of
 * all scopes, so that no rule of a site hides it from monitoring.
 */
#include <stddef.h>

#include "config/configuration.h"
#include "core/transaction.h"
#include "handler/phase.h"
#include "handler/status.h"
#include "http/request.h"

/* On a listener of its own, nothing is left that could answer. */
static enum phase refuse(struct transaction *transaction)
{
	if (transaction->config_ref->config->status && status_has(transaction->path) &&
	    request_is_reading(transaction->request))
		return phase_responds(transaction_refuse(
			transaction, 403, "a client that is not one of status-allow"));
	return phase_responds(transaction_fail(transaction, 404, NULL));
}

enum phase phase_status(struct transaction *transaction)
{
	const struct scope *scope;

	if (!request_is_reading(transaction->request) || !status_answers(transaction))
		return transaction->status_only ? refuse(transaction) : PHASE_NEXT;
	scope = host_scope(transaction->host, transaction->path);
	transaction->unlogged = scope->access_log != ACCESS_LOG_ON;
	/* Its errors use the error pages of the scope; its own listener has nothing of the sites. */
	if (!transaction->status_only)
		transaction->scope = scope;
	return phase_responds_early(transaction, status_respond(transaction));
}
