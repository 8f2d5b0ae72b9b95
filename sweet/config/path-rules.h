/* SPDX-License-Identifier: MIT */
/*
 * path-rules.h - finds the scope of a path: an exact path comes first, then the host's patterns in
 * the order of the file, then the longest prefix.
 *
 * What a pattern sets is added to what the prefix says, so that a pattern cannot lead around a
 * prefix's access rules.
 */
#ifndef SWEET_PATH_RULES_H
#define SWEET_PATH_RULES_H

/* Of one thread: decisions are remembered, since they depend on host and path alone. */
struct path_memory;
struct host;
struct path_captures;
struct path_rule;

/* NULL without memory. */
struct path_memory *path_memory_new(void);
void path_memory_free(struct path_memory *memory);

/*
 * Returns the scope of a path and the groups of its pattern, if it has one.  NULL: a pattern
 * backtracks too much for it, or without memory; *rule is the pattern, or NULL.  *memory is made
 * when it is first needed; generation: of the host's configuration, not 0, other than that of each
 * one before.
 */
const struct scope *path_rules_find(unsigned generation, const struct host *host, const char *path,
				    struct path_memory **memory, struct path_captures *captures,
				    const struct path_rule **rule);

#endif
