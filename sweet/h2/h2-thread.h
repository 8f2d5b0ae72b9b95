/* SPDX-License-Identifier: MIT */
/*
 * h2-thread.h - what this folder keeps for each thread (thread->h2): private to its sources.
 */
#ifndef SWEET_H2_THREAD_H
#define SWEET_H2_THREAD_H

#include <stdint.h>

#include "base/list.h"
#include "event/loop.h"

struct spare_memory;
struct thread;

struct h2_thread {
	struct thread *thread;
	/*
	 * Sessions with something to do, before the loop sleeps; after them, those for whose bytes a
	 * turn was not enough.
	 */
	struct list sessions, late_sessions;
	unsigned waiting;		     /* number of them */
	unsigned streams;		     /* that are open */
	unsigned session_starts;	     /* requests of sessions in this turn of the loop */
	unsigned session_changes;	     /* streams of theirs that have ended in it */
	uint64_t session_turn_ns;	     /* how long they process in a turn, each time */
	uint64_t session_end_ns;	     /* when that ends, since the turn began */
	struct spare_memory *session_memory; /* of their requests; NULL until it is needed */
	struct loop_hook session_hook;
};

#endif
