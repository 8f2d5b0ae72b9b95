/* SPDX-License-Identifier: MIT */
/*
 * thread-modules.c - the table of what threads have: lower folders first, closed in reverse order.
 *
 * A new one is a pointer to an incomplete struct in struct thread, and a row here.
 */
#include <glib.h>

#include "config/path-rules.h"
#include "conn/connection.h"
#include "core/server.h"
#include "server/thread-modules.h"
#include "server/thread.h"

/* path_rules_find() makes it. */
static void close_paths(struct thread *thread)
{
	g_clear_pointer(&thread->paths, path_memory_free);
}

static const struct thread_module {
	void (*open)(struct thread *thread); /* NULL: opened when it is needed */
	void (*close)(struct thread *thread);
} modules[] = {
	{NULL, close_paths},
	{conn_thread_open, conn_thread_close},
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
