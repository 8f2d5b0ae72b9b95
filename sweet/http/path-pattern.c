/* SPDX-License-Identifier: MIT */
/*
 * path-pattern.c - see path-pattern.h.
 *
 * PCRE2 translates an expression to machine code if the process may have memory that is writable
 * and executable, else it interprets it; the results are the same.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <glib.h>
#include <pcre2.h>

#include "http/path-pattern.h"

/* About a millisecond of backtracking, and 1 MB of it. */
#define MATCH_LIMIT 50000u
#define HEAP_LIMIT 1024u /* KiB */

struct path_pattern {
	pcre2_code *code;
	pcre2_match_context *limits; /* constant */
	unsigned groups;
};

struct path_pattern_memory {
	pcre2_match_data *data;
};

static void explain(int error, size_t at, char **why)
{
	PCRE2_UCHAR text[256];

	if (pcre2_get_error_message(error, text, sizeof(text)) < 0)
		text[0] = '\0';
	*why = g_strdup_printf("%s, at character %zu", (const char *)text, at);
}

struct path_pattern *path_pattern_compile(const char *expression, char **why)
{
	struct path_pattern *pattern = g_new0(struct path_pattern, 1);
	uint32_t groups = 0;
	PCRE2_SIZE at;
	int error;

	*why = NULL;
	/* Bytes, as paths are. */
	pattern->code = pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED,
				      PCRE2_DOLLAR_ENDONLY, &error, &at, NULL);
	pattern->limits = pcre2_match_context_create(NULL);
	if (!pattern->code || !pattern->limits) {
		if (!pattern->code)
			explain(error, (size_t)at, why);
		path_pattern_free(pattern);
		return NULL;
	}
	(void)pcre2_set_match_limit(pattern->limits, MATCH_LIMIT);
	(void)pcre2_set_heap_limit(pattern->limits, HEAP_LIMIT);
	(void)pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE);
	(void)pcre2_pattern_info(pattern->code, PCRE2_INFO_CAPTURECOUNT, &groups);
	pattern->groups = groups < PATH_CAPTURES_MAX ? groups : PATH_CAPTURES_MAX - 1;
	return pattern;
}

void path_pattern_free(struct path_pattern *pattern)
{
	if (!pattern)
		return;
	pcre2_match_context_free(pattern->limits);
	pcre2_code_free(pattern->code);
	g_free(pattern);
}

unsigned path_pattern_groups(const struct path_pattern *pattern)
{
	return pattern->groups;
}

struct path_pattern_memory *path_pattern_memory_new(void)
{
	struct path_pattern_memory *memory = g_new0(struct path_pattern_memory, 1);

	memory->data = pcre2_match_data_create(PATH_CAPTURES_MAX, NULL);
	if (memory->data)
		return memory;
	g_free(memory);
	return NULL;
}

void path_pattern_memory_free(struct path_pattern_memory *memory)
{
	if (!memory)
		return;
	pcre2_match_data_free(memory->data);
	g_free(memory);
}

enum path_match path_pattern_match(const struct path_pattern *pattern,
				   struct path_pattern_memory *memory, struct slice path,
				   struct path_captures *captures)
{
	int count = pcre2_match(pattern->code, (PCRE2_SPTR)path.at, path.length, 0,
				PCRE2_NO_UTF_CHECK, memory->data, pattern->limits);
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(memory->data);

	if (count == PCRE2_ERROR_NOMATCH)
		return PATH_DIFFERS;
	if (count < 0)
		return PATH_TOO_HARD;
	/* 0: there are more groups than can be used. */
	captures->count = count ? (unsigned)count : PATH_CAPTURES_MAX;
	for (unsigned i = 0; i < captures->count; i++) {
		bool takes_part = at[2 * i] != PCRE2_UNSET;

		captures->from[i] = takes_part ? (uint16_t)at[2 * i] : 0;
		captures->to[i] = takes_part ? (uint16_t)at[2 * i + 1] : 0;
	}
	return PATH_MATCHES;
}

struct slice path_capture(const struct path_captures *captures, const char *path, unsigned group)
{
	if (group >= captures->count || captures->to[group] < captures->from[group])
		return (struct slice){"", 0};
	return (struct slice){path + captures->from[group],
			      (size_t)(captures->to[group] - captures->from[group])};
}
