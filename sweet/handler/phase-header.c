/* SPDX-License-Identifier: MIT */
/*
 * phase-header.c - the key header, if its values have variables: what stands for them is known only
 * as long as the request is.
 */
#include "core/server.h"
#include "handler/phase.h"
#include "core/request-value.h"

enum phase phase_header(struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;
	bool fits;

	g_clear_pointer(&transaction->header_lines, g_free);
	if (!scope->header_variables)
		return PHASE_NEXT;
	transaction->header_lines = header_rules_expand(
		scope->header_rules, scope->header_rule_count, request_value, transaction, &fits);
	return fits ? PHASE_NEXT
		    : phase_responds(transaction_refuse(
			      transaction, 414, "a request that makes a field of header too long"));
}
