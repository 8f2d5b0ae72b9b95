/* SPDX-License-Identifier: MIT */
/*
 * conn-thread.c - opens and closes what this folder keeps for each thread.
 */
#include <glib.h>

#include "conn/conn-thread.h"
#include "conn/connection-internal.h"
#include "conn/connection.h"
#include "conn/session.h"
#include "core/server.h"

void conn_thread_open(struct thread *thread)
{
	thread->conn = g_new0(struct conn_thread, 1);
	thread->conn->thread = thread;
	connection_slow_open(thread);
	connection_unsent_open(thread);
	connection_tls_init(thread);
	session_init(thread);
}

void conn_thread_close(struct thread *thread)
{
	connection_close_all(thread);
	g_clear_pointer(&thread->conn, g_free);
}
