/* SPDX-License-Identifier: MIT */
/*
 * exchange-thread.c - opens and closes what this folder keeps for each thread.
 */
#include <glib.h>

#include "core/server.h"
#include "exchange/exchange-thread.h"
#include "exchange/output.h"
#include "exchange/ready.h"

void exchange_thread_open(struct thread *thread)
{
	thread->exchange = g_new0(struct exchange_thread, 1);
}

void exchange_thread_close(struct thread *thread)
{
	if (!thread->exchange)
		return;
	output_free_spare(thread);
	ready_free(thread);
	g_clear_pointer(&thread->exchange, g_free);
}
