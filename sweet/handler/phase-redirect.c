/* SPDX-License-Identifier: MIT */
/*
 * phase-redirect.c - the key redirect: sends the client to another URL.
 */
#include "core/server.h"
#include "handler/phase.h"
#include "handler/short-response.h"
#include "http/redirect.h"

enum phase phase_redirect(struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;
	size_t length;

	if (!scope->redirect_to)
		return PHASE_NEXT;
	length = redirect_write(scope->redirect_to, transaction->path + scope->redirect_skip,
				transaction->request->query, transaction->head_buffer,
				sizeof(transaction->head_buffer));
	return phase_responds(
		short_response_head(transaction, scope->redirect_status, length, 414));
}
