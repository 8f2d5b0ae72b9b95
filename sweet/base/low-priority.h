/* SPDX-License-Identifier: MIT */
/* low-priority.h - lets event loops have the processor before a thread that computes for long. */
#ifndef SWEET_LOW_PRIORITY_H
#define SWEET_LOW_PRIORITY_H

#include <sys/resource.h>

#define LOW_PRIORITY_NICE 15 /* added to the value of the server */

/* Lowers the priority of the calling thread alone, as Linux does it; only root could raise it again. */
static inline void low_priority_take(void)
{
	(void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + LOW_PRIORITY_NICE);
}

#endif
