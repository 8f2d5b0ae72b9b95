/* SPDX-License-Identifier: MIT */
/*
 * connection-admit.c - who gets a connection: at most max-connections of all, and
 * connections-per-client of each client.
 */
#include <sys/socket.h>

#include "conn/connection-internal.h"

/* An answer if the socket takes it; the end is the caller's. */
static void turn_away(int fd, const char *remote, const char *reason)
{
	static const char answer[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
				     "Content-Length: 0\r\nConnection: close\r\n\r\n";

	log_info("%s: answered 503: %s", remote, reason);
	(void)!send(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Threads that accept at the same moment may let one each in above the limit. */
static bool is_full(const struct thread *thread)
{
	const struct server *server = thread->server;
	unsigned most = thread->config_ref->config->limits.max_connections;
	uint64_t open = 0;

	for (unsigned i = 0; most && i < server->threads; i++)
		open += atomic_load_explicit(&server->per_thread[i]->counters.open,
					     memory_order_relaxed);
	return most && open >= most;
}

bool connection_admit(struct connection *connection)
{
	const struct thread *thread = connection->thread;
	unsigned most = thread->config_ref->config->limits.connections_per_client;

	if (most)
		connection->client = client_limits_enter(thread->server->limits,
							 &connection->addresses.address.any, most);
	if (!most || connection->client)
		return true;
	turn_away(connection->fd, connection->addresses.remote, "more than connections-per-client");
	return false;
}

bool connection_admit_socket(const struct thread *thread, int fd)
{
	struct peer_addresses ends = {.remote = "unknown"};
	struct sockaddr_storage remote;
	socklen_t length = sizeof(remote);

	if (!is_full(thread))
		return true;
	if (getpeername(fd, (struct sockaddr *)&remote, &length) == 0)
		peer_addresses_set(&ends, &remote, NULL);
	turn_away(fd, ends.remote, "more than max-connections");
	return false;
}
