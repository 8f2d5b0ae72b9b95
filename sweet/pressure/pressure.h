/* SPDX-License-Identifier: MIT */
/*
 * pressure.h - what slow clients hold: units of the cache and of programs (slow.h), bytes in sockets
 * (unsent.h).  Who sends responses reports the bytes, and stops a send or resets a client by a
 * callback.
 */
#ifndef SWEET_PRESSURE_H
#define SWEET_PRESSURE_H

struct thread;

/* Call it before the thread's loop runs; close it when no response and no socket is left. */
void pressure_thread_open(struct thread *thread);
void pressure_thread_close(struct thread *thread);

/* Call it before the thread's loop ends, when no response and no socket is left. */
void pressure_thread_stop(struct thread *thread);

#endif
