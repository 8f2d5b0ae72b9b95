/* SPDX-License-Identifier: MIT */
/* thread.h - starts a thread of the library in the program. */
#ifndef NC_THREAD_H
#define NC_THREAD_H

#include <pthread.h>

/*
 * Starts a thread with a small stack that blocks all signals: the program's own threads
 * handle them.  name: of at most 15 bytes.  Returns 0, or -errno of pthread_create(3).
 */
int nc_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *context);

#endif
