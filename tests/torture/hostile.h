/* SPDX-License-Identifier: MIT */
/*
 * hostile.h - shared by honest.c and hostile-*.c: figures that hostile.py reads while
 * they run, the time, and a limit for the CPU time that one may use.  The figures are
 * a file of numbers, mapped by both; each has one writer.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "content.h"

#define FIGURES 256 /* as hostile.py has it */

static volatile uint64_t *figures;
static volatile sig_atomic_t ended;

static inline void end(int number)
{
	(void)number;
	ended = 1;
}

/* Runs until SIGTERM, or until its parent exits. */
static inline void begin(const char *path)
{
	struct sigaction action = {.sa_handler = end};
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		err(1, "%s", path);
	figures = mmap(NULL, FIGURES * sizeof(*figures), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (figures == MAP_FAILED)
		err(1, "%s", path);
	close(fd);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		err(1, "prctl");
}

static inline uint64_t clock_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return clock_of(CLOCK_MONOTONIC);
}

static inline void nap(uint64_t ns)
{
	struct timespec time = {.tv_sec = (time_t)(ns / 1000000000),
				.tv_nsec = (long)(ns % 1000000000)};

	(void)nanosleep(&time, NULL);
}

/* Sleeps as long as more than that share of a CPU was used since the start. */
static inline void keep_to(double share, uint64_t started_ns)
{
	double used = (double)clock_of(CLOCK_PROCESS_CPUTIME_ID);
	double due = share * (double)(now_ns() - started_ns);

	if (used > due && !ended)
		nap((uint64_t)((used - due) / share));
}

#endif
