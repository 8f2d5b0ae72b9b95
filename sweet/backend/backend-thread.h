/* SPDX-License-Identifier: MIT */
/*
 * backend-thread.h - what this folder keeps for each thread (thread->backend): private to its
 * sources.
 */
#ifndef SWEET_BACKEND_THREAD_H
#define SWEET_BACKEND_THREAD_H

#include <nabc-worker.h>

struct backend_thread {
	char block[NC_BLOCK_MAX]; /* a request's variables until they are submitted */
};

#endif
