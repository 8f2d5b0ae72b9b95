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

struct connection_tls;
struct request_memory;
struct spare_memory;
struct thread;

struct conn_thread {
	struct thread *thread;
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
	/*
	 * Of session.c: HTTP/2 sessions with something to do, before the loop sleeps; after them,
	 * those for whose bytes a turn was not enough.
	 */
	struct list sessions, late_sessions;
	unsigned streams;		     /* of HTTP/2, that are open */
	unsigned session_starts;	     /* requests of theirs in this turn of the loop */
	unsigned session_changes;	     /* streams of theirs that have ended in it */
	uint64_t session_turn_ns;	     /* how long they process in a turn, each time */
	uint64_t session_end_ns;	     /* when that ends, since the turn began */
	struct spare_memory *session_memory; /* of their requests; NULL until it is needed */
	struct loop_hook session_hook;
	struct request_memory *requests; /* of connection-request.c; the same */
};

#endif
