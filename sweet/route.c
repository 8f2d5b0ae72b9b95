/* SPDX-License-Identifier: MIT */
/*
 * route.c - method and path to responder: the status page, a gateway's
 * prefix, else a file.
 */
#include <string.h>

#include <gateway.h>
#include <route.h>
#include <server.h>
#include <static.h>
#include <status.h>
#include <uri.h>

/* By any resource; by a file. */
#define ALLOW_ANY "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n"
#define ALLOW_FILE "Allow: GET, HEAD, OPTIONS\r\n"

/* An answer without a body that says what is allowed. */
static enum respond tell_methods(struct transaction *transaction, const char *allow)
{
	transaction->status = 204;
	transaction->bodiless = true;
	transaction->head = allow;
	transaction->head_length = strlen(allow);
	return RESPOND_NOW;
}

/* For files: those that only read. */
static enum respond refuse_method(struct transaction *transaction, const char *allow)
{
	transaction->head = allow;
	transaction->head_length = strlen(allow);
	return transaction_fail(transaction, 405, NULL);
}

static bool is_reading(enum request_method method)
{
	return method == METHOD_GET || method == METHOD_HEAD;
}

enum respond route(struct transaction *transaction)
{
	const struct request *request = transaction->request;
	struct gateway *gateway = transaction->server->site->gateway;
	struct gateway_pool *pool;
	int length;

	if (request->method == METHOD_OTHER)
		return transaction_fail(transaction, 501, NULL);
	if (request->path.at[0] == '*')
		return tell_methods(transaction, ALLOW_ANY);
	if (request->method == METHOD_TRACE)
		return refuse_method(transaction, ALLOW_ANY);
	length = uri_decode_path(request->path, transaction->path, sizeof(transaction->path));
	if (length < 0)
		return transaction_fail(transaction, -length, NULL);
	transaction->host = config_host(transaction->generation->config, request->host);
	transaction->scope = host_scope(transaction->host, transaction->path);
	if (strcmp(transaction->path, STATUS_PATH) == 0 && transaction->loopback &&
	    is_reading(request->method))
		return status_respond(transaction);
	pool = gateway ? gateway_find(gateway, transaction->path) : NULL;
	if (pool)
		return gw_respond(pool, transaction, pool->prefix_length);
	if (request->method == METHOD_OPTIONS)
		return tell_methods(transaction, ALLOW_FILE);
	if (!is_reading(request->method))
		return refuse_method(transaction, ALLOW_FILE);
	return static_respond(transaction);
}
