/* SPDX-License-Identifier: MIT */
/*
 * request-value.c - see request-value.h.
 */
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/slice.h"
#include "config/config-map.h"
#include "config/configuration.h"
#include "core/request-value.h"
#include "core/site.h"
#include "core/transaction.h"
#include "http/request.h"
#include "http/uri.h"
#include "rules/path-pattern.h"
#include "tls/tls.h"

static struct slice of_text(const char *text)
{
	return (struct slice){text, strlen(text)};
}

/* Returns the value of a variable of programs about TLS, "NAME="; NULL: there is none. */
static const char *tls_variable(const struct transaction *transaction, const char *name)
{
	size_t length = 0;
	const char *at = transaction->peer.tls
				 ? tls_library->variables(transaction->peer.tls, &length)
				 : NULL;
	const char *end = at + length;

	for (; at < end; at += strlen(at) + 1)
		if (strncmp(at, name, strlen(name)) == 0)
			return at + strlen(name);
	return NULL;
}

static struct slice subject(const struct transaction *transaction)
{
	const char *name = tls_variable(transaction, "SSL_CLIENT_S_DN=");

	return of_text(name ? name : "");
}

bool request_has_certificate(const struct transaction *transaction)
{
	const char *verified = tls_variable(transaction, "SSL_CLIENT_VERIFY=");

	return verified && strcmp(verified, "NONE") != 0;
}

struct slice request_value(const void *context, enum template_variable variable, unsigned number,
			   const char *name)
{
	const struct transaction *transaction = context;

	switch (variable) {
	case TEMPLATE_CAPTURE:
		return path_capture(&transaction->route.captures, transaction->path, number);
	case TEMPLATE_CLIENT:
		return of_text(transaction->peer.remote_addr);
	case TEMPLATE_HOST:
		return uri_without_port(transaction->request->host);
	case TEMPLATE_MAP:
		return config_map_value(config_map(transaction->config_ref->config, name),
					request_value, transaction);
	case TEMPLATE_METHOD:
		return transaction->request->method_name;
	case TEMPLATE_PATH:
		return of_text(transaction->path);
	case TEMPLATE_QUERY:
		return transaction_query(transaction);
	case TEMPLATE_REQUEST_ID:
		return of_text(transaction->trace.id);
	case TEMPLATE_SCHEME:
		return of_text(transaction->peer.https ? "https" : "http");
	case TEMPLATE_SUBJECT:
		return subject(transaction);
	case TEMPLATE_USER:
		return of_text(transaction->remote_user);
	default:
		return of_text("");
	}
}
