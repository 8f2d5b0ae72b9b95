/* SPDX-License-Identifier: MIT */
/*
 * phase-rate.c - the key request-rate: refuses requests above the rate that the scope permits to
 * each client, and says when to try again.
 */

#include <stdint.h>

#include "config/configuration.h"
#include "core/server.h"
#include "core/short-response.h"
#include "core/transaction.h"
#include "event/client-limit.h"
#include "event/loop.h"
#include "handler/phase.h"

#define SECOND UINT64_C(1000000000)

enum phase phase_rate(struct transaction *transaction)
{
	const struct rate_limit *rate = transaction->scope->rate;
	const struct scope *before = transaction->rewritten_by;
	struct thread *thread = transaction->thread;
	uint64_t wait_ns;

	/* Count a request once, even if it was rewritten. */
	if (before && before->rate && before->rate->scope == rate->scope)
		return PHASE_NEXT;
	wait_ns = client_limits_take(thread->server->limits, rate, transaction->remote,
				     loop_now_ns(thread->loop));
	if (!wait_ns)
		return PHASE_NEXT;
	return phase_responds(short_response_retry(transaction, 429,
						   (wait_ns + SECOND - 1) / SECOND,
						   "more requests than request-rate"));
}
