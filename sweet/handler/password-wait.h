/* SPDX-License-Identifier: MIT */
/*
 * password-wait.h - the check of a request's password, for which the request may have to wait.
 */
#ifndef SWEET_PASSWORD_WAIT_H
#define SWEET_PASSWORD_WAIT_H

#include "base/slice.h"
#include "core/auth.h"
#include "handler/phase.h"

struct auth;
struct transaction;

struct password_result {
	enum auth_answer answer;
	unsigned wait_s;  /* with AUTH_WAIT */
	const char *user; /* as sent; "" if there was none */
};

/*
 * Checks the value of the field Authorization, and returns what conclude() does with the result.  If
 * another thread does the check, returns PHASE_LATER, and conclude() is called when it is known, with
 * the request set: after PHASE_NEXT the request passes.
 */
enum phase password_wait(struct transaction *transaction, struct auth *auth, struct slice field,
			 enum phase (*conclude)(struct transaction *transaction,
						const struct password_result *result));

#endif
