/* SPDX-License-Identifier: MIT */
/*
 * path-rules.c - see path-rules.h.
 *
 * The memory is a table with one entry for each hash: a path that has the hash of another one
 * replaces it, so that clients cannot make it grow.
 */
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"
#include "config/configuration.h"
#include "config/path-rules.h"
#include "rules/path-pattern.h"

#define PATHS 256u	    /* a power of 2 */
#define REMEMBERED_MAX 184u /* bytes; longer paths are not remembered */

struct remembered_path {
	const struct host *host;
	const struct scope *scope; /* NULL: the rule's pattern is too hard for the path */
	const struct path_rule *rule;
	struct path_captures captures;
	uint16_t length;
	char path[REMEMBERED_MAX];
};

struct path_memory {
	struct path_pattern_memory *matching;
	unsigned generation; /* whose hosts and scopes these are */
	struct remembered_path paths[PATHS];
};

struct path_memory *path_memory_new(void)
{
	struct path_memory *memory = g_new0(struct path_memory, 1);

	memory->matching = path_pattern_memory_new();
	if (memory->matching)
		return memory;
	g_free(memory);
	return NULL;
}

void path_memory_free(struct path_memory *memory)
{
	if (!memory)
		return;
	path_pattern_memory_free(memory->matching);
	g_free(memory);
}

static struct remembered_path *path_entry(struct path_memory *memory, unsigned generation,
					  const char *path)
{
	if (memory->generation != generation) {
		memset(memory->paths, 0, sizeof(memory->paths));
		memory->generation = generation;
	}
	return &memory->paths[g_str_hash(path) % PATHS];
}

static bool is_of(const struct remembered_path *entry, const struct host *host, const char *path,
		  size_t length)
{
	return entry->host == host && entry->length == length &&
	       memcmp(entry->path, path, length) == 0;
}

/*
 * Returns the scope of the first pattern that matches a path of that prefix.  NULL: *known says whether
 * it is the same for the path at each time.
 */
static const struct scope *find_pattern(const struct host *host, const struct scope *prefix,
					struct path_memory *memory, struct slice path,
					struct path_captures *captures,
					const struct path_rule **rule, bool *known)
{
	for (unsigned i = 0; i < prefix->pattern_count; i++) {
		const struct scope *scope = &host->scopes[prefix->first_pattern + i];

		enum path_match found =
			path_pattern_match(scope->rule->pattern, memory->matching, path, captures);

		switch (found) {
		case PATH_MATCHES:
			return scope;
		case PATH_TOO_HARD:
		case PATH_NOT_NOW:
			*rule = scope->rule;
			*known = found == PATH_TOO_HARD;
			return NULL;
		default:
			break;
		}
	}
	return prefix;
}

const struct scope *path_rules_find(unsigned generation, const struct host *host, const char *path,
				    struct path_memory **memory, struct path_captures *captures,
				    const struct path_rule **rule)
{
	gpointer exact = host->exact ? g_hash_table_lookup(host->exact, path) : NULL;
	struct slice text = {path, strlen(path)};
	const struct scope *scope;
	struct remembered_path *entry;
	bool known = true;

	captures->count = 0;
	*rule = NULL;
	if (exact)
		return &host->scopes[GPOINTER_TO_UINT(exact) - 1];
	if (!host->rule_count)
		return host_scope(host, path);
	if (!*memory)
		*memory = path_memory_new();
	if (!*memory)
		return NULL;
	entry = path_entry(*memory, generation, path);
	if (is_of(entry, host, path, text.length)) {
		*captures = entry->captures;
		*rule = entry->rule;
		return entry->scope;
	}
	scope = find_pattern(host, host_scope(host, path), *memory, text, captures, rule, &known);
	if (known && text.length <= REMEMBERED_MAX) {
		*entry = (struct remembered_path){.host = host,
						  .scope = scope,
						  .rule = *rule,
						  .captures = *captures,
						  .length = (uint16_t)text.length};
		memcpy(entry->path, path, text.length);
	}
	return scope;
}
