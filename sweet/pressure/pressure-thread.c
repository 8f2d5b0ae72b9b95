/* SPDX-License-Identifier: MIT */
/*
 * pressure-thread.c - opens and closes what this folder keeps for each thread.
 */
#include <glib.h>

#include "base/timer.h"
#include "core/server.h"
#include "pressure/pressure-internal.h"
#include "pressure/pressure-thread.h"
#include "pressure/pressure.h"

void pressure_thread_open(struct thread *thread)
{
	thread->pressure = g_new0(struct pressure_thread, 1);
	thread->pressure->thread = thread;
	slow_open(thread);
	unsent_open(thread);
}

void pressure_thread_stop(struct thread *thread)
{
	timer_stop(&thread->pressure->slow_timer);
	timer_stop(&thread->pressure->unsent_timer);
}

void pressure_thread_close(struct thread *thread)
{
	if (!thread->pressure)
		return;
	held_close(thread);
	g_clear_pointer(&thread->pressure, g_free);
}
