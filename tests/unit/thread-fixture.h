/* SPDX-License-Identifier: MIT */
/*
 * thread-fixture.h - a thread without a server program: with what core/ keeps for it, in memory of
 * the test; a test opens what else it needs.
 */
#ifndef THREAD_FIXTURE_H
#define THREAD_FIXTURE_H

#include "config/configuration.h"
#include "core/server.h"
#include "core/thread-counters.h"
#include "core/thread-logs.h"

/* Returns limits of a minute each, for a test that waits for none of them. */
static inline struct config_limits long_limits(unsigned streams)
{
	return (struct config_limits){.header_ms = 60000,
				      .body_ms = 60000,
				      .keep_alive_ms = 60000,
				      .send_ms = 60000,
				      .stop_ms = 60000,
				      .max_header = 8192,
				      .max_fields = 64,
				      .max_streams = streams};
}

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
