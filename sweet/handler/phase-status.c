/* SPDX-License-Identifier: MIT */
/*
 * phase-status.c - the status page.  It has its own list of addresses and comes before the rules of
 * all scopes, so that no rule of a site hides it from monitoring.
 */
#include "config/configuration.h"
#include "core/transaction.h"
#include "handler/phase.h"
#include "handler/status.h"
#include "http/request.h"

enum phase phase_status(struct transaction *transaction)
{
	if (!request_is_reading(transaction->request) || !status_answers(transaction))
		return PHASE_NEXT;
	/* Its errors use the error pages of the scope. */
	transaction->scope = host_scope(transaction->host, transaction->path);
	return phase_responds_early(transaction, status_respond(transaction));
}
