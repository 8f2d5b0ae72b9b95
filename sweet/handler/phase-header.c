/* SPDX-License-Identifier: MIT */
/*
 * phase-header.c - the key header, if its values have variables: what stands for them is known only
 * as long as the request is.
 */

#include <glib.h>
#include <stdbool.h>

#include "config/configuration.h"
#include "core/request-value.h"
#include "core/site.h"
#include "core/transaction.h"
#include "handler/phase.h"
#include "http/request.h"
#include "rules/header-rule.h"

/* Returns false if the fields become too long: then there are none of them. */
static bool expand(struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;
	bool fits = true;

	g_clear_pointer(&transaction->response.header_lines, g_free);
	if (scope->header_variables)
		transaction->response.header_lines =
			header_rules_expand(scope->header_rules, scope->header_rule_count,
					    request_value, transaction, &fits);
	return fits;
}

enum phase phase_header(struct transaction *transaction)
{
	if (expand(transaction))
		return PHASE_NEXT;
	return phase_responds(transaction_refuse(
		transaction, 414, "a request that makes a field of header too long"));
}

enum phase phase_responds_early(struct transaction *transaction, enum respond respond)
{
	if (!transaction->host)
		transaction->host =
			config_host(transaction->config_ref->config, transaction->request->host,
				    transaction->peer.local);
	/* Its listener has nothing of the sites. */
	if (transaction->peer.status_only)
		return phase_responds(respond);
	if (!transaction->scope)
		transaction->scope = host_scope(transaction->host, "/");
	(void)expand(transaction);
	return phase_responds(respond);
}
