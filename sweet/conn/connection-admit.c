/* SPDX-License-Identifier: MIT */
/*
 * connection-admit.c - which clients get a connection: at most max-connections in total, and
 * connections-per-client for each client; and which client a proxy's connection belongs to, by the
 * PROXY protocol's header.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "auth/ip-acl.h"
#include "base/peer-addresses.h"
#include "config/configuration.h"
#include "conn/connection-base.h"
#include "core/server.h"
#include "core/site.h"
#include "core/thread-counters.h"
#include "event/client-limit.h"
#include "http/proxy-protocol.h"
#include "log/log.h"

/*
 * Sends a response if the socket takes it; the caller closes the socket.  With TLS it would cost a
 * handshake.
 */
static void turn_away(int fd, const char *remote, bool tls, const char *reason)
{
	static const char answer[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
				     "Content-Length: 0\r\nConnection: close\r\n\r\n";

	log_info("%s: %s: %s", remote, tls ? "closed" : "answered 503", reason);
	if (tls)
		return;
	(void)!send(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Threads that accept at the same moment may each exceed the limit by one. */
static bool is_full(const struct thread *thread)
{
	const struct server *server = thread->server;
	unsigned most = server_connections_most(server, thread->config_ref->config);
	uint64_t open = 0;

	for (unsigned i = 0; most && i < server->threads; i++)
		open += atomic_load_explicit(&server->per_thread[i]->counters->open,
					     memory_order_relaxed);
	return most && open >= most;
}

/* Counts the connection for its client; false: that has too many, and has got a response. */
static bool admit(struct connection *connection)
{
	const struct thread *thread = connection->thread;
	unsigned most = thread->config_ref->config->limits.connections_per_client;

	if (most)
		connection->carrier->client =
			client_limits_enter(thread->server->limits, 0,
					    &connection->carrier->addresses.address.any, most);
	if (!most || connection->carrier->client)
		return true;
	turn_away(connection->carrier->fd, connection_remote(connection),
		  connection->carrier->tls != NULL, "more than connections-per-client");
	return false;
}

bool connection_admit_socket(const struct thread *thread, int fd, bool tls)
{
	struct peer_addresses ends = {.remote = "unknown"};
	struct sockaddr_storage remote;
	socklen_t length = sizeof(remote);

	if (!is_full(thread))
		return true;
	if (getpeername(fd, (struct sockaddr *)&remote, &length) == 0)
		peer_addresses_set(&ends, &remote, NULL);
	turn_away(fd, ends.remote, tls, "more than max-connections");
	return false;
}

/* --- connections of proxies that send the PROXY header ---------------------------- */

/*
 * After the header, such a connection counts as one of its client in every respect; without a
 * header the client is unknown.
 */
static bool is_proxys(const struct connection *connection)
{
	const struct ip_acl *proxies = connection->thread->config_ref->config->proxy_access;

	return proxies && ip_acl_allows(proxies, &connection->carrier->addresses.address.any);
}

bool connection_begin(struct connection *connection, bool tls)
{
	if (tls && !connection_tls_open(connection))
		return false;
	connection->state = tls ? HANDSHAKE : READING;
	/* Connections of a proxy are counted for the proxy's clients. */
	if (!is_proxys(connection))
		return admit(connection);
	connection->state = PROXY;
	return true;
}

/* Sets the client that the header names; returns false if that has too many connections. */
static bool introduce(struct connection *connection, const struct proxy_header *header)
{
	connection->state = connection->carrier->tls ? HANDSHAKE : READING;
	if (header->client == PROXY_ITSELF)
		return true;
	if (header->client == PROXY_CLIENT)
		peer_addresses_set(&connection->carrier->addresses, &header->from, &header->to);
	else
		peer_addresses_set_unknown(&connection->carrier->addresses);
	return admit(connection);
}

void connection_consume_proxy(struct connection *connection, const char *data, size_t length,
			      void (*deliver)(struct connection *, const char *, size_t))
{
	struct proxy_header header;
	ssize_t used;

	/* It usually comes as a whole, together with the request. */
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
		log_info("%s: not a PROXY header: closing", connection_remote(connection));
	if (used <= 0 || !introduce(connection, &header)) {
		connection_close(connection);
		return;
	}
	if (!connection->input_length) {
		deliver(connection, data + used, length - (size_t)used);
		return;
	}
	connection->input_length -= (size_t)used;
	memmove(connection->input, connection->input + used, connection->input_length);
	connection_consume_input(connection, deliver);
}
