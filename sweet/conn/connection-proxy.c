/* SPDX-License-Identifier: MIT */
/*
 * connection-proxy.c - connections of proxies that tell for whom they are.
 *
 * Such a connection is its client's from the end of the header on, for all
 * purposes; without one nobody knows whose it is.
 */
#include <stdlib.h>
#include <string.h>

#include "auth/ip-acl.h"
#include "conn/connection-internal.h"
#include "http/proxy-protocol.h"

bool connection_is_proxys(const struct connection *connection)
{
	const struct ip_acl *proxies = connection->thread->config_ref->config->proxy_access;

	return proxies && ip_acl_allows(proxies, &connection->addresses.address.any);
}

/* Takes over whom the header names; false: that one has too many connections. */
static bool introduce(struct connection *connection, const struct proxy_header *header)
{
	connection->state = READING;
	if (header->client == PROXY_ITSELF)
		return true;
	if (header->client == PROXY_CLIENT)
		peer_addresses_set(&connection->addresses, &header->from, &header->to);
	else
		peer_addresses_set_unknown(&connection->addresses);
	return connection_admit(connection);
}

void connection_consume_proxy(struct connection *connection, const char *data, size_t length)
{
	struct proxy_header header;
	ssize_t used;

	/* Nearly always it comes whole, and with the request. */
	if (connection->input_length) {
		if (!connection_keep_input(connection, data, length)) {
			connection_close(connection);
			return;
		}
		data = connection->input;
		length = connection->input_length;
	}
	used = proxy_header_parse(&header, data, length);
	if (used == 0 &&
	    (connection->input_length || connection_keep_input(connection, data, length)))
		return;
	if (used <= 0)
		log_info("%s: not a PROXY header: closing", connection->addresses.remote);
	if (used <= 0 || !introduce(connection, &header)) {
		connection_close(connection);
		return;
	}
	if (!connection->input_length) {
		connection_consume(connection, data + used, length - (size_t)used);
		return;
	}
	connection->input_length -= (size_t)used;
	memmove(connection->input, connection->input + used, connection->input_length);
	connection_consume_input(connection, connection_consume);
}
