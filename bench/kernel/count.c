// SPDX-License-Identifier: MIT
/*
 * count.c - counts instructions without those of idle time.
 *
 * QEMU's clock, and with it the time stamp counter, advances by one for each
 * instruction.  An idle process, which runs only when no other process is ready,
 * adds up the steps of the counter.  A large step is not idle time: an interrupt or
 * other processes ran in between.
 */
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <x86intrin.h>

#include "count.h"
#include "guest.h"

/* More than the loop has instructions, less than any interrupt. */
#define STEP_MAX 64

/* The guest is idle after this number of consecutive pauses without work. */
#define QUIET_PAUSES 5
#define PAUSE_NS 100000000u

static volatile uint64_t *idled;

static int idle(void *context)
{
	const struct sched_param none = {0};
	uint64_t last = __rdtsc();

	(void)context;
	must(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	must(sched_setscheduler(0, SCHED_IDLE, &none) == 0);
	for (;;) {
		uint64_t now = __rdtsc();

		if (now - last < STEP_MAX)
			*idled += now - last;
		last = now;
	}
	return 0;
}

void count_begin(void)
{
	void *memory = mmap(NULL, sizeof(*idled), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must(memory != MAP_FAILED);
	idled = memory;
	guest_fork(idle, NULL);
}

uint64_t count_busy(void)
{
	return __rdtsc() - *idled;
}

uint64_t count_idle(void)
{
	return *idled;
}

void count_settle(void)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	for (int quiet = 0; quiet < QUIET_PAUSES; quiet++) {
		uint64_t before = count_busy();

		nanosleep(&pause, NULL);
		if (count_busy() - before > PAUSE_NS / 100)
			quiet = 0;
	}
}
