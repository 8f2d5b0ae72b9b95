/* SPDX-License-Identifier: MIT */
/*
 * phase-redirect.c - the key redirect: sends the client to another URL.
 */
#include "core/server.h"
#include "handler/phase.h"
#include "handler/short-response.h"
#include "http/redirect.h"

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

enum phase phase_redirect(struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;
	size_t length;

	if (scope->redirect_tls && !transaction->https)
		return to_tls(transaction);
	if (!scope->redirect_to)
		return PHASE_NEXT;
	length = redirect_write(scope->redirect_to, transaction->path + scope->redirect_skip,
				transaction->request->query, transaction->head_buffer,
				sizeof(transaction->head_buffer));
	return phase_responds(
		short_response_head(transaction, scope->redirect_status, length, 414));
}
