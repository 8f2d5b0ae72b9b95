/* SPDX-License-Identifier: MIT */
/*
 * phase-password.c - the key auth: a client without a valid user and password of the scope's file
 * gets 401.
 */
#include <glib.h>
#include <stddef.h>

#include "base/slice.h"
#include "config/configuration.h"
#include "core/auth.h"
#include "core/short-response.h"
#include "core/site.h"
#include "core/transaction.h"
#include "handler/password-wait.h"
#include "handler/phase.h"
#include "http/request.h"

static struct auth *auth_of(const struct transaction *transaction, const struct scope *scope)
{
	return site_scope(transaction->config_ref, scope)->auth;
}

static enum phase ask_password(struct transaction *transaction)
{
	size_t length = auth_challenge(transaction->scope->auth_realm, transaction->head_buffer,
				       sizeof(transaction->head_buffer));

	return phase_responds(short_response_head(transaction, 401, length, 500));
}

static enum phase password_conclude(struct transaction *transaction,
				    const struct password_result *result)
{
	switch (result->answer) {
	case AUTH_YES:
		g_strlcpy(transaction->remote_user, result->user, sizeof(transaction->remote_user));
		/* Its fields may name the user. */
		return phase_header(transaction);
	case AUTH_WAIT:
		return phase_responds(short_response_retry(transaction, 429, result->wait_s,
							   "too many wrong passwords"));
	case AUTH_BUSY:
		return phase_responds(short_response_retry(transaction, 503, 1,
							   "too many passwords are being checked"));
	default:
		return ask_password(transaction);
	}
}

static enum phase authenticate(struct transaction *transaction)
{
	const struct slice *field = request_find(transaction->request, "Authorization");

	if (!field)
		return ask_password(transaction);
	return password_wait(transaction, auth_of(transaction, transaction->scope), *field,
			     password_conclude);
}

enum phase phase_password(struct transaction *transaction)
{
	const struct scope *before = transaction->route.rewritten_by;

	if (before && auth_of(transaction, before) == auth_of(transaction, transaction->scope))
		return PHASE_NEXT;
	return authenticate(transaction);
}
