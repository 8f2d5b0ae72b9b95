/* SPDX-License-Identifier: MIT */
/* random.c - random numbers from the kernel; see random.h. */
#include <elf.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "os/random.h"

/* The last step of splitmix64: each bit of the result depends on each of the argument. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/*
 * What tells this call from all others of this machine: what the kernel gave the program at
 * its start, the process, the time, and how many calls there were before.
 */
static uint64_t without_kernel(void)
{
	static _Atomic uint64_t calls;
	const void *start = (const void *)(uintptr_t)getauxval(AT_RANDOM);
	uint64_t seed[2] = {0};
	struct timespec time;

	if (start)
		memcpy(seed, start, sizeof(seed));
	clock_gettime(CLOCK_BOOTTIME, &time);
	seed[0] = mix(seed[0] ^ (uint64_t)time.tv_sec << 30 ^ (uint64_t)time.tv_nsec);
	clock_gettime(CLOCK_REALTIME, &time);
	seed[1] = mix(seed[1] ^ (uint64_t)time.tv_sec << 30 ^ (uint64_t)time.tv_nsec);
	return mix(seed[0] ^ mix(seed[1] + (uint64_t)getpid()) ^
		   mix(atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1));
}

uint64_t nc_random(void)
{
	uint64_t value;

	/* Early at boot, or in a sandbox that forbids it, the kernel has none to give. */
	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != (ssize_t)sizeof(value))
		value = without_kernel();
	return value;
}
