/* SPDX-License-Identifier: MIT */
/*
 * handler-thread.h - what this folder keeps for each thread (thread->handler): private to its sources.
 */
#ifndef SWEET_HANDLER_THREAD_H
#define SWEET_HANDLER_THREAD_H

#include "base/list.h"

struct handler_thread {
	struct list listings; /* of autoindex.c: those that are being made */
};

#endif
