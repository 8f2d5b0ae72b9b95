/* SPDX-License-Identifier: MIT */
/*
 * phase-address.c - the keys allow and deny: which client addresses the scope serves.
 */
#include "auth/ip-acl.h"
#include "config/configuration.h"
#include "core/transaction.h"
#include "handler/phase.h"

enum phase phase_address(struct transaction *transaction)
{
	if (ip_acl_allows(transaction->scope->access, transaction->remote))
		return PHASE_NEXT;
	return phase_responds(
		transaction_refuse(transaction, 403, "an address that allow and deny refuse"));
}
