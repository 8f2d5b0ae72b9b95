/* SPDX-License-Identifier: MIT */
/* pinned.h - shared by tests of registered memory: how much of this process is pinned. */
#ifndef PINNED_H
#define PINNED_H

#include <nabc.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "os/segment.h"

#include "process-memory.h"
#include "suite.h"

/* Returns VmPin of this process in bytes. */
static inline size_t pinned(void)
{
	return process_bytes("VmPin");
}

/* Older kernels unpin a moment later, and announce it to nobody. */
static inline void await_pinned(size_t bytes)
{
	for (unsigned turns = 0; pinned() != bytes && turns < 6000; turns++)
		(void)poll(NULL, 0, 10);
	ck_assert_uint_eq(pinned(), bytes);
}

/*
 * Whether memory can be registered.  Root has no limit on pinned memory; another user
 * shares its limit with all its processes.
 */
static inline bool may_pin(void)
{
	bool huge = nc_segment_huge_unasked();

	if (geteuid() == 0 && !huge)
		return true;
	printf(huge ? "segments have huge pages, which are not registered\n"
		    : "only root has no limit on locked memory\n");
	fflush(stdout);
	return false;
}

/*
 * From now on at most `limit` bytes may be locked: becomes a user of this test only.
 * Returns false if the system does not permit it.
 */
static inline bool limit_pins(size_t limit)
{
	const struct rlimit bytes = {limit, limit};
	uid_t user = 60000 + (uid_t)getpid() % 5000;

	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &bytes), 0);
	if (geteuid() == 0 && setresuid(user, user, user) == 0)
		return true;
	printf("only root can become another user\n");
	fflush(stdout);
	return false;
}

#endif
