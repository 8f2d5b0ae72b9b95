/* SPDX-License-Identifier: MIT */
/*
 * h2-thread.c - opens and closes what this folder keeps for each thread.
 */
#include <glib.h>

#include "base/spare-memory.h"
#include "core/server.h"
#include "event/loop.h"
#include "h2/h2-thread.h"
#include "h2/session-internal.h"
#include "h2/session.h"

void h2_thread_open(struct thread *thread)
{
	thread->h2 = g_new0(struct h2_thread, 1);
	thread->h2->thread = thread;
	thread->h2->session_turn_ns = thread->h2->session_end_ns = SESSION_TURN_NS;
	session_init();
	thread->h2->session_hook.before_sleep = session_work_next;
	loop_hook_add(thread->loop, &thread->h2->session_hook);
}

void h2_thread_close(struct thread *thread)
{
	if (thread->h2)
		spare_memory_free(thread->h2->session_memory);
	g_clear_pointer(&thread->h2, g_free);
}
