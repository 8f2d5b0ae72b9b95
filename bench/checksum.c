/* SPDX-License-Identifier: MIT */
/*
 * checksum.c - the CPU time of checksums compared with copying: libnabc's Internet
 * checksum and CRC32C against memcpy() on the same data, which the CPU's caches
 * hold.
 *
 * The three take turns in short rounds, so that a disturbance of the machine
 * meets all of them; the median round counts.  Prints one line a size:
 * bytes per nanosecond of each, and ratios to memcpy().  One thread.
 *
 * Usage: checksum [SIZE...]
 *        checksum --once copy|checksum|crc32c SIZE COUNT
 *
 * --once only does the work, in a function run_NAME, for a profiler to count:
 *
 *   valgrind --tool=callgrind --callgrind-out-file=/dev/null \
 *     --toggle-collect='run_*' bench/checksum --once checksum 4096 1000
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checksum.h"
#include "base/crc32c.h"

#define ROUNDS 41u
#define ROUND_BYTES ((size_t)4 << 20)
#define SIZE_LIMIT ((size_t)1 << 30)

typedef void run_function(const void *data, void *to, size_t size, size_t count);

/* The compiler must not know that the result is unused. */
static volatile uint32_t sink;

static inline void clobber(void *memory)
{
	__asm__ volatile("" : : "r"(memory) : "memory");
}

static __attribute__((noinline)) void run_copy(const void *data, void *to, size_t size,
					       size_t count)
{
	while (count--) {
		memcpy(to, data, size);
		clobber(to);
	}
}

static __attribute__((noinline)) void run_checksum(const void *data, void *to, size_t size,
						   size_t count)
{
	(void)to;
	while (count--)
		sink = nc_checksum(data, size);
}

static __attribute__((noinline)) void run_crc32c(const void *data, void *to, size_t size,
						 size_t count)
{
	(void)to;
	while (count--)
		sink = nc_crc32c(0, data, size);
}

static const struct {
	const char *name;
	run_function *run;
} works[] = {{"copy", run_copy}, {"checksum", run_checksum}, {"crc32c", run_crc32c}};

#define WORKS (sizeof(works) / sizeof(works[0]))

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void *memory(size_t size)
{
	unsigned char *at = aligned_alloc(4096, (size + 4095) / 4096 * 4096);

	if (!at)
		err(1, "%zu bytes", size);
	for (size_t i = 0; i < size; i++)
		at[i] = (unsigned char)(i * 167 + (i >> 8));
	return at;
}

static void compare(size_t size)
{
	size_t count = size < ROUND_BYTES ? ROUND_BYTES / size : 1;
	void *data = memory(size), *to = memory(size);
	double rate[WORKS][ROUNDS];

	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < WORKS; i++) {
			uint64_t start;

			/* The caches contain the data of this one, not that of the last one. */
			works[i].run(data, to, size, count / 16 + 1);
			start = now();
			works[i].run(data, to, size, count);
			rate[i][round] = (double)(size * count) / (double)(now() - start);
		}
	for (unsigned i = 0; i < WORKS; i++)
		qsort(rate[i], ROUNDS, sizeof(rate[i][0]), by_value);
	printf("%8zu", size);
	for (unsigned i = 0; i < WORKS; i++)
		printf(" %9.1f", rate[i][ROUNDS / 2]);
	for (unsigned i = 1; i < WORKS; i++)
		printf(" %13.2f", rate[i][ROUNDS / 2] / rate[0][ROUNDS / 2]);
	putchar('\n');
	free(data);
	free(to);
}

static size_t parse(const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value == 0 || value > SIZE_LIMIT)
		errx(2, "%s: not a number from 1 to %zu", text, SIZE_LIMIT);
	return (size_t)value;
}

static int once(const char *name, size_t size, size_t count)
{
	void *data, *to;

	for (unsigned i = 0; i < WORKS; i++) {
		if (strcmp(name, works[i].name))
			continue;
		data = memory(size);
		to = memory(size);
		works[i].run(data, to, size, count);
		free(data);
		free(to);
		return 0;
	}
	errx(2, "%s: not copy, checksum or crc32c", name);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {1 << 10, 4 << 10, 16 << 10, 64 << 10};

	if (argc == 5 && strcmp(argv[1], "--once") == 0)
		return once(argv[2], parse(argv[3]), parse(argv[4]));
	if (argc > 1 && argv[1][0] == '-')
		errx(2, "usage: checksum [SIZE...] | --once copy|checksum|crc32c SIZE COUNT");
	printf("%8s %9s %9s %9s %13s %13s\n", "bytes", "copy", "checksum", "crc32c",
	       "checksum/copy", "crc32c/copy");
	for (int i = 1; i < argc; i++)
		compare(parse(argv[i]));
	for (unsigned i = 0; argc == 1 && i < sizeof(sizes) / sizeof(sizes[0]); i++)
		compare(sizes[i]);
	return 0;
}
