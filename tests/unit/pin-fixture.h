/* SPDX-License-Identifier: MIT */
/*
 * pin-fixture.h - shared by the tests of locked memory: what the kernel counts as
 * locked, and a process to which RLIMIT_MEMLOCK applies.
 */
#ifndef PIN_FIXTURE_H
#define PIN_FIXTURE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process-memory.h"
#include "suite.h"

#define LOCK_MESSAGES 8u

static char lock_said[LOCK_MESSAGES][512];
static unsigned lock_says;

/* An NC_log. */
static inline void lock_hear(void *context, int priority, const char *message)
{
	ck_assert_ptr_eq(context, lock_said);
	ck_assert_int_ge(priority, 0);
	ck_assert_ptr_null(strchr(message, '\n'));
	ck_assert_uint_lt(lock_says, LOCK_MESSAGES);
	snprintf(lock_said[lock_says++], sizeof(lock_said[0]), "%s", message);
}

/* Returns the last message that names the limit; fails unless there is that number of them. */
static inline const char *lock_message(unsigned times)
{
	const char *last = NULL;
	unsigned found = 0;

	for (unsigned i = 0; i < lock_says; i++) {
		if (!strstr(lock_said[i], "locked, the rest is not"))
			continue;
		found++;
		last = lock_said[i];
	}
	ck_assert_uint_eq(found, times);
	return last;
}

/* Returns the bytes of this process's memory that the kernel counts as locked. */
static inline size_t locked_now(void)
{
	return process_bytes("VmLck");
}

/* Returns the bytes of the mapping at base that are present and locked. */
static inline size_t locked_at(const void *base)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	unsigned long start, end, kib = 0;
	bool inside = false, found = false;
	char line[512];

	ck_assert_ptr_nonnull(file);
	while (!found && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = (uintptr_t)base >= start && (uintptr_t)base < end;
		else if (inside)
			found = sscanf(line, "Locked: %lu kB", &kib) == 1;
	}
	fclose(file);
	ck_assert(found);
	return (size_t)kib << 10;
}

/* Whether memory can be locked page by page: Valgrind 3.19 does not know mlock2(). */
static inline bool has_mlock2(void)
{
	return syscall(SYS_mlock2, NULL, 0, MLOCK_ONFAULT) == 0 || errno != ENOSYS;
}

/* Whether this process may lock that many bytes more. */
static inline bool may_lock(size_t bytes)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	if (geteuid() == 0 || limit.rlim_cur >= locked_now() + bytes)
		return true;
	printf("%zu bytes more may not be locked here\n", bytes);
	return false;
}

/* Root has no limit, so this process becomes nobody. */
static inline void limit_locked(size_t bytes)
{
	struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};

	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
}

#endif
