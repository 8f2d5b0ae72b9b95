/* SPDX-License-Identifier: MIT */
/*
 * phase-method.c - refuses methods that no resource supports, and responds to "OPTIONS *", which
 * asks about the whole server (RFC 9110, section 9.3.7).
 *
 * Of other methods, a pool can name those that its programs know: phase_pool() refuses the rest.
 */
#include "backend/cache-lookup.h"
#include "core/server.h"
#include "handler/phase.h"
#include "handler/short-response.h"

enum phase phase_method(struct transaction *transaction)
{
	const struct request *request = transaction->request;

	if (request->method == METHOD_OTHER && !transaction->config_ref->config->methods)
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

enum phase phase_pool(struct transaction *transaction, const struct pool_config *pool, size_t skip)
{
	const struct request *request = transaction->request;

	if (request->method == METHOD_OTHER && !pool_config_takes(pool, request->method_name))
		return phase_no_pool(transaction);
	transaction->pool_name = pool->name;
	return phase_responds(cache_lookup(pool->running, transaction, skip));
}
