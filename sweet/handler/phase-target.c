/* SPDX-License-Identifier: MIT */
/*
 * phase-target.c - decodes the path and finds the host, whose rules for TLS apply.
 */

#include <glib.h>
#include <stdbool.h>

#include "config/configuration.h"
#include "core/site.h"
#include "core/transaction.h"
#include "handler/phase.h"
#include "http/request.h"
#include "http/uri.h"
#include "tls/tls.h"

bool phase_target_keeps_policy(const struct transaction *transaction)
{
	const struct host *host = transaction->host;

	if (transaction->peer.secure) {
		const struct tls_identity *tls = site_host(transaction->config_ref, host)->tls;

		return tls && tls_library->policy(tls) == transaction->peer.policy;
	}
	return host->client_certificate != TLS_CLIENT_REQUIRED;
}

enum phase phase_target(struct transaction *transaction)
{
	const struct request *request = transaction->request;
	const struct config *config = transaction->config_ref->config;
	int length;

	transaction->host = config_host(config, request->host, transaction->peer.local);
	length = uri_decode_path(request->path, (enum uri_slash)transaction->host->escaped_slash,
				 transaction->path, sizeof(transaction->path));
	if (length < 0) {
		transaction->path[0] = '\0';
		return phase_responds_early(
			transaction,
			transaction_refuse(
				transaction, -length,
				length == -414
					? "a path that is too long"
					: "a path with a bad escape, an escaped slash or a control "
					  "character, or above the root"));
	}
	g_clear_pointer(&transaction->route.query, g_free);
	if (!phase_target_keeps_policy(transaction))
		return phase_responds_early(
			transaction,
			transaction_refuse(transaction, 421,
					   "a host whose rules for clients' certificates the "
					   "connection has not kept"));
	return PHASE_NEXT;
}
