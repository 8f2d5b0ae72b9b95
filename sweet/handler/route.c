/* SPDX-License-Identifier: MIT */
/*
 * route.c - from a request to its responder: the host and the scope that it
 * is for, what that scope asks of it, then the status page, a gateway's
 * prefix, else a file.
 *
 * A scope's rules in their order: the rate, the address, the password, the
 * redirect, the rewrite.  A path that was rewritten is put to the rules of
 * its new scope, but neither redirected nor rewritten again.
 *
 * A password that takes time is checked elsewhere while the request, whose
 * memory ends with this call, waits as a copy of its head.  All else is done
 * on the transaction's thread at once.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "auth/ip-acl.h"
#include "backend/cache-lookup.h"
#include "core/auth.h"
#include "core/server.h"
#include "handler/route.h"
#include "handler/static.h"
#include "handler/status.h"
#include "http/redirect.h"
#include "http/uri.h"

/* By any resource; by a file. */
#define ALLOW_ANY "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n"
#define REDIRECTS_MAX 10
#define ALLOW_FILE "Allow: GET, HEAD, OPTIONS\r\n"

/* A request that waits for the check of its password. */
struct wait {
	struct auth_check check; /* must be first */
	struct transaction *transaction;
	const struct scope *before; /* as enter()'s */
	size_t head_length;
	char head[];
};

static enum respond enter(struct transaction *transaction, const struct scope *before);

/* --- answers that are made here ------------------------------------------------- */

/* An answer without a body that says what is allowed. */
static enum respond tell_methods(struct transaction *transaction, const char *allow)
{
	transaction->status = 204;
	transaction->bodiless = true;
	transaction->head = allow;
	transaction->head_length = strlen(allow);
	return RESPOND_NOW;
}

static enum respond refuse_method(struct transaction *transaction, const char *allow)
{
	transaction->head = allow;
	transaction->head_length = strlen(allow);
	return transaction_fail(transaction, 405, NULL);
}

static bool is_reading(const struct request *request)
{
	return request->method == METHOD_GET || request->method == METHOD_HEAD;
}

/* length bytes of fields are in the head's buffer; 0: they did not fit. */
static enum respond answer_with(struct transaction *transaction, int status, size_t length,
				int otherwise)
{
	if (length == 0)
		return transaction_refuse(transaction, otherwise,
					  "a target that does not fit the answer");
	transaction->head = transaction->head_buffer;
	transaction->head_length = length;
	return transaction_fail(transaction, status, NULL);
}

static enum respond ask_later(struct transaction *transaction, int status, uint64_t seconds,
			      const char *reason)
{
	int length = snprintf(transaction->head_buffer, sizeof(transaction->head_buffer),
			      "Retry-After: %llu\r\n", (unsigned long long)seconds);

	(void)answer_with(transaction, status, (size_t)length, status);
	return transaction_refuse(transaction, status, reason);
}

static enum respond ask_password(struct transaction *transaction)
{
	size_t length = auth_challenge(transaction->scope->auth_realm, transaction->head_buffer,
				       sizeof(transaction->head_buffer));

	return answer_with(transaction, 401, length, 500);
}

static enum respond redirect(struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;
	size_t length = redirect_write(scope->redirect_to, transaction->path + scope->redirect_skip,
				       transaction->request->query, transaction->head_buffer,
				       sizeof(transaction->head_buffer));

	return answer_with(transaction, scope->redirect_status, length, 414);
}

/* --- the responder ---------------------------------------------------------------- */

static enum respond respond(struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;
	const struct mount *mount =
		config_mount(transaction->config_ref->config, transaction->path);

	if (mount)
		return cache_lookup(mount->pool->running, transaction, mount->length);
	if (scope->pool)
		return cache_lookup(scope->pool->running, transaction, scope->pool_skip);
	if (transaction->request->method == METHOD_OPTIONS)
		return tell_methods(transaction, ALLOW_FILE);
	if (!is_reading(transaction->request))
		return refuse_method(transaction, ALLOW_FILE);
	/* The folder itself: its files are below the slash. */
	if (scope->alias && transaction->path[scope->alias_skip] == '\0')
		return answer_with(transaction, 301,
				   redirect_write_folder(transaction->path,
							 transaction->request->query,
							 transaction->head_buffer,
							 sizeof(transaction->head_buffer)),
				   414);
	return static_respond(transaction);
}

/* Puts the scope's replacement in the place of its prefix; false: too long. */
static bool rewrite(struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;
	char *rest = transaction->path + scope->rewrite_skip;
	size_t length = strlen(rest), before = strlen(scope->rewrite);

	/* "/" alone: the rest brings its own. */
	if (before == 1 && length)
		before = 0;
	if (before + length >= sizeof(transaction->path))
		return false;
	memmove(transaction->path + before, rest, length + 1);
	memcpy(transaction->path, scope->rewrite, before);
	return true;
}

/* The rules of the scope are kept. */
static enum respond leave(struct transaction *transaction, const struct scope *before)
{
	const struct scope *scope = transaction->scope;

	if (before)
		return respond(transaction);
	if (scope->redirect_to)
		return redirect(transaction);
	if (!scope->rewrite)
		return respond(transaction);
	if (!rewrite(transaction))
		return transaction_refuse(transaction, 414, "a path that is too long rewritten");
	return enter(transaction, scope);
}

/* --- passwords --------------------------------------------------------------------- */

static enum respond conclude(struct transaction *transaction, const struct auth_check *check,
			     const struct scope *before)
{
	switch (check->answer) {
	case AUTH_YES:
		memcpy(transaction->remote_user, check->user, sizeof(check->user));
		return leave(transaction, before);
	case AUTH_WAIT:
		return ask_later(transaction, 429, check->wait_s, "too many wrong passwords");
	case AUTH_BUSY:
		return ask_later(transaction, 503, 1, "too many passwords are being checked");
	default:
		return ask_password(transaction);
	}
}

static enum respond go_on(struct transaction *transaction, void *context)
{
	const struct wait *wait = context;
	struct request request;
	enum respond respond;

	(void)request_parse(&request, wait->head, wait->head_length); /* it was good before */
	transaction->request = &request;
	respond = conclude(transaction, &wait->check, wait->before);
	transaction->request = NULL;
	return respond;
}

static void answered(struct auth_check *check)
{
	struct wait *wait = (struct wait *)check;
	struct transaction *transaction = wait->transaction;

	/* With the client its address and the rest are gone. */
	if (transaction->connection)
		transaction->resume(transaction, go_on, wait);
	else
		transaction->done(transaction);
	free(wait);
}

static enum respond authenticate(struct transaction *transaction, const struct scope *before)
{
	const struct request *request = transaction->request;
	const struct slice *field = request_find(request, "Authorization");
	struct wait *wait;
	enum respond respond;

	if (!field)
		return ask_password(transaction);
	wait = malloc(sizeof(*wait) + request->head.length);
	if (!wait)
		return transaction_refuse(transaction, 503,
					  "no memory for the check of a password");
	wait->transaction = transaction;
	wait->before = before;
	wait->head_length = request->head.length;
	memcpy(wait->head, request->head.at, request->head.length);
	wait->check.loop = transaction->thread->loop;
	wait->check.answered = answered;
	if (auth_ask(transaction->scope->auth, &wait->check, transaction->remote, *field) ==
	    AUTH_LATER)
		return RESPOND_LATER;
	respond = conclude(transaction, &wait->check, before);
	free(wait);
	return respond;
}

/* --- the way in ---------------------------------------------------------------------- */

/* Nanoseconds until this client may ask again; 0: now. */
static uint64_t too_fast(const struct transaction *transaction, const struct scope *before)
{
	const struct rate_limit *rate = transaction->scope->rate;
	struct thread *thread = transaction->thread;

	/* A request counts once. */
	if (before && before->rate && before->rate->scope == rate->scope)
		return 0;
	return client_limits_take(thread->server->limits, rate, transaction->remote,
				  loop_now_ns(thread->loop));
}

/* The path's scope and its rules; before: the scope that has rewritten the path, or NULL. */
static enum respond enter(struct transaction *transaction, const struct scope *before)
{
	const struct scope *scope = host_scope(transaction->host, transaction->path);
	uint64_t wait_ns = 0;

	transaction->scope = scope;
	if (scope->rate)
		wait_ns = too_fast(transaction, before);
	if (wait_ns)
		return ask_later(transaction, 429, (wait_ns + 999999999) / 1000000000,
				 "more requests than request-rate");
	if (scope->access && !ip_acl_allows(scope->access, transaction->remote))
		return transaction_refuse(transaction, 403,
					  "an address that allow and deny refuse");
	if (scope->auth && (!before || before->auth != scope->auth))
		return authenticate(transaction, before);
	return leave(transaction, before);
}

/* Of the request's fields those that speak of a body, which the next one has not. */
static bool is_of_body(struct slice name)
{
	return slice_is(name, "Content-Length") || slice_is(name, "Content-Type") ||
	       slice_is(name, "Transfer-Encoding") || slice_is(name, "Expect");
}

static void append_field(GString *text, struct slice name, struct slice value)
{
	g_string_append_printf(text, "%.*s: %.*s\r\n", (int)name.length, name.at, (int)value.length,
			       value.at);
}

static void again(struct transaction *transaction, struct slice head, struct slice target)
{
	enum respond respond = RESPOND_NOW;
	struct request request;
	GString *text;

	/* With the client its address and the rest are gone. */
	if (!transaction->connection) {
		transaction->done(transaction);
		return;
	}
	(void)request_parse(&request, head.at, head.length); /* it was good before */
	text = g_string_sized_new(head.length + target.length);
	g_string_append_printf(text, "%s %.*s HTTP/1.%u\r\n",
			       transaction->head_only ? "HEAD" : "GET", (int)target.length,
			       target.at, request.minor);
	/* That of an absolute target counts, whatever the field said. */
	if (request.host.length || request_find(&request, "Host"))
		append_field(text, (struct slice){"Host", 4}, request.host);
	for (unsigned i = 0; i < request.header_count; i++) {
		const struct request_header *field = &request.headers[i];

		if (!is_of_body(field->name) && !slice_is(field->name, "Host"))
			append_field(text, field->name, field->value);
	}
	g_string_append(text, "\r\n");
	transaction->has_upload = false;
	if (++transaction->redirects > REDIRECTS_MAX ||
	    request_parse(&request, text->str, text->len)) {
		log_warning("%s: a program redirects to \"%.*s\", %s", transaction->remote_addr,
			    (int)target.length, target.at,
			    transaction->redirects > REDIRECTS_MAX ? "for the eleventh time"
								   : "which is no path");
		transaction_refuse(transaction, 502, "a program's redirect that leads nowhere");
	} else {
		transaction->request = &request;
		respond = route(transaction);
		transaction->request = NULL;
	}
	g_string_free(text, TRUE);
	if (respond == RESPOND_NOW)
		transaction->done(transaction);
}

enum respond route(struct transaction *transaction)
{
	const struct request *request = transaction->request;
	const struct config *config = transaction->config_ref->config;
	int length;

	transaction->again = again;
	if (request->method == METHOD_OTHER)
		return transaction_refuse(transaction, 501, "a method that is not known here");
	if (request->path.at[0] == '*')
		return tell_methods(transaction, ALLOW_ANY);
	if (request->method == METHOD_TRACE)
		return refuse_method(transaction, ALLOW_ANY);
	length = uri_decode_path(request->path, transaction->path, sizeof(transaction->path));
	if (length < 0) {
		transaction->path[0] = '\0';
		return transaction_refuse(transaction, -length,
					  length == -414 ? "a path that is too long"
							 : "a path with a bad escape, an escaped "
							   "slash or a control character, or "
							   "above the root");
	}
	transaction->host = config_host(config, request->host, transaction->local);
	/* It has a list of its own, so that no rule of a site hides it from who watches. */
	if (is_reading(request) && status_answers(transaction)) {
		transaction->scope = host_scope(transaction->host, transaction->path);
		return status_respond(transaction);
	}
	return enter(transaction, NULL);
}
