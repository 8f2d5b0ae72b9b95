/* SPDX-License-Identifier: MIT */
/* release.h - returns memory to the kernel, which takes time for large mappings. */
#ifndef NC_RELEASE_H
#define NC_RELEASE_H

#include <stddef.h>

/* A mapping, perhaps a second one of the same size, and the descriptor of both; NULL, -1: none. */
struct nc_release {
	void *base, *second;
	size_t size;
	int fd;
};

/*
 * Unmaps and closes.  The caller, which may be an event loop or have locks, does not wait for more
 * than NC_RELEASE_HERE bytes: a thread does the rest.
 */
void nc_release(const struct nc_release *release);

/* Unmaps and closes before it returns. */
void nc_release_here(const struct nc_release *release);

#define NC_RELEASE_HERE ((size_t)64 << 20) /* takes about 10 ms */

#endif
