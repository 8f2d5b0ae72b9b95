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

static enum respond refuse_method(struct transaction *transaction)
{
	if (transaction->request->method == METHOD_OTHER)
		return transaction_fail(transaction, 501, NULL);
	transaction->head = "Allow: GET, HEAD\r\n";
	transaction->head_length = strlen(transaction->head);
	return transaction_fail(transaction, 405, NULL);
}

enum respond route(struct transaction *transaction)
{
	const struct request *request = transaction->request;
	struct gateway *gateway = transaction->server->site->gateway;
	struct gateway_pool *pool;
	int length;

	if (request->method != METHOD_GET && request->method != METHOD_HEAD)
		return refuse_method(transaction);
	length = uri_decode_path(request->path, transaction->path, sizeof(transaction->path));
	if (length < 0)
		return transaction_fail(transaction, -length, NULL);
	transaction->host = config_host(transaction->generation->config, request->host);
	transaction->scope = host_scope(transaction->host, transaction->path);
	if (strcmp(transaction->path, STATUS_PATH) == 0 && transaction->loopback)
		return status_respond(transaction);
	pool = gateway ? gateway_find(gateway, transaction->path) : NULL;
	if (pool)
		return gw_respond(pool, transaction, pool->prefix_length);
	return static_respond(transaction);
}
