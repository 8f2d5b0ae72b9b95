/* SPDX-License-Identifier: MIT */
/*
 * conn-thread.h - what this folder keeps for each thread (thread->conn): private to its sources.
 */
#ifndef SWEET_CONN_THREAD_H
#define SWEET_CONN_THREAD_H

#include <glib.h>
#include <stdint.h>

#include "base/list.h"
#include "base/timer.h"
#include "event/loop.h"

struct connection_mux;
struct connection_tls;
struct request_memory;
struct thread;

struct conn_thread {
	struct thread *thread;
	const struct connection_mux *http2;
	struct list connections; /* of connection.c */
	/*
	 * Of connection-slow.c, connection-held.c: waiting connections, longest first; their units;
	 * connections whose sockets may refer to the unit of an earlier response; the work.
	 */
	struct list slow;
	GHashTable *held, *programs;
	struct list lent;
	struct loop_notice shed; /* posted to move responses off units that are needed elsewhere */
	struct timer slow_timer;
	/* Of connection-unsent.c: connections whose sockets hold bytes; their bytes; the work. */
	struct list unsent;
	uint64_t unsent_bytes;
	struct loop_notice unsent_shed;
	struct timer unsent_timer;
	/* Of connection-tls.c: handshakes that wait for the next turn of the loop. */
	struct list handshakes;
	struct loop_hook handshake_hook;
	struct connection_tls *tls_reader; /* whose data is being processed; NULL: it is freed */
	struct request_memory *requests;   /* of connection-request.c; NULL until it is needed */
};

#endif
