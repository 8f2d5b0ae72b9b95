/* SPDX-License-Identifier: MIT */
/*
 * thread-modules.h - what each folder keeps for each thread, behind a pointer in struct thread.
 */
#ifndef SWEET_THREAD_MODULES_H
#define SWEET_THREAD_MODULES_H

struct server_threads;
struct thread;

/* Call it before the thread's loop runs; the thread has its server, its loop and its config. */
void thread_modules_open(struct thread *thread);

/* Call it when the loops have ended; closes nothing of a thread that was not opened. */
void thread_modules_close(struct server_threads *runners);

#endif
