/* SPDX-License-Identifier: MIT */
/*
 * phase-redirect.c - the key redirect: sends the client to another URL.
 */

#include <glib.h>
#include <stddef.h>

#include "base/slice.h"
#include "config/configuration.h"
#include "core/request-value.h"
#include "core/short-response.h"
#include "core/site.h"
#include "core/transaction.h"
#include "handler/phase.h"
#include "http/redirect.h"
#include "http/request.h"
#include "rules/template.h"

static enum phase to_tls(struct transaction *transaction)
{
	const struct request *request = transaction->request;
	const struct config *config = transaction->config_ref->config;
	size_t length;

	if (request->host.length == 0)
		return phase_responds(transaction_refuse(
			transaction, 400, "no Host field, to redirect to the same host with TLS"));
	length = redirect_write_tls(request->host, config->tls_port, request->path, request->query,
				    transaction->head_buffer, sizeof(transaction->head_buffer));
	return phase_responds(
		short_response_head(transaction, transaction->scope->redirect_status, length, 414));
}

/*
 * A target with variables; two slashes at its begin would be the name of a host.  A table may have
 * nothing for this request: then there is no redirect.
 */
static enum phase redirect_to_text(struct transaction *transaction)
{
	const struct template *template = transaction->scope->redirect_text;
	struct slice query = transaction_query(transaction);
	GString *text = g_string_new(NULL);
	enum phase phase = PHASE_NEXT;
	const char *target;
	size_t length;

	template_expand(template, TEMPLATE_URI_PATH, request_value, transaction, text);
	if (template_uses(template, TEMPLATE_QUERY))
		query.length = 0;
	for (target = text->str; target[0] == '/' && target[1] == '/'; target++)
		;
	if (*target) {
		length = redirect_write(target, "", query, transaction->head_buffer,
					sizeof(transaction->head_buffer));
		phase = phase_responds(short_response_head(
			transaction, transaction->scope->redirect_status, length, 414));
	}
	g_string_free(text, TRUE);
	return phase;
}

enum phase phase_redirect(struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;
	size_t length;

	if (scope->redirect_tls && !transaction->peer.https)
		return to_tls(transaction);
	if (!scope->redirect_to)
		return PHASE_NEXT;
	if (scope->redirect_text)
		return redirect_to_text(transaction);
	length = redirect_write(scope->redirect_to, transaction->path + scope->redirect_skip,
				transaction_query(transaction), transaction->head_buffer,
				sizeof(transaction->head_buffer));
	return phase_responds(
		short_response_head(transaction, scope->redirect_status, length, 414));
}
