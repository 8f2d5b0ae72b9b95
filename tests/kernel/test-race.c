/* SPDX-License-Identifier: MIT */
/*
 * test-race.c - concurrent calls on several processors: inserts while a thread writes
 * to the same unit, and all calls concurrently on the same units.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc-uapi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "device.h"
#include "guest.h"

enum { INSERTS = 3000, SIZE = 20000, SHARED = 16, STORM_MS = 5000 };

static struct device device;

/* Where the writing thread writes; NULL: it must stop. */
static unsigned char *_Atomic target;
static _Atomic bool stop;
static _Atomic unsigned long stores, faults;
static __thread sigjmp_buf back;

static void catch (int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

static void *storing(void *context)
{
	unsigned char value = 0;

	(void)context;
	while (!stop) {
		volatile unsigned char *bytes = target;

		if (!bytes)
			continue;
		if (sigsetjmp(back, 1)) {
			faults++;
			continue;
		}
		for (size_t at = 0; at < SIZE; at += 997) {
			bytes[at] = ++value;
			stores++;
		}
	}
	return NULL;
}

static void test_insert(void)
{
	static unsigned char first[SIZE], second[SIZE];
	unsigned long during = 0;
	pthread_t thread;

	must(pthread_create(&thread, NULL, storing, NULL) == 0);
	for (int i = 0; i < INSERTS; i++) {
		unsigned char *bytes;
		uint64_t id = device_alloc(&device, SIZE, &bytes);
		unsigned long before = stores;
		long sum;

		target = bytes;
		/* On one processor it may not run at once; then this insert tests little. */
		for (int spin = 0; spin < 20000 && stores == before; spin++)
			;
		must(nabc_insert(device.fd, id, 0, 0, i % 2 ? NABC_INSERT_SUMS : 0) == 0);
		during += stores != before;
		must(nabc_copy(device.fd, id, 0, SIZE, first) == 0);
		sum = nabc_sum(device.fd, id, 0, SIZE);
		for (volatile int spin = 0; spin < 300; spin++)
			;
		must(nabc_copy(device.fd, id, 0, SIZE, second) == 0);
		must(memcmp(first, second, SIZE) == 0);
		must(nabc_sum(device.fd, id, 0, SIZE) == sum);
		must(nabc_destroy(device.fd, id) == 0);
	}
	stop = true;
	must(pthread_join(thread, NULL) == 0);
	guest_tested("%d inserts against a storing thread: it stored during %lu, %lu faults",
		     INSERTS, during, faults);
}

/* Units that all threads know; a slot is 0 or an id, whose bytes the id names. */
static _Atomic uint64_t shared[SHARED];
static uint64_t until;

static uint64_t a_unit(uint64_t *state)
{
	uint64_t size = 1 + guest_random(state) % 60000;
	unsigned char *bytes;
	uint64_t id = device_alloc(&device, size, &bytes);

	guest_fill(bytes, id, 0, size);
	must(nabc_insert(device.fd, id, 0, 0, (uint32_t)guest_random(state) % 2) == 0);
	return id;
}

static void *making(void *context)
{
	uint64_t state = 1 + (uintptr_t)context;

	while (guest_now() < until) {
		uint64_t id =
			atomic_exchange(&shared[guest_random(&state) % SHARED], a_unit(&state));

		if (id)
			must(nabc_destroy(device.fd, id) == 0);
	}
	return NULL;
}

/* Every existing unit has its own bytes. */
static void *using(void *context)
{
	uint64_t state = 100 + (uintptr_t)context;
	static __thread unsigned char bytes[60000];
	struct nabc_stat stat;
	unsigned long seen = 0;

	while (guest_now() < until) {
		uint64_t id = shared[guest_random(&state) % SHARED];

		if (!id || nabc_stat(device.fd, id, &stat) < 0)
			continue;
		if (nabc_hold(device.fd, id) < 0) {
			must(errno == ENOENT);
			continue;
		}
		must(nabc_copy(device.fd, id, 0, stat.size, bytes) == 0);
		must(guest_holds(bytes, id, 0, stat.size));
		must(nabc_sum(device.fd, id, 0, stat.size) >= 0);
		must(nabc_release(device.fd, id) == 0);
		seen++;
	}
	return (void *)seen;
}

static void *sending(void *context)
{
	uint64_t state = 200 + (uintptr_t)context;
	struct guest_pair *pair = context;
	struct nabc_stat stat;
	unsigned long seen = 0;

	while (guest_now() < until) {
		uint64_t id = shared[guest_random(&state) % SHARED];
		ssize_t sent;

		if (!id || nabc_stat(device.fd, id, &stat) < 0)
			continue;
		sent = nabc_socksend(device.fd, pair->near, id, 0, stat.size,
				     seen % 2 ? NABC_SEND_SUMS : 0);
		if (sent < 0) {
			must(errno == ENOENT);
			continue;
		}
		must(guest_receive(pair->far, id, 0, (size_t)sent));
		seen++;
	}
	return (void *)seen;
}

/* Files that are opened and closed meanwhile. */
static void *opening(void *context)
{
	unsigned long seen = 0;

	(void)context;
	while (guest_now() < until) {
		struct device own;

		device_open(&own);
		device_unit(&own, 5, 30000);
		device_close(&own);
		seen++;
	}
	return (void *)seen;
}

/* Page faults anywhere, in mappings that are made and removed. */
static void *looking(void *context)
{
	uint64_t state = 300 + (uintptr_t)context;
	volatile unsigned long seen = 0;

	while (guest_now() < until) {
		volatile unsigned char *arena =
			mmap(NULL, device.info.arena_size, PROT_READ, MAP_SHARED, device.fd, 0);

		must(arena != MAP_FAILED);
		for (volatile int i = 0; i < 50; i++)
			if (sigsetjmp(back, 1) == 0) {
				(void)arena[guest_random(&state) % (4 << 20)];
				seen++;
			}
		must(munmap((void *)arena, device.info.arena_size) == 0);
	}
	return (void *)seen;
}

enum { THREADS = 8 };

static void storm(unsigned long seen[THREADS])
{
	struct guest_pair pairs[2];
	void *(*const bodies[])(void *) = {making, making, using, using, opening, looking};
	pthread_t threads[THREADS];
	void *result;

	until = guest_now() + STORM_MS;
	for (uintptr_t i = 0; i < 6; i++)
		must(pthread_create(&threads[i], NULL, bodies[i], (void *)(i + 1)) == 0);
	for (int i = 0; i < 2; i++) {
		pairs[i] = guest_connect(i ? AF_INET6 : AF_INET);
		must(pthread_create(&threads[6 + i], NULL, sending, &pairs[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++) {
		must(pthread_join(threads[i], &result) == 0);
		seen[i] += (unsigned long)result;
	}
	for (int i = 0; i < SHARED; i++)
		if (shared[i]) {
			must(nabc_destroy(device.fd, shared[i]) == 0);
			shared[i] = 0;
		}
	guest_disconnect(&pairs[0]);
	guest_disconnect(&pairs[1]);
	must(device_wait(device.fd, GAUGE(units), 0));
}

/* On a busy machine a thread may hardly run during a storm: then another one follows. */
static void test_storm(void)
{
	unsigned long seen[THREADS] = {0};

	do {
		storm(seen);
	} while (!(seen[2] + seen[3] && seen[4] && seen[5] && seen[6] + seen[7]));
	guest_tested("all calls at once: %lu uses, %lu files, %lu looks, %lu sends",
		     seen[2] + seen[3], seen[4], seen[5], seen[6] + seen[7]);
}

int main(void)
{
	struct sigaction action = {.sa_handler = catch};

	sigaction(SIGBUS, &action, NULL);
	device_open(&device);
	test_insert();
	test_storm();
	device_close(&device);
	return 0;
}
