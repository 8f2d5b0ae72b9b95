/* SPDX-License-Identifier: MIT */
/*
 * thread-modules.c - the table of what threads have: lower folders first, closed in reverse order.
 *
 * A new one is a pointer to an incomplete struct in struct thread, and a row here.
 */
#include <glib.h>
#include <stddef.h>

#include "backend/backend-call.h"
#include "config/path-rules.h"
#include "conn/connection.h"
#include "core/logs.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "core/thread-logs.h"
#include "exchange/output.h"
#include "files/file-cache-tick.h"
#include "gateway/worker.h"
#include "h2/session.h"
#include "handler/autoindex.h"
#include "pressure/pressure.h"
#include "server/thread-modules.h"
#include "server/thread.h"

static void open_tick(struct thread *thread)
{
	thread->tick = file_cache_tick_open(thread->loop);
}

static void close_tick(struct thread *thread)
{
	g_clear_pointer(&thread->tick, file_cache_tick_close);
}

static void open_core(struct thread *thread)
{
	thread->counters = g_new0(struct thread_counters, 1);
	thread->logs = g_new0(struct thread_logs, 1);
	logs_join(thread->server, thread);
}

static void close_core(struct thread *thread)
{
	thread_logs_stop(thread->logs);
	g_clear_pointer(&thread->logs, g_free);
	g_clear_pointer(&thread->counters, g_free);
}

/* path_rules_find() makes it. */
static void close_paths(struct thread *thread)
{
	g_clear_pointer(&thread->paths, path_memory_free);
}

static void open_conn(struct thread *thread)
{
	conn_thread_open(thread, &session_mux);
}

static const struct thread_module {
	void (*open)(struct thread *thread); /* NULL: opened when it is needed */
	void (*close)(struct thread *thread);
} modules[] = {
	{NULL, close_paths},
	{open_tick, close_tick},
	{open_core, close_core},
	{backend_thread_open, backend_thread_close},
	{gateway_thread_open, gateway_thread_close},
	{handler_thread_open, handler_thread_close},
	{exchange_thread_open, exchange_thread_close},
	{pressure_thread_open, pressure_thread_close},
	{open_conn, conn_thread_close},
	{h2_thread_open, h2_thread_close},
};

void thread_modules_open(struct thread *thread)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(modules); i++)
		if (modules[i].open)
			modules[i].open(thread);
}

/* Upper ones of one thread may still use lower ones of another. */
void thread_modules_close(struct server_threads *runners)
{
	for (unsigned i = G_N_ELEMENTS(modules); i-- > 0;)
		for (unsigned k = 0; k < runners->count; k++)
			modules[i].close(&runners->all[k].thread);
}
