/* SPDX-License-Identifier: MIT */
/*
 * conn-fixture.h - what a thread has for its connections.
 */
#ifndef CONN_FIXTURE_H
#define CONN_FIXTURE_H

#include "conn/connection.h"
#include "core/server.h"
#include "exchange/output.h"
#include "h2/session.h"
#include "pressure/pressure.h"

/* Call it before the thread's loop runs; close it after the loop's end. */
static inline void open_conn(struct thread *thread)
{
	exchange_thread_open(thread);
	pressure_thread_open(thread);
	conn_thread_open(thread, &session_mux);
	h2_thread_open(thread);
}

static inline void close_conn(struct thread *thread)
{
	h2_thread_close(thread);
	conn_thread_close(thread);
	pressure_thread_close(thread);
	exchange_thread_close(thread);
}

#endif
