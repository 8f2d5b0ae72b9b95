/* SPDX-License-Identifier: MIT */
/*
 * gateway-thread.h - what this folder keeps for each thread (thread->gateway): private to its
 * sources.
 */
#ifndef SWEET_GATEWAY_THREAD_H
#define SWEET_GATEWAY_THREAD_H

#include "base/list.h"
#include "event/loop.h"

/* Of worker.c. */
struct gateway_thread {
	struct loop_hook hook; /* before the loop sleeps, wakes workers and looks for responses */
	struct list channels;
};

#endif
