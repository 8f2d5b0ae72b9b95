/* SPDX-License-Identifier: MIT */
/* process-memory.h - what the kernel states about the memory of this process. */
#ifndef PROCESS_MEMORY_H
#define PROCESS_MEMORY_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

#endif
