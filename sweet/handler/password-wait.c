/* SPDX-License-Identifier: MIT */
/*
 * password-wait.c - see password-wait.h.
 *
 * Another thread does a check that takes time.  The memory of the request ends when the phase
 * returns, so a copy of its head is kept for the result.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/slice.h"
#include "core/auth-check.h"
#include "core/auth.h"
#include "core/server.h"
#include "core/transaction.h"
#include "handler/password-wait.h"
#include "handler/phase.h"
#include "http/request.h"

/* A request that waits for the check of its password. */
struct wait {
	struct auth_check check;
	struct transaction *transaction;
	enum phase (*conclude)(struct transaction *transaction,
			       const struct password_result *result);
	size_t head_length;
	char head[];
};

static enum phase take_result(struct transaction *transaction, const struct wait *wait)
{
	const struct password_result result = {.answer = wait->check.answer,
					       .wait_s = wait->check.wait_s,
					       .user = wait->check.user};

	return wait->conclude(transaction, &result);
}

static enum respond password_go_on(struct transaction *transaction, void *context)
{
	const struct wait *wait = context;
	struct request request;
	enum respond respond = RESPOND_NOW;

	(void)request_parse(&request, wait->head, wait->head_length); /* valid: parsed before */
	transaction->request = &request;
	if (take_result(transaction, wait) == PHASE_NEXT)
		respond = transaction->router->proceed(transaction);
	transaction->request = NULL;
	return respond;
}

static void password_answered(struct auth_check *check)
{
	struct wait *wait = container_of(check, struct wait, check);
	struct transaction *transaction = wait->transaction;

	transaction->responder = NULL;
	/* If the client has disconnected, its address and other data are no longer valid. */
	if (transaction->connection)
		transaction->owner->resume(transaction, password_go_on, wait);
	else
		transaction_done(transaction);
	free(wait);
}

/* No responder has the scratch memory yet. */
static void password_gone(struct transaction *transaction)
{
	struct wait *wait;

	memcpy(&wait, transaction->scratch, sizeof(struct wait *));
	auth_leave(&wait->check);
}

static const struct transaction_responder waits = {.gone = password_gone};

enum phase password_wait(struct transaction *transaction, struct auth *auth, struct slice field,
			 enum phase (*conclude_by)(struct transaction *transaction,
						   const struct password_result *result))
{
	const struct request *request = transaction->request;
	struct wait *wait = malloc(sizeof(*wait) + request->head.length);
	enum phase phase;

	if (!wait)
		return phase_responds(transaction_refuse(transaction, 503,
							 "no memory for the check of a password"));
	wait->transaction = transaction;
	wait->conclude = conclude_by;
	wait->head_length = request->head.length;
	memcpy(wait->head, request->head.at, request->head.length);
	wait->check.loop = transaction->thread->loop;
	wait->check.answered = password_answered;
	if (auth_ask(auth, &wait->check, transaction->peer.remote, field) == AUTH_LATER) {
		memcpy(transaction->scratch, &wait, sizeof(struct wait *));
		transaction->responder = &waits;
		return PHASE_LATER;
	}
	phase = take_result(transaction, wait);
	free(wait);
	return phase;
}
