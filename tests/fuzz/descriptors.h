/* SPDX-License-Identifier: MIT */
/* descriptors.h - checks that a target leaves no descriptor open. */
#ifndef FUZZ_DESCRIPTORS_H
#define FUZZ_DESCRIPTORS_H

#include <fcntl.h>

#include "fuzz.h"

#define DESCRIPTORS_MAX 256

static inline unsigned open_descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < DESCRIPTORS_MAX; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

#endif
