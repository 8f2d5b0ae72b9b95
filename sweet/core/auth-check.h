/* SPDX-License-Identifier: MIT */
/*
 * auth-check.h - a check of a password, for auth.h: what is asked, and the result.
 */
#ifndef SWEET_AUTH_CHECK_H
#define SWEET_AUTH_CHECK_H

#include <stdbool.h>

#include "auth/htpasswd.h"
#include "base/list.h"
#include "core/auth.h"
#include "event/client-limit.h"
#include "event/thread-pool.h"

struct loop;

#define AUTH_PASSWORD_MAX 512 /* bytes */

/* A check; its memory belongs to the caller until the result. */
struct auth_check {
	/* Set by the caller: */
	struct loop *loop; /* answered() is called on its thread */
	void (*answered)(struct auth_check *check);
	/* The result: */
	enum auth_answer answer;
	unsigned wait_s;
	char user[HTPASSWD_USER_MAX + 1]; /* as sent; "" if there was none */
	/* Private to auth.c: */
	struct job job;
	struct auth *auth;
	struct list_node listed; /* among the checks that were not reported */
	struct list_node later;	 /* in the queue of its client; or among followers */
	struct list followers;	 /* with the same credentials: they get the same answer */
	struct auth_client *of;
	struct client_address client;
	bool refresh, taken, queued;
	char password[AUTH_PASSWORD_MAX + 1];
};

#endif
