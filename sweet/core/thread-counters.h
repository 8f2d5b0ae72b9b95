/* SPDX-License-Identifier: MIT */
/*
 * thread-counters.h - what a thread counts, for the status.
 */
#ifndef SWEET_THREAD_COUNTERS_H
#define SWEET_THREAD_COUNTERS_H

#include <stdint.h>

#include "base/histogram.h"

/* The state of a connection, for the status. */
enum connection_state {
	CONNECTION_IDLE,      /* no byte of a request has come */
	CONNECTION_READING,   /* a part of a head has come */
	CONNECTION_WORKING,   /* the response is being made */
	CONNECTION_SENDING,   /* the response is being sent */
	CONNECTION_LINGERING, /* our end is closed, the client's not yet */
	CONNECTION_STATES
};

/* Written by its own thread, read by any thread: relaxed, and summed up by the reader. */
struct thread_counters {
	_Atomic uint64_t connections;		    /* accepted */
	_Atomic uint64_t open;			    /* currently open */
	_Atomic uint64_t states[CONNECTION_STATES]; /* open ones by state */
	_Atomic uint64_t requests;
	_Atomic uint64_t responses[6]; /* by hundred: [2] is 2xx */
	_Atomic uint64_t body_bytes;   /* sent or being sent */
	_Atomic uint64_t body_units;   /* pieces of bodies that were sent by cache id */
	_Atomic uint64_t body_ready; /* of these, in responses that were ready (exchange/ready.h) */
	_Atomic uint64_t worker_requests;
	_Atomic uint64_t worker_messages; /* bytes to and from workers: heads, no bodies */
	_Atomic uint64_t worker_bodies;	  /* bytes of bodies that workers sent by id */
	_Atomic uint64_t worker_failures;
	/* responses moved off their units: to files, to the spool */
	_Atomic uint64_t slow_files, slow_spooled;
	_Atomic uint64_t slow_reset;   /* that could not be moved */
	_Atomic uint64_t slow_clients; /* closed because a program waited for them */
	_Atomic uint64_t sessions;     /* connections that use HTTP/2 */
	/* Handshakes that succeeded, resumed a session, gave the kernel the key; that failed. */
	_Atomic uint64_t tls_handshakes, tls_resumed, tls_kernel, tls_failed;
	/* us from a complete head to the last byte passed to the kernel, by the loop's clock */
	struct histogram latency;
};

#endif
