/* SPDX-License-Identifier: MIT */
/*
 * path-pattern.h - regular expressions for paths (PCRE2), whose time is limited.
 *
 * A pattern is constant: any thread may match it, each with a memory of its own.
 */
#ifndef SWEET_PATH_PATTERN_H
#define SWEET_PATH_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define PATH_CAPTURES_MAX 10u /* the whole match, and nine groups */

struct path_pattern;
struct path_pattern_memory;

/* Byte offsets in the path; of a group that does not take part, both are 0. */
struct path_captures {
	unsigned count; /* 0: no pattern has matched */
	uint16_t from[PATH_CAPTURES_MAX], to[PATH_CAPTURES_MAX];
};

/* Returns NULL without memory, or with *why (g_free()) if the expression is invalid. */
struct path_pattern *path_pattern_compile(const char *expression, char **why);
void path_pattern_free(struct path_pattern *pattern);

/* Returns the number of groups that a match has, at most PATH_CAPTURES_MAX - 1. */
unsigned path_pattern_groups(const struct path_pattern *pattern);

/* NULL without memory. */
struct path_pattern_memory *path_pattern_memory_new(void);
void path_pattern_memory_free(struct path_pattern_memory *memory);

enum path_match {
	PATH_DIFFERS,
	PATH_MATCHES,  /* sets captures */
	PATH_TOO_HARD, /* it was ended: the expression backtracks too much for this path */
	PATH_NOT_NOW   /* the same, perhaps: many paths were hard in this second */
};

#define PATH_HARD_TRIES 50u /* paths in a second that a thread gives all steps */

/*
 * path: at most 65535 bytes.  It gets few steps for each byte, which suffice for most expressions, and
 * then, if it is one of few in this second, all of them.
 */
enum path_match path_pattern_match(const struct path_pattern *pattern,
				   struct path_pattern_memory *memory, struct slice path,
				   struct path_captures *captures);

/* Returns the bytes of a group; empty if it does not exist. */
struct slice path_capture(const struct path_captures *captures, const char *path, unsigned group);

#endif
