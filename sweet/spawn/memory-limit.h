/* SPDX-License-Identifier: MIT */
/*
 * memory-limit.h - how much memory this process may have: the least of what the
 * machine has and what its control groups allow, those around them included
 * (version 1 and 2).  The default of cache-size follows it.
 */
#ifndef SWEET_MEMORY_LIMIT_H
#define SWEET_MEMORY_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#define MEMORY_LIMIT_CACHE_MOST ((uint64_t)256 << 20) /* bytes of a cache by default */

#define MEMORY_TEXT_MAX 32

struct memory_limit {
	uint64_t bytes; /* UINT64_MAX: not known */
	char what[512]; /* sets it, for messages: "this machine", or a cgroup's file */
};

/* Reads /proc and /sys/fs/cgroup; root stands in front of their names: "", but in tests. */
void memory_limit_find(struct memory_limit *limit, const char *root);

/*
 * The size of a cache that leaves room for all else: programs, sockets, heads and
 * bodies on their way.
 */
size_t memory_limit_cache(const struct memory_limit *limit);

/* "128M", rounded down; returns text. */
const char *memory_text(uint64_t bytes, char text[MEMORY_TEXT_MAX]);

#endif
