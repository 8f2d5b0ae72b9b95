/* SPDX-License-Identifier: MIT */
/*
 * racer.h - a thread that writes into shared memory while the target reads it:
 * the same words at the same places, over and over, in the order of a script.
 */
#ifndef FUZZ_RACER_H
#define FUZZ_RACER_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fuzz.h"

#define RACER_WRITES 64u

struct racer_write {
	_Atomic uint64_t *at;
	uint64_t word;
};

static struct {
	struct racer_write script[RACER_WRITES];
	unsigned count;
	_Atomic bool running;
	_Atomic bool begun; /* each write was made once */
	pthread_t thread;
} racer;

static inline void *racer_run(void *context)
{
	(void)context;
	while (atomic_load_explicit(&racer.running, memory_order_relaxed)) {
		for (unsigned i = 0; i < racer.count; i++)
			atomic_store_explicit(racer.script[i].at, racer.script[i].word,
					      memory_order_relaxed);
		atomic_store_explicit(&racer.begun, true, memory_order_relaxed);
	}
	return NULL;
}

/* One more write; nothing happens when there are too many. */
static inline void racer_add(void *at, uint64_t word)
{
	if (racer.count < RACER_WRITES)
		racer.script[racer.count++] = (struct racer_write){at, word};
}

/* Returns when it has begun. */
static inline void racer_start(void)
{
	atomic_store(&racer.running, true);
	atomic_store(&racer.begun, false);
	MUST(pthread_create(&racer.thread, NULL, racer_run, NULL) == 0);
	while (!atomic_load(&racer.begun))
		sched_yield();
}

/* From here on only the caller uses the memory, and the script is empty. */
static inline void racer_stop(void)
{
	atomic_store(&racer.running, false);
	MUST(pthread_join(racer.thread, NULL) == 0);
	racer.count = 0;
}

#endif
