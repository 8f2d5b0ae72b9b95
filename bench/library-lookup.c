/* SPDX-License-Identifier: MIT */
/*
 * library-lookup.c - looking up a unit by its id among few and among many, and the
 * memory that a unit needs besides its bytes.  A lookup is NC_hold() and NC_release()
 * of random ids.  For comparison, the same two atomic operations on a random line of a
 * plain array of equal stride show the time of memory itself when the table no longer
 * fits into the CPU's caches.  The units have one byte, in a page of its own.
 */
#include <nabc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"
#include "store/unit.h"

#define FEW ((size_t)1000)
#define SEED 88172645463325252u

/* An element of the array for comparison. */
struct plain {
	_Atomic uint64_t word;
	char rest[sizeof(struct nc_unit) - sizeof(uint64_t)];
};

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static double look_up(const size_t *ids, size_t count, uint64_t span)
{
	uint64_t start = cpu_ns(), end, done = 0, state = SEED;

	do {
		for (unsigned i = 0; i < 1024; i++) {
			size_t id = ids[random_next(&state) % count];
			struct NC_hold hold;

			must(NC_hold(NULL, id, &hold) == 0 && NC_release(&hold) == 0, "NC_hold");
		}
		done += 1024;
		end = cpu_ns();
	} while (end - start < span);
	return (double)(end - start) / (double)done;
}

static void add(struct plain *plain, uint64_t more)
{
	uint64_t word = atomic_load_explicit(&plain->word, memory_order_acquire);

	while (!atomic_compare_exchange_weak_explicit(&plain->word, &word, word + more,
						      memory_order_acq_rel, memory_order_acquire))
		;
}

static double touch(const size_t *ids, struct plain *array, size_t count, uint64_t span)
{
	uint64_t start = cpu_ns(), end, done = 0, state = SEED;

	do {
		for (unsigned i = 0; i < 1024; i++) {
			size_t at = random_next(&state) % count;

			/* The id is read, too; none of them is 0. */
			add(&array[at - (ids[at] == 0)], 1);
			add(&array[at - (ids[at] == 0)], UINT64_MAX);
		}
		done += 1024;
		end = cpu_ns();
	} while (end - start < span);
	return (double)(end - start) / (double)done;
}

/* A field of /proc/self/status, in bytes. */
static double status_bytes(const char *name)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	double found = -1;

	must(file, "/proc/self/status");
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
			found = atof(line + strlen(name) + 1) * 1024;
	fclose(file);
	must(found >= 0, name);
	return found;
}

static void insert(size_t *id)
{
	NC_handle handle;

	must(NC_unit_alloc(NULL, &handle, 1, PAGE, NC_KIND_RECYCLED, 0) == 0, "NC_unit_alloc");
	must(NC_write(&handle, "x", 1, 0) == 1 && NC_insert(&handle) == 0, "NC_insert");
	*id = NC_cache_id(&handle);
	must(NC_free(&handle) == 0, "NC_free");
}

static void at_count(const struct plan *plan, const size_t *ids, struct plain *array, size_t count)
{
	char subject[32];

	snprintf(subject, sizeof(subject), "%zu", count);
	for (unsigned round = 0; round < plan->rounds; round++) {
		figure("lookup", subject, "ns", look_up(ids, count, plan->span));
		figure("lookup", subject, "array_ns", touch(ids, array, count, plan->span));
	}
}

void measure_lookup(const struct plan *plan)
{
	/* Never full, so nothing is evicted. */
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = plan->units * PAGE * 5 / 4 + ((size_t)64 << 20));
	NC_cache *cache = NC_cache_open(&options);
	size_t *ids = malloc(plan->units * sizeof(*ids));
	struct plain *array = malloc(plan->units * sizeof(*array));
	double anonymous, tables;

	must(cache && ids && array, "NC_cache_open");
	run_on(plan->cpus[0]);
	memset(ids, 0xff, plan->units * sizeof(*ids));
	memset(array, 0, plan->units * sizeof(*array));
	anonymous = status_bytes("RssAnon");
	tables = status_bytes("VmPTE");
	for (size_t i = 0, next = FEW; i < plan->units; i++) {
		insert(&ids[i]);
		if (i + 1 == next || i + 1 == plan->units) {
			if (i + 1 == plan->units) {
				figure("memory", "a unit", "bytes",
				       (status_bytes("RssAnon") - anonymous) / (double)(i + 1));
				figure("memory", "a unit", "page_table_bytes",
				       (status_bytes("VmPTE") - tables) / (double)(i + 1));
				figure("memory", "a unit", "struct_bytes", sizeof(struct nc_unit));
			}
			at_count(plan, ids, array, i + 1);
			next *= 10;
		}
	}
	must(NC_cache_close(cache) == 0, "NC_cache_close");
	free(ids);
	free(array);
}
