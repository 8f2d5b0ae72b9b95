/* SPDX-License-Identifier: MIT */
/*
 * phase-method.c - refuses methods that no resource supports, and responds to "OPTIONS *", which
 * asks about the whole server (RFC 9110, section 9.3.7).
 */
#include "handler/phase.h"
#include "handler/short-response.h"

enum phase phase_method(struct transaction *transaction)
{
	const struct request *request = transaction->request;

	if (request->method == METHOD_OTHER)
		return phase_responds(transaction_refuse(transaction, 501, "an unknown method"));
	if (request->path.at[0] == '*')
		return phase_responds(short_response_options(transaction, ALLOW_ANY));
	if (request->method == METHOD_TRACE)
		return phase_responds(short_response_method(transaction, ALLOW_ANY));
	return PHASE_NEXT;
}
