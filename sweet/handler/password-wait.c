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
#include "http/request-keep.h"
#include "http/request.h"

/* A request that waits for the check of its password. */
struct wait {
	struct auth_check check;
	struct transaction *transaction;
	enum phase (*conclude)(struct transaction *transaction,
			       const struct password_result *result);
	struct kept_request *kept;
};

static void free_wait(struct wait *wait)
{
	free(wait->kept);
	free(wait);
}

/* Returns NULL without memory. */
static struct wait *make_wait(struct transaction *transaction)
{
	struct wait *wait = calloc(1, sizeof(*wait));

	if (!wait)
		return NULL;
	wait->transaction = transaction;
	wait->kept = request_keep(transaction->request);
	if (wait->kept)
		return wait;
	free_wait(wait);
	return NULL;
}

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

	request_recall(&request, wait->kept);
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
	free_wait(wait);
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
	struct wait *wait = make_wait(transaction);
	enum phase phase;

	if (!wait)
		return phase_responds(transaction_refuse(transaction, 503,
							 "no memory for the check of a password"));
	wait->conclude = conclude_by;
	wait->check.loop = transaction->thread->loop;
	wait->check.answered = password_answered;
	if (auth_ask(auth, &wait->check, transaction->peer.remote, field) == AUTH_LATER) {
		memcpy(transaction->scratch, &wait, sizeof(struct wait *));
		transaction->responder = &waits;
		return PHASE_LATER;
	}
	phase = take_result(transaction, wait);
	free_wait(wait);
	return phase;
}
