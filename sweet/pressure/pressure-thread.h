/* SPDX-License-Identifier: MIT */
/*
 * pressure-thread.h - what this folder keeps for each thread (thread->pressure): private to its
 * sources.
 */
#ifndef SWEET_PRESSURE_THREAD_H
#define SWEET_PRESSURE_THREAD_H

#include <glib.h>
#include <stdint.h>

#include "base/list.h"
#include "base/timer.h"
#include "event/loop.h"

struct thread;

struct pressure_thread {
	struct thread *thread;
	/*
	 * Of slow.c, held.c, lent.c: waiting responses, longest first; their units; sockets that may
	 * refer to the unit of an earlier response; the work.
	 */
	struct list slow;
	GHashTable *held, *programs;
	struct list lent;
	struct loop_notice shed; /* posted to move responses off units that are needed elsewhere */
	struct timer slow_timer;
	/* Of unsent.c: sockets that hold bytes; their bytes; the work. */
	struct list unsent;
	uint64_t unsent_bytes;
	struct loop_notice unsent_shed;
	struct timer unsent_timer;
};

#endif
