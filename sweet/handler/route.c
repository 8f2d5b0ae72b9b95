/* SPDX-License-Identifier: MIT */
/*
 * route.c - from a request to its response: the table of phases, in their order.  A new rule for
 * requests is a function in phase-checks.c, or in a file of its own (phase.h), a row here, and a line
 * of due().
 *
 * Everything runs on the transaction's thread.  A phase that has to wait for another thread returns
 * PHASE_LATER and calls proceed() when it knows that the request passes.
 */
#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "base/slice.h"
#include "config/configuration.h"
#include "core/request-memory.h"
#include "core/site.h"
#include "handler/local-redirect.h"
#include "handler/phase.h"
#include "handler/route.h"
#include "handler/static.h"
#include "handler/status.h"
#include "http/request.h"
#include "rules/path-pattern.h"

enum row {
	METHOD,	  /* refuses methods that no resource supports */
	TARGET,	  /* path and host */
	STATUS,	  /* the status page, which no rule can hide; all that its own listener has */
	SCOPE,	  /* sets the scope, whose rules follow */
	HEADER,	  /* header */
	INTERNAL, /* internal */
	RATE,	  /* request-rate */
	ADDRESS,  /* allow, deny */
	PASSWORD, /* auth */
	REDIRECT, /* redirect */
	REWRITE,  /* rewrite */
	SCRIPT,	  /* suffix */
	TRY,	  /* try-files */
	INDEX,	  /* index, if it has other rules than its folder */
	HANDLER,  /* a pool or a file; ends every request */
	ROWS
};

static enum phase (*const phases[ROWS])(struct transaction *transaction) = {
	[METHOD] = phase_method,     [TARGET] = phase_target,	[STATUS] = phase_status,
	[SCOPE] = phase_scope,	     [HEADER] = phase_header,	[INTERNAL] = phase_internal,
	[RATE] = phase_rate,	     [ADDRESS] = phase_address, [PASSWORD] = phase_password,
	[REDIRECT] = phase_redirect, [REWRITE] = phase_rewrite, [SCRIPT] = phase_script,
	[TRY] = phase_try,	     [INDEX] = phase_index,	[HANDLER] = phase_handler,
};

#define BIT(row) (1u << (row))
#define ALL (BIT(ROWS) - 1)
/* Those that do not run again after a rewrite. */
#define ONCE (BIT(METHOD) | BIT(TARGET) | BIT(STATUS) | BIT(REDIRECT) | BIT(REWRITE))

/* Returns the phases after SCOPE whose rules the scope has: most scopes have few. */
static unsigned due(const struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;
	const struct site_scope *open = site_scope(transaction->config_ref, scope);
	unsigned rows = BIT(HANDLER);

	if (scope->header_variables || transaction->response.header_lines)
		rows |= BIT(HEADER);
	if (scope->internal || transaction->route.internal)
		rows |= BIT(INTERNAL);
	if (open->rate)
		rows |= BIT(RATE);
	if (scope->access)
		rows |= BIT(ADDRESS);
	if (open->auth)
		rows |= BIT(PASSWORD);
	if (scope->redirect_tls || scope->redirect_to)
		rows |= BIT(REDIRECT);
	if (scope->rewrite_text || scope->rewrite)
		rows |= BIT(REWRITE);
	if (transaction->config_ref->config->scripts)
		rows |= BIT(SCRIPT);
	if (scope->try_count)
		rows |= BIT(TRY);
	/* With one scope, nothing has other rules. */
	if (transaction->host->scope_count > 1)
		rows |= BIT(INDEX);
	return rows;
}

/*
 * The phases up to SCOPE lead the same request to the same scope, but for the status page, which
 * not all clients see.  Captures are of the transaction's own path.
 */
static void remember_scope(struct transaction *transaction)
{
	struct remembered *known = transaction->route.known;

	transaction->route.known = NULL;
	if (transaction->route.captures.count || status_has(transaction->path))
		return;
	known->path_length = strlen(transaction->path);
	memcpy(known->path, transaction->path, known->path_length + 1);
	known->host = transaction->host;
	known->scope = transaction->scope;
	known->config_number = transaction->config_ref->site->number;
}

/* Sets what the phases up to SCOPE would set, if that is known. */
static bool recall_scope(struct transaction *transaction)
{
	const struct remembered *known = transaction->route.known;
	const struct config *config = transaction->config_ref->config;

	if (known->config_number != transaction->config_ref->site->number)
		return false;
	/* It depends on the address, too, if several hosts have the name. */
	transaction->host = config_host(config, known->request->host, transaction->peer.local);
	if (transaction->host != known->host || !phase_target_keeps_policy(transaction))
		return false;
	memcpy(transaction->path, known->path, known->path_length + 1);
	transaction->route.captures.count = 0;
	transaction->scope = known->scope;
	transaction->route.known = NULL;
	return true;
}

/* Runs the phases that are left, in their order; the last one always ends the request. */
static enum respond route_proceed(struct transaction *transaction)
{
	for (;;) {
		unsigned row = (unsigned)__builtin_ctz(transaction->route.phases);
		enum phase phase;

		transaction->route.phases &= ~BIT(row);
		phase = phases[row](transaction);
		if (phase == PHASE_NOW || phase == PHASE_LATER)
			return (enum respond)phase;
		if (phase == PHASE_REWRITTEN)
			transaction->route.phases = ALL & ~ONCE;
		if (row != SCOPE)
			continue;
		transaction->route.phases &= due(transaction);
		if (transaction->route.known)
			remember_scope(transaction);
	}
}

/* Responds for a request that a program has made of the client's, by that function. */
static void respond_again(struct transaction *transaction, const struct kept_request *kept,
			  struct slice target, enum respond (*by)(struct transaction *transaction))
{
	enum respond respond = RESPOND_NOW;
	struct request request;
	GString *text;
	bool good;

	/* The client has disconnected: its address and other data are no longer valid. */
	if (!transaction->connection) {
		transaction_done(transaction);
		return;
	}
	text = local_redirect_request(transaction, kept, target, &request, &good);
	transaction->upload.has = false;
	if (good) {
		transaction->request = &request;
		respond = by(transaction);
		transaction->request = NULL;
	} else {
		transaction_refuse(transaction, 502, "an invalid redirect of a program");
	}
	g_string_free(text, TRUE);
	if (respond == RESPOND_NOW)
		transaction_done(transaction);
}

static void route_again(struct transaction *transaction, const struct kept_request *kept,
			struct slice target)
{
	respond_again(transaction, kept, target, route);
}

static void route_send_file(struct transaction *transaction, const struct kept_request *kept,
			    const struct scope *files, const char *path)
{
	transaction->route.files = files;
	g_strlcpy(transaction->path, path, sizeof(transaction->path));
	/* Only its fields count. */
	respond_again(transaction, kept, SLICE("/"), static_respond);
}

const struct transaction_router route_router = {
	.again = route_again, .send_file = route_send_file, .proceed = route_proceed};

enum respond route(struct transaction *transaction)
{
	transaction->route.rewritten_by = NULL;
	transaction->route.tried = transaction->route.found = false;
	transaction->route.indexed = transaction->route.no_index = false;
	transaction->route.internal = transaction->route.accel;
	transaction->route.accel = false;
	transaction->route.files = NULL;
	/* What the memory knows is of the sites. */
	if (transaction->peer.status_only)
		transaction->route.known = NULL;
	transaction->route.phases =
		transaction->route.known && recall_scope(transaction) ? due(transaction) : ALL;
	return route_proceed(transaction);
}
