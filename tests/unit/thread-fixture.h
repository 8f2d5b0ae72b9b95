/* SPDX-License-Identifier: MIT */
/*
 * thread-fixture.h - a thread without a server program: with what core/ keeps for it, in memory of
 * the test; a test opens what else it needs.
 */
#ifndef THREAD_FIXTURE_H
#define THREAD_FIXTURE_H

#include "core/server.h"
#include "core/thread-counters.h"
#include "core/thread-logs.h"

/* Returns the thread with counters at 0, and no logs; once at a time. */
static inline struct thread make_thread(struct thread thread)
{
	static struct thread_counters counters;
	static struct thread_logs logs;

	counters = (struct thread_counters){0};
	logs = (struct thread_logs){0};
	thread.counters = &counters;
	thread.logs = &logs;
	return thread;
}

#endif
