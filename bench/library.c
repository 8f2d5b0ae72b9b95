/* SPDX-License-Identifier: MIT */
/*
 * library.c - measures libnabc by itself; bench/bench library runs it and makes
 * tables of its output.
 *
 *	library TEST ROUNDS MILLISECONDS UNITS THREADS CPU CPU
 *
 * One process measures one test, since a process has one default cache.  Within a
 * test the subjects take turns, so that a disturbance meets all of them.  Each
 * figure of each round is a line: test, subject, field, value.  Uses the public
 * headers, as any program would, and one internal function of the library: the
 * checksum, to measure its CPU time alone.
 */
#include <errno.h>
#include <nabc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checksum.h"
#include "library.h"

#define BATCH 128u

void die(const char *what)
{
	fprintf(stderr, "library: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

void figure(const char *test, const char *subject, const char *field, double value)
{
	printf("%s\t%s\t%s\t%.4f\n", test, subject, field, value);
}

void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	must(sched_setaffinity(0, sizeof(set), &set) == 0, "sched_setaffinity");
}

/* --- one unit, and one byte through a pipe ------------------------------- */

static double pipe_byte(const int pipe[2], uint64_t span)
{
	uint64_t start = cpu_ns(), end, count = 0;
	char byte = 0;

	do {
		for (unsigned i = 0; i < BATCH; i++)
			must(write(pipe[1], &byte, 1) == 1 && read(pipe[0], &byte, 1) == 1, "pipe");
		count += BATCH;
		end = cpu_ns();
	} while (end - start < span);
	return (double)(end - start) / (double)count;
}

/*
 * Filled outside of the measured time, which includes the end of the handle's use.
 */
static double unit_4k(uint64_t span, const char *page)
{
	static NC_handle handle[BATCH];
	uint64_t spent = 0, count = 0;

	while (spent < span) {
		uint64_t start = cpu_ns();

		for (unsigned i = 0; i < BATCH; i++)
			must(NC_unit_alloc(NULL, &handle[i], PAGE, PAGE, NC_KIND_RECYCLED, 0) == 0,
			     "NC_unit_alloc");
		spent += cpu_ns() - start;
		for (unsigned i = 0; i < BATCH; i++)
			must(NC_write(&handle[i], page, PAGE, 0) == (ssize_t)PAGE, "NC_write");
		start = cpu_ns();
		for (unsigned i = 0; i < BATCH; i++)
			must(NC_insert(&handle[i]) == 0, "NC_insert");
		for (unsigned i = 0; i < BATCH; i++) {
			size_t id = NC_cache_id(&handle[i]);

			must(NC_free(&handle[i]) == 0, "NC_free");
			must(NC_destroy(NULL, id) == 0, "NC_destroy");
		}
		spent += cpu_ns() - start;
		count += BATCH;
	}
	return (double)spent / (double)count;
}

/* The same steps one unit at a time; of one byte, so that filling takes no time. */
static double unit_small(uint64_t span)
{
	uint64_t start = cpu_ns(), end, count = 0;

	do {
		for (unsigned i = 0; i < BATCH; i++) {
			NC_handle handle;
			size_t id;

			must(NC_unit_alloc(NULL, &handle, 1, PAGE, NC_KIND_RECYCLED, 0) == 0,
			     "NC_unit_alloc");
			must(NC_insert(&handle) == 0, "NC_insert");
			id = NC_cache_id(&handle);
			must(NC_free(&handle) == 0 && NC_destroy(NULL, id) == 0, "NC_destroy");
		}
		count += BATCH;
		end = cpu_ns();
	} while (end - start < span);
	return (double)(end - start) / (double)count;
}

/* Over as many pages as unit_4k() uses in turn: they come from the same CPU cache. */
static double checksum_4k(uint64_t span, const char *pages)
{
	uint64_t start = cpu_ns(), end, count = 0;
	volatile uint32_t sum;

	do {
		for (unsigned i = 0; i < BATCH; i++)
			sum = nc_checksum(pages + i * PAGE, PAGE);
		(void)sum;
		count += BATCH;
		end = cpu_ns();
	} while (end - start < span);
	return (double)(end - start) / (double)count;
}

void measure_unit(const struct plan *plan, const char *who)
{
	char *pages = aligned_alloc(PAGE, BATCH * PAGE);
	int ends[2];

	must(pages && pipe(ends) == 0, "memory and a pipe");
	memset(pages, 'x', BATCH * PAGE);
	(void)unit_4k(plan->span, pages);
	for (unsigned round = 0; round < plan->rounds; round++) {
		figure(who, "pipe, 1 byte", "ns", pipe_byte(ends, plan->span));
		figure(who, "unit, 4 KB", "ns", unit_4k(plan->span, pages));
		figure(who, "checksum of 4 KB", "ns", checksum_4k(plan->span, pages));
		figure(who, "unit, 1 byte", "ns", unit_small(plan->span));
	}
	close(ends[0]);
	close(ends[1]);
	free(pages);
}

void measure_owner(const struct plan *plan)
{
	NC_cache *cache = NC_cache_open(NULL);

	must(cache, "NC_cache_open");
	run_on(plan->cpus[0]);
	measure_unit(plan, "owner");
	must(NC_cache_close(cache) == 0, "NC_cache_close");
}

/* --- the command --------------------------------------------------------- */

static const struct {
	const char *name;
	void (*measure)(const struct plan *plan);
} tests[] = {
	{"owner", measure_owner},   {"worker", measure_worker},	  {"handover", measure_handover},
	{"lookup", measure_lookup}, {"threads", measure_threads},
};

int main(int argc, char **argv)
{
	struct plan plan;

	if (argc == 2 && strcmp(argv[1], "--worker") == 0)
		return serve();
	if (argc == 8) {
		plan = (struct plan){.rounds = (unsigned)atoi(argv[2]),
				     .span = (uint64_t)atoi(argv[3]) * 1000000u,
				     .units = (size_t)atol(argv[4]),
				     .threads = (unsigned)atoi(argv[5]),
				     .cpus = {atoi(argv[6]), atoi(argv[7])}};
		for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
			if (strcmp(argv[1], tests[i].name) == 0) {
				tests[i].measure(&plan);
				return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
			}
		}
	}
	fprintf(stderr, "library: run me by bench/bench library\n");
	return EXIT_FAILURE;
}
