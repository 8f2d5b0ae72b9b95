/* SPDX-License-Identifier: MIT */
/*
 * phase-internal.c - the key internal: for clients the path does not exist; a rewrite, try-files and
 * programs lead to it, and programs to such paths only.
 */

#include <stdbool.h>
#include <stddef.h>

#include "config/configuration.h"
#include "core/transaction.h"
#include "handler/phase.h"
#include "log/log.h"

enum phase phase_internal(struct transaction *transaction)
{
	bool internal = transaction->scope->internal;

	if (transaction->rewritten_by || internal == transaction->internal)
		return PHASE_NEXT;
	if (internal)
		return phase_responds(transaction_fail(transaction, 404, NULL));
	log_warning("%s: a program leads to \"%s\" by X-Accel-Redirect, which is not internal: "
		    "refused",
		    transaction->remote_addr, transaction->path);
	return phase_responds(transaction_fail(transaction, 502, NULL));
}
