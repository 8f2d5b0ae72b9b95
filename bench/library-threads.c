/* SPDX-License-Identifier: MIT */
/*
 * library-threads.c - threads that look units up, that send them, and that insert,
 * send and destroy them, all in one cache.  Each thread has a pair of connected
 * sockets and reads what it sent, so only a lock can make it wait: its voluntary
 * context switches are the waits for locks. send() of the same bytes is measured for
 * comparison.
 */
#include <nabc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "library.h"

#define UNIT ((size_t)1024)
#define THREADS_MAX 64u

#define LOOK_UPS 1000u /* units that all threads look up */
#define BATCH 64u      /* calls between two reads of the clock */

enum task { PLAIN, OWN, SHARED, INSERT, INSERT_ONLY, HOLD_OWN, HOLD_SHARED, LOOK_UP, TASKS };

static const char *const task_names[TASKS] = {"send(), no library",
					      "NC_socksend, a unit each",
					      "NC_socksend, one unit for all",
					      "insert, NC_socksend, destroy",
					      "insert, destroy",
					      "hold, release, a unit each",
					      "hold, release, one unit for all",
					      "hold, release, any of 1,000"};

struct crew {
	enum task task;
	uint64_t span;
	const int *cpus;
	const size_t *ids; /* LOOK_UPS; the first is the shared one */
	pthread_barrier_t start;
};

struct hand {
	struct crew *crew;
	unsigned number;
	pthread_t thread;
	uint64_t count, waits;
};

static size_t insert(void)
{
	static const char bytes[UNIT] = "x";
	NC_handle handle;
	size_t id;

	must(NC_unit_alloc(NULL, &handle, UNIT, UNIT, NC_KIND_RECYCLED, 0) == 0, "NC_unit_alloc");
	must(NC_write(&handle, bytes, UNIT, 0) == (ssize_t)UNIT && NC_insert(&handle) == 0,
	     "NC_insert");
	id = NC_cache_id(&handle);
	must(NC_free(&handle) == 0, "NC_free");
	return id;
}

static void hold(size_t id)
{
	struct NC_hold hold;

	must(NC_hold(NULL, id, &hold) == 0 && NC_release(&hold) == 0, "NC_hold");
}

static void once(enum task task, const int sockets[2], size_t id, char *bytes)
{
	bool own = task == INSERT || task == INSERT_ONLY;

	if (own)
		id = insert();
	if (task == PLAIN)
		must(send(sockets[0], bytes, UNIT, MSG_NOSIGNAL) == (ssize_t)UNIT, "send");
	else if (task != INSERT_ONLY)
		must(NC_socksend(sockets[0], id, 0, UNIT) == (ssize_t)UNIT, "NC_socksend");
	if (task != INSERT_ONLY)
		must(recv(sockets[1], bytes, UNIT, MSG_WAITALL) == (ssize_t)UNIT, "recv");
	if (own)
		must(NC_destroy(NULL, id) == 0, "NC_destroy");
}

static void repeat(const struct hand *hand, const int sockets[2], size_t id, char *bytes)
{
	enum task task = hand->crew->task;
	unsigned at = hand->number * (LOOK_UPS / 16) + (unsigned)hand->count;

	for (unsigned i = 0; i < BATCH; i++) {
		if (task == HOLD_OWN || task == HOLD_SHARED)
			hold(id);
		else if (task == LOOK_UP)
			/*
			 * Steps without a common divisor visit all of them, each thread at a
			 * different place.
			 */
			hold(hand->crew->ids[(at + i) * 367 % LOOK_UPS]);
		else
			once(task, sockets, id, bytes);
	}
}

static void *work(void *context)
{
	struct hand *hand = context;
	struct crew *crew = hand->crew;
	bool shared = crew->task == SHARED || crew->task == HOLD_SHARED;
	size_t id = shared ? crew->ids[0] : insert();
	char bytes[UNIT] = {0};
	struct rusage before, after;
	uint64_t start;
	int sockets[2];

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socketpair");
	/* Half of them on each CPU, whatever else runs. */
	run_on(crew->cpus[hand->number % 2]);
	pthread_barrier_wait(&crew->start);
	getrusage(RUSAGE_THREAD, &before);
	start = now_ns();
	while (now_ns() - start < crew->span) {
		repeat(hand, sockets, id, bytes);
		hand->count += BATCH;
	}
	getrusage(RUSAGE_THREAD, &after);
	hand->waits = (uint64_t)(after.ru_nvcsw - before.ru_nvcsw);
	close(sockets[0]);
	close(sockets[1]);
	if (!shared)
		must(NC_destroy(NULL, id) == 0, "NC_destroy");
	return NULL;
}

static void round_of(const struct plan *plan, enum task task, unsigned threads, const size_t *ids)
{
	struct crew crew = {.task = task, .span = plan->span, .cpus = plan->cpus, .ids = ids};
	struct hand hands[THREADS_MAX] = {{0}};
	uint64_t count = 0, waits = 0, start, cpu;
	char subject[32];

	must(pthread_barrier_init(&crew.start, NULL, threads) == 0, "pthread_barrier_init");
	start = now_ns();
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned i = 0; i < threads; i++) {
		hands[i].crew = &crew;
		hands[i].number = i;
		must(pthread_create(&hands[i].thread, NULL, work, &hands[i]) == 0,
		     "pthread_create");
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(hands[i].thread, NULL);
		count += hands[i].count;
		waits += hands[i].waits;
	}
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	start = now_ns() - start;
	pthread_barrier_destroy(&crew.start);
	snprintf(subject, sizeof(subject), "%u", threads);
	figure(task_names[task], subject, "per_s", (double)count / (double)start * 1e9);
	figure(task_names[task], subject, "cpu_ns", (double)cpu / (double)count);
	figure(task_names[task], subject, "waits", (double)waits / (double)count * 1e6);
}

void measure_threads(const struct plan *plan)
{
	NC_cache *cache = NC_cache_open(NULL);
	size_t ids[LOOK_UPS];

	must(cache, "NC_cache_open");
	for (unsigned i = 0; i < LOOK_UPS; i++)
		ids[i] = insert();
	for (unsigned round = 0; round < plan->rounds; round++)
		for (unsigned threads = 1; threads <= plan->threads; threads *= 2)
			for (enum task task = PLAIN; task < TASKS; task++)
				round_of(plan, task, threads, ids);
	for (unsigned i = 0; i < LOOK_UPS; i++)
		must(NC_destroy(NULL, ids[i]) == 0, "NC_destroy");
	must(NC_cache_close(cache) == 0, "NC_cache_close");
}
