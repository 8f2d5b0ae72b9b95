/* SPDX-License-Identifier: MIT */
/*
 * lock.h - mutexes around a few dozen instructions that many threads take.
 *
 * A thread that finds such a mutex locked spins for a moment before it sleeps:
 * usually the holder unlocks it in that time, unless it was preempted.  With plain
 * mutexes, each such contention costs two context switches, and threads begin to
 * queue behind the sleeper.
 */
#ifndef NC_LOCK_H
#define NC_LOCK_H

#include <pthread.h>

static inline void nc_lock_init(pthread_mutex_t *lock)
{
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
	/* The initialiser is meant for variables; this assigns it to memory. */
	*lock = (pthread_mutex_t)PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
#else
	pthread_mutex_init(lock, NULL);
#endif
}

#endif
