/* SPDX-License-Identifier: MIT */
/*
 * conn-thread.h - what this folder keeps for each thread (thread->conn): private to its sources.
 */
#ifndef SWEET_CONN_THREAD_H
#define SWEET_CONN_THREAD_H

#include "base/list.h"
#include "event/loop.h"

struct connection_mux;
struct connection_tls;
struct request_memory;
struct thread;

struct conn_thread {
	struct thread *thread;
	const struct connection_mux *http2;
	struct list connections; /* of connection.c */
	/* Of connection-tls.c: handshakes that wait for the next turn of the loop. */
	struct list handshakes;
	unsigned handshake_count; /* of these */
	struct loop_hook handshake_hook;
	struct connection_tls *tls_reader; /* whose data is being processed; NULL: it is freed */
	struct request_memory *requests;   /* of connection-request.c; NULL until it is needed */
};

#endif
