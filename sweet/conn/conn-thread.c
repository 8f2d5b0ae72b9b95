/* SPDX-License-Identifier: MIT */
/*
 * conn-thread.c - opens and closes what this folder keeps for each thread.
 */
#include <glib.h>

#include "conn/conn-thread.h"
#include "conn/connection-base.h"
#include "conn/connection.h"
#include "core/request-memory.h"
#include "core/server.h"

void conn_thread_open(struct thread *thread, const struct connection_mux *http2)
{
	thread->conn = g_new0(struct conn_thread, 1);
	thread->conn->thread = thread;
	thread->conn->http2 = http2;
	connection_tls_init(thread);
}

void conn_thread_close(struct thread *thread)
{
	if (!thread->conn)
		return;
	request_memory_free(thread->conn->requests);
	g_clear_pointer(&thread->conn, g_free);
}
