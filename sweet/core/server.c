/* SPDX-License-Identifier: MIT */
/*
 * server.c - see server.h.
 */
#include <stdint.h>

#include "config/configuration.h"
#include "core/server.h"
#include "event/loop.h"

unsigned server_connections_most(const struct server *server, const struct config *config)
{
	unsigned most = config->limits.max_connections;

	return most == CONFIG_CONNECTIONS_UNSET ? server->connections_most : most;
}

uint64_t thread_now_ns(const struct thread *thread)
{
	return loop_now_ns(thread->loop);
}
