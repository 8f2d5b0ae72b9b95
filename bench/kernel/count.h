/* SPDX-License-Identifier: MIT */
/*
 * count.h - the instructions of a guest with one CPU, without those of idle time.
 */
#ifndef NC_BENCH_COUNT_H
#define NC_BENCH_COUNT_H

#include <stdint.h>

/* Begins to separate instructions from idling; on one CPU. */
void count_begin(void);

/* Returns the instructions of everything in this guest since count_begin(), without idling. */
uint64_t count_busy(void);

/* Returns those of idling alone. */
uint64_t count_idle(void);

/* Waits until the kernel has completed work that it defers after its start. */
void count_settle(void);

#endif
