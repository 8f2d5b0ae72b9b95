/* SPDX-License-Identifier: MIT */
/*
 * phase-method.c - refuses methods that no resource supports, and responds to "OPTIONS *", which
 * asks about the whole server (RFC 9110, section 9.3.7).
 *
 * Of other methods, a pool can name those that its programs know: phase-pool.c refuses the rest.
 */
#include "base/slice.h"
#include "config/configuration.h"
#include "core/short-response.h"
#include "core/transaction.h"
#include "handler/phase.h"
#include "http/request.h"

enum phase phase_method(struct transaction *transaction)
{
	const struct request *request = transaction->request;
	const struct config *config = transaction->config_ref->config;

	if (request->method == METHOD_OTHER && !config->methods && !config->webdav)
		return phase_responds_early(
			transaction, transaction_refuse(transaction, 501, "an unknown method"));
	if (request->path.at[0] == '*')
		return phase_responds_early(transaction,
					    short_response_options(transaction, ALLOW_ANY));
	if (request->method == METHOD_TRACE)
		return phase_responds_early(transaction,
					    short_response_method(transaction, ALLOW_ANY));
	return PHASE_NEXT;
}

enum phase phase_no_pool(struct transaction *transaction)
{
	if (transaction->request->method != METHOD_OTHER)
		return PHASE_NEXT;
	return phase_responds(transaction_refuse(transaction, 501, "an unknown method"));
}
