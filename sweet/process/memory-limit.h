/* SPDX-License-Identifier: MIT */
/*
 * memory-limit.h - how much memory this process may use: the minimum of the
 * machine's memory and the limits of its control groups and of those around them
 * (version 1 and 2).  The defaults of cache-size and max-connections depend on it.
 */
#ifndef SWEET_MEMORY_LIMIT_H
#define SWEET_MEMORY_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#define MEMORY_LIMIT_CACHE_MOST ((uint64_t)256 << 20) /* default maximum of a cache in bytes */

#define MEMORY_LIMIT_CONNECTION ((uint64_t)64 << 10) /* bytes of one that is in use */
#define MEMORY_LIMIT_CONNECTIONS_MOST 1000000u

#define MEMORY_TEXT_MAX 32

struct memory_limit {
	uint64_t bytes; /* UINT64_MAX: unknown */
	char what[512]; /* the source of the limit: "this machine", or a cgroup's file */
};

/* Reads /proc and /sys/fs/cgroup; root is a prefix of their names: "" except in tests. */
void memory_limit_find(struct memory_limit *limit, const char *root);

/*
 * Returns a cache size that leaves enough memory for everything else: programs,
 * sockets, heads and bodies in flight.
 */
size_t memory_limit_cache(const struct memory_limit *limit);

/* Returns how many connections take half of the memory if each is in use. */
unsigned memory_limit_connections(const struct memory_limit *limit);

/* Writes "128M", rounded down; returns text. */
const char *memory_text(uint64_t bytes, char text[MEMORY_TEXT_MAX]);

#endif
