/* SPDX-License-Identifier: MIT */
/*
 * backend-thread.h - what this folder keeps for each thread (thread->backend): private to its
 * sources.
 */
#ifndef SWEET_BACKEND_THREAD_H
#define SWEET_BACKEND_THREAD_H

#include <nabc-worker.h>

#include "base/list.h"
#include "event/loop.h"

struct backend_thread {
	/* Of worker.c: before the loop sleeps, wakes workers and looks for responses. */
	struct loop_hook hook;
	struct list channels;
	/* Of backend-call.c: a request's variables until they are submitted. */
	char block[NC_BLOCK_MAX];
};

#endif
