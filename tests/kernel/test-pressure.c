/* SPDX-License-Identifier: MIT */
/*
 * test-pressure.c - when memory runs out: allocations fail and report why, no process
 * is killed for them, and memory that the module keeps in its pool is returned on
 * demand.
 */
#include <errno.h>
#include <nabc-uapi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "guest.h"

enum { UNIT = 1 << 20, MOST = 4096 };

static struct device device;

/* Makes units until that fails. */
static unsigned int fill_up(uint64_t *ids)
{
	unsigned int count = 0;

	while (count < MOST && nabc_alloc(device.fd, UNIT, &ids[count]) == 0) {
		must(nabc_insert(device.fd, ids[count], 0, 0, 0) == 0);
		count++;
	}
	must(count < MOST);
	must(errno == ENOSPC || errno == ENOMEM);
	return count;
}

static void test_limit(void)
{
	static uint64_t ids[MOST];
	unsigned int count = fill_up(ids), again;
	uint64_t memory = device_statistics(device.fd).unit_memory;
	struct guest_pair pair;
	bool full = errno == ENOSPC;

	must(memory >= (uint64_t)count * UNIT);
	must(memory <= device.info.memory_limit);
	if (full)
		must(memory + UNIT > device.info.memory_limit);
	/* Sending needs no memory of the cache. */
	pair = guest_connect(AF_INET);
	must(nabc_socksend(device.fd, pair.near, ids[0], 0, 1000, 0) == 1000);
	guest_disconnect(&pair);
	for (unsigned int i = 0; i < count; i++)
		must(nabc_destroy(device.fd, ids[i]) == 0);
	must(device_statistics(device.fd).unit_memory == 0);
	again = fill_up(ids);
	must(again + again / 10 + 1 >= count);
	for (unsigned int i = 0; i < again; i++)
		must(nabc_destroy(device.fd, ids[i]) == 0);
	guest_tested("%u units of 1 MiB until %s, then %u again", count, full ? "ENOSPC" : "ENOMEM",
		     again);
}

/* Destroyed units, whose memory is kept for later ones. */
static void keep(void)
{
	uint64_t ids[30];

	for (int i = 0; i < 30; i++)
		ids[i] = device_unit(&device, (uint64_t)i, UNIT);
	for (int i = 0; i < 30; i++)
		must(nabc_destroy(device.fd, ids[i]) == 0);
}

/* Writes to memory, a MiB at a time, until the kernel has little left. */
static void test_shrink(void)
{
	struct nabc_statistics before, now;
	unsigned char *eaten[1024];
	int count = 0;

	keep();
	before = now = device_statistics(device.fd);
	must(before.pooled_memory > 0);
	while (now.shrunk == before.shrunk && count < 1024) {
		/* Unused memory is freed after a time. */
		if (now.pooled_memory == 0)
			keep();
		eaten[count] = mmap(NULL, UNIT, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		must(eaten[count] != MAP_FAILED);
		count++;
		/* The kernel reclaims in the background. */
		if (guest_meminfo("MemFree") < 20000)
			usleep(20000);
		now = device_statistics(device.fd);
	}
	must(now.shrunk > before.shrunk);
	/* A unit in the remaining memory. */
	must(nabc_destroy(device.fd, device_unit(&device, 1, 100000)) == 0);
	for (int i = 0; i < count; i++)
		munmap(eaten[i], UNIT);
	guest_tested("%llu KiB kept; another took %d MiB, %llu KiB were given back",
		     (unsigned long long)before.pooled_memory >> 10, count,
		     (unsigned long long)(now.shrunk - before.shrunk) >> 10);
}

int main(void)
{
	device_open(&device);
	test_limit();
	test_shrink();
	device_close(&device);
	return 0;
}
