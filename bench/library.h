/* SPDX-License-Identifier: MIT */
/*
 * library.h - shared by the parts of the benchmark of the library: clocks, the format
 * of figures, and exiting at the first failure.
 */
#ifndef BENCH_LIBRARY_H
#define BENCH_LIBRARY_H

#include <stdint.h>
#include <time.h>

#include <nabc-worker.h>

#define PAGE ((size_t)4096)
#define BODY ((size_t)100 << 10)

/* How much to measure. */
struct plan {
	unsigned rounds;  /* of each subject, alternating with the others */
	uint64_t span;	  /* minimum duration of a round of one subject, ns */
	size_t units;	  /* of the lookups, at most */
	unsigned threads; /* at most */
	int cpus[2];	  /* of the owner and of the worker */
};

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* CPU time of this thread: that of other programs does not count. */
static inline uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Prints what failed, with errno, and exits with status 1. */
_Noreturn void die(const char *what);

/* Exits unless `good`; errno should say why. */
#define must(good, what)                                                                           \
	do {                                                                                       \
		if (!(good))                                                                       \
			die(what);                                                                 \
	} while (0)

/* One figure of one round: a line of standard output for bench/lib/library.py. */
void figure(const char *test, const char *subject, const char *field, double value);

void run_on(int cpu);

void measure_unit(const struct plan *plan, const char *who);
void measure_owner(const struct plan *plan);
void measure_worker(const struct plan *plan);
void measure_handover(const struct plan *plan);
void measure_lookup(const struct plan *plan);
void measure_threads(const struct plan *plan);

/* The worker of measure_worker() and measure_handover(). */
int serve(void);

#endif
