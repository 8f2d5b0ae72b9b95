/* SPDX-License-Identifier: MIT */
/*
 * phase-password.c - the key auth: a client without a valid user and password of the scope's file
 * gets 401.
 *
 * Another thread does a check that takes time.  The memory of the request ends when the phase
 * returns, so a copy of its head is kept for the result.
 */
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "core/auth.h"
#include "core/server.h"
#include "core/short-response.h"
#include "core/site.h"
#include "core/transaction.h"
#include "handler/phase.h"
#include "http/request.h"

/* A request that waits for the check of its password. */
struct wait {
	struct auth_check check;
	struct transaction *transaction;
	size_t head_length;
	char head[];
};

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

static enum phase conclude(struct transaction *transaction, const struct auth_check *check)
{
	switch (check->answer) {
	case AUTH_YES:
		memcpy(transaction->remote_user, check->user, sizeof(check->user));
		/* Its fields may name the user. */
		return phase_header(transaction);
	case AUTH_WAIT:
		return phase_responds(short_response_retry(transaction, 429, check->wait_s,
							   "too many wrong passwords"));
	case AUTH_BUSY:
		return phase_responds(short_response_retry(transaction, 503, 1,
							   "too many passwords are being checked"));
	default:
		return ask_password(transaction);
	}
}

static enum respond password_go_on(struct transaction *transaction, void *context)
{
	const struct wait *wait = context;
	struct request request;
	enum respond respond = RESPOND_NOW;

	(void)request_parse(&request, wait->head, wait->head_length); /* valid: parsed before */
	transaction->request = &request;
	if (conclude(transaction, &wait->check) == PHASE_NEXT)
		respond = transaction->owner->proceed(transaction);
	transaction->request = NULL;
	return respond;
}

static void password_answered(struct auth_check *check)
{
	struct wait *wait = container_of(check, struct wait, check);
	struct transaction *transaction = wait->transaction;

	transaction->gone = NULL;
	/* If the client has disconnected, its address and other data are no longer valid. */
	if (transaction->connection)
		transaction->owner->resume(transaction, password_go_on, wait);
	else
		transaction->done(transaction);
	free(wait);
}

/* No responder has the scratch memory yet. */
static void password_gone(struct transaction *transaction)
{
	struct wait *wait;

	memcpy(&wait, transaction->scratch, sizeof(struct wait *));
	auth_leave(&wait->check);
}

static enum phase authenticate(struct transaction *transaction)
{
	const struct request *request = transaction->request;
	const struct slice *field = request_find(request, "Authorization");
	struct wait *wait;
	enum phase phase;

	if (!field)
		return ask_password(transaction);
	wait = malloc(sizeof(*wait) + request->head.length);
	if (!wait)
		return phase_responds(transaction_refuse(transaction, 503,
							 "no memory for the check of a password"));
	wait->transaction = transaction;
	wait->head_length = request->head.length;
	memcpy(wait->head, request->head.at, request->head.length);
	wait->check.loop = transaction->thread->loop;
	wait->check.answered = password_answered;
	if (auth_ask(auth_of(transaction, transaction->scope), &wait->check, transaction->remote,
		     *field) == AUTH_LATER) {
		memcpy(transaction->scratch, &wait, sizeof(struct wait *));
		transaction->gone = password_gone;
		return PHASE_LATER;
	}
	phase = conclude(transaction, &wait->check);
	free(wait);
	return phase;
}

enum phase phase_password(struct transaction *transaction)
{
	const struct scope *before = transaction->rewritten_by;

	if (before && auth_of(transaction, before) == auth_of(transaction, transaction->scope))
		return PHASE_NEXT;
	return authenticate(transaction);
}
