/* SPDX-License-Identifier: MIT */
/*
 * phase-checks.c - the phases that are one check each: of the method, of the path, and of what the
 * scope permits.  Each larger phase has its own file.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/ip-acl.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "config/path-rules.h"
#include "core/server.h"
#include "core/site.h"
#include "core/short-response.h"
#include "core/transaction.h"
#include "event/client-limit.h"
#include "handler/phase.h"
#include "handler/status.h"
#include "http/request.h"
#include "log/log.h"
#include "rules/path-pattern.h"

#define SECOND UINT64_C(1000000000) /* ns */

/*
 * Refuses methods that no resource supports, and responds to "OPTIONS *", which asks about the whole
 * server (RFC 9110, section 9.3.7).  Of other methods, a pool can name those that its programs know:
 * phase-pool.c refuses the rest.
 */
enum phase phase_method(struct transaction *transaction)
{
	const struct request *request = transaction->request;
	const struct config *config = transaction->config_ref->config;

	if (request->method == METHOD_OTHER && !config->methods && !config->webdav)
		return phase_responds_early(
			transaction, transaction_refuse(transaction, 501, "an unknown method"));
	if (request->path.at[0] == '*')
		return phase_responds_early(transaction,
					    short_response_options(transaction, ALLOW_ANY));
	if (request->method == METHOD_TRACE)
		return phase_responds_early(transaction,
					    short_response_method(transaction, ALLOW_ANY));
	return PHASE_NEXT;
}

/* No pool responds: a method that only its programs could know is refused. */
enum phase phase_no_pool(struct transaction *transaction)
{
	if (transaction->request->method != METHOD_OTHER)
		return PHASE_NEXT;
	return phase_responds(transaction_refuse(transaction, 501, "an unknown method"));
}

static enum phase refuse_path(struct transaction *transaction, const struct path_rule *rule)
{
	if (!rule)
		return phase_responds_early(transaction,
					    transaction_refuse(transaction, 503, "no memory"));
	if (!atomic_exchange_explicit(&transaction->config_ref->site->reported[rule->number], true,
				      memory_order_relaxed))
		log_error("[pattern %s]: the expression backtracks too much for \"%.200s\": such "
			  "requests are answered with 500",
			  rule->name, transaction->path);
	/* The rules of the path are not known: those of its prefix have the error page. */
	transaction->scope = host_scope(transaction->host, transaction->path);
	return phase_responds_early(
		transaction,
		transaction_refuse(transaction, 500, "a pattern that backtracks too much"));
}

const struct scope *phase_scope_of(const struct transaction *transaction, const char *path)
{
	struct path_captures captures;
	const struct path_rule *rule;

	return path_rules_find(transaction->config_ref->site->number, transaction->host, path,
			       &transaction->thread->paths, &captures, &rule);
}

/* Finds the scope of the path, whose rules apply. */
enum phase phase_scope(struct transaction *transaction)
{
	const struct path_rule *rule;

	transaction->scope = path_rules_find(
		transaction->config_ref->site->number, transaction->host, transaction->path,
		&transaction->thread->paths, &transaction->route.captures, &rule);
	return transaction->scope ? PHASE_NEXT : refuse_path(transaction, rule);
}

/* On a listener of the status alone, nothing is left that could answer. */
static enum phase refuse_status(struct transaction *transaction)
{
	if (transaction->config_ref->config->status && status_has(transaction->path) &&
	    request_is_reading(transaction->request))
		return phase_responds(transaction_refuse(
			transaction, 403, "a client that is not one of status-allow"));
	return phase_responds(transaction_fail(transaction, 404, NULL));
}

/*
 * The status page has its own list of addresses and comes before the rules of all scopes, so that no
 * rule of a site hides it from monitoring.
 */
enum phase phase_status(struct transaction *transaction)
{
	const struct scope *scope;

	if (!request_is_reading(transaction->request) || !status_answers(transaction))
		return transaction->peer.status_only ? refuse_status(transaction) : PHASE_NEXT;
	scope = host_scope(transaction->host, transaction->path);
	transaction->response.unlogged = scope->access_log != ACCESS_LOG_ON;
	/* Its errors use the error pages of the scope; its own listener has nothing of the sites. */
	if (!transaction->peer.status_only)
		transaction->scope = scope;
	return phase_responds_early(transaction, status_respond(transaction));
}

/*
 * The key internal: for clients the path does not exist; a rewrite, try-files and programs lead to
 * it, and programs to such paths only.
 */
enum phase phase_internal(struct transaction *transaction)
{
	bool internal = transaction->scope->internal;

	if (transaction->route.rewritten_by || internal == transaction->route.internal)
		return PHASE_NEXT;
	if (internal)
		return phase_responds(transaction_fail(transaction, 404, NULL));
	log_warning("%s: a program leads to \"%s\" by X-Accel-Redirect, which is not internal: "
		    "refused",
		    transaction->peer.remote_addr, transaction->path);
	return phase_responds(transaction_fail(transaction, 502, NULL));
}

/* The key request-rate, which counts each client; says when to try again. */
enum phase phase_rate(struct transaction *transaction)
{
	const struct config_ref *ref = transaction->config_ref;
	const struct scope *before = transaction->route.rewritten_by;
	const struct rate_limit *rate = site_scope(ref, transaction->scope)->rate;
	const struct rate_limit *counted = before ? site_scope(ref, before)->rate : NULL;
	struct thread *thread = transaction->thread;
	uint64_t wait_ns;

	/* Count a request once, even if it was rewritten. */
	if (counted && counted->scope == rate->scope)
		return PHASE_NEXT;
	wait_ns = client_limits_take(thread->server->limits, rate, transaction->peer.remote,
				     thread_now_ns(thread));
	if (!wait_ns)
		return PHASE_NEXT;
	return phase_responds(short_response_retry(transaction, 429,
						   (wait_ns + SECOND - 1) / SECOND,
						   "more requests than request-rate"));
}

/* The keys allow and deny: which client addresses the scope serves. */
enum phase phase_address(struct transaction *transaction)
{
	if (ip_acl_allows(transaction->scope->access, transaction->peer.remote))
		return PHASE_NEXT;
	return phase_responds(
		transaction_refuse(transaction, 403, "an address that allow and deny refuse"));
}
