/* SPDX-License-Identifier: MIT */
/*
 * lock.h - mutexes around a few dozen instructions that many threads take.
 *
 * Who finds one taken looks again for a moment before it sleeps: the holder
 * is gone by then, unless it was preempted.  With plain mutexes each such
 * meeting costs two changes of thread, and threads begin to queue behind the
 * sleeper.
 */
#ifndef NC_LOCK_H
#define NC_LOCK_H

#include <pthread.h>

static inline void nc_lock_init(pthread_mutex_t *lock)
{
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
	/* The initialiser is for variables; this is how it says the same of memory. */
	*lock = (pthread_mutex_t)PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
#else
	pthread_mutex_init(lock, NULL);
#endif
}

#endif
