/* SPDX-License-Identifier: MIT */
/* process-memory.h - what the kernel states about the memory of this process. */
#ifndef PROCESS_MEMORY_H
#define PROCESS_MEMORY_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "suite.h"

/* Returns the bytes of a line "NAME: N kB" of /proc/self/status. */
static inline size_t process_bytes(const char *name)
{
	FILE *status = fopen("/proc/self/status", "re");
	size_t length = strlen(name);
	bool found = false;
	char line[256];

	ck_assert_ptr_nonnull(status);
	while (!found && fgets(line, sizeof(line), status))
		found = strncmp(line, name, length) == 0 && line[length] == ':';
	fclose(status);
	ck_assert(found);
	return (size_t)strtoull(line + length + 1, NULL, 10) << 10;
}

/*
 * Returns whether the kernel writes through an address.  (The C library's own calls may write there
 * without the kernel: getrandom() does since glibc 2.41.)
 */
static inline bool kernel_writes(void *address)
{
	int pipe_fds[2];
	ssize_t got;

	ck_assert_int_eq(pipe(pipe_fds), 0);
	ck_assert_int_eq(write(pipe_fds[1], "x", 1), 1);
	got = read(pipe_fds[0], address, 1);
	if (got < 0)
		ck_assert_int_eq(errno, EFAULT);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	return got == 1;
}

#endif
