/* SPDX-License-Identifier: MIT */
/*
 * phase-target.c - decodes the path and finds the host; then finds the scope of the path, whose
 * rules apply.
 */
#include "core/server.h"
#include "handler/phase.h"
#include "http/uri.h"

enum phase phase_target(struct transaction *transaction)
{
	const struct request *request = transaction->request;
	const struct config *config = transaction->config_ref->config;
	int length = uri_decode_path(request->path, transaction->path, sizeof(transaction->path));

	if (length < 0) {
		transaction->path[0] = '\0';
		return phase_responds(transaction_refuse(
			transaction, -length,
			length == -414 ? "a path that is too long"
				       : "a path with a bad escape, an escaped slash or a control "
					 "character, or above the root"));
	}
	transaction->host = config_host(config, request->host, transaction->local);
	return PHASE_NEXT;
}

enum phase phase_scope(struct transaction *transaction)
{
	transaction->scope = host_scope(transaction->host, transaction->path);
	return PHASE_NEXT;
}
