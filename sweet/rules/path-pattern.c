/* SPDX-License-Identifier: MIT */
/*
 * path-pattern.c - see path-pattern.h.
 *
 * PCRE2 translates an expression to machine code if the process may have memory that is writable
 * and executable, else it interprets it.  Paths for which the stack of the machine code, 32 KB, is
 * too small are interpreted, too: a path that matches without it matches with it.
 *
 * Most expressions begin with '^' and some text: paths without that text need no call of PCRE2,
 * which costs ten times as much as the comparison.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <glib.h>
#include <pcre2.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/slice.h"
#include "rules/path-pattern.h"

#define SECOND_NS UINT64_C(1000000000)

/* About a millisecond of backtracking, and 1 MB of it. */
#define MATCH_LIMIT 50000u
/* Of paths that clients make hard, of which each is another: what these may cost with each request. */
#define QUICK_LIMIT(length) (1000u + (uint32_t)(length))
#define HEAP_LIMIT 1024u /* KiB */

struct path_pattern {
	pcre2_code *code;
	unsigned groups;
	char *begin; /* bytes that all paths begin with */
	size_t begin_length;
};

struct path_pattern_memory {
	pcre2_match_data *data;
	pcre2_match_context *limits;
	uint64_t since_ns; /* when the second of these tries began */
	unsigned tries;
};

static void explain(int error, size_t at, char **why)
{
	PCRE2_UCHAR text[256];

	if (pcre2_get_error_message(error, text, sizeof(text)) < 0)
		text[0] = '\0';
	*why = g_strdup_printf("%s, at character %zu", (const char *)text, at);
}

/* Returns what follows a class of characters. */
static const char *skip_class(const char *at)
{
	at++;
	if (*at == '^')
		at++;
	if (*at == ']')
		at++;
	for (; *at && *at != ']'; at++)
		if (*at == '\\' && at[1])
			at++;
	return *at ? at + 1 : at;
}

/*
 * Whether the expression has no alternative beside the one that it begins with; false also for
 * what is rarely used: options, comments, quoted text.
 */
static bool is_single(const char *at)
{
	unsigned depth = 0;

	while (*at) {
		if (*at == '[') {
			at = skip_class(at);
			continue;
		}
		if ((*at == '(' && (at[1] == '*' || (at[1] == '?' && at[2] != ':'))) ||
		    (*at == '\\' && (at[1] == 'Q' || !at[1])) || (*at == '|' && depth == 0))
			return false;
		if (*at == '\\')
			at++;
		else if (*at == '(')
			depth++;
		else if (*at == ')')
			depth--;
		at++;
	}
	return true;
}

/* Finds the text that follows '^'. */
static void find_begin(struct path_pattern *pattern, const char *expression)
{
	GString *text = g_string_new(NULL);
	const char *at = expression + 1;

	if (expression[0] == '^' && is_single(expression)) {
		while (*at && !strchr("^$.[|()?*+{", *at)) {
			if (*at == '\\' && g_ascii_isalnum(*++at))
				break;
			g_string_append_c(text, *at++);
		}
		/* It is repeated, or may be missing. */
		if (text->len && *at && strchr("?*+{", *at))
			g_string_truncate(text, text->len - 1);
	}
	pattern->begin_length = text->len;
	pattern->begin = g_string_free(text, FALSE);
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
	if (!pattern->code) {
		explain(error, (size_t)at, why);
		path_pattern_free(pattern);
		return NULL;
	}
	(void)pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE);
	(void)pcre2_pattern_info(pattern->code, PCRE2_INFO_CAPTURECOUNT, &groups);
	find_begin(pattern, expression);
	pattern->groups = groups < PATH_CAPTURES_MAX ? groups : PATH_CAPTURES_MAX - 1;
	return pattern;
}

void path_pattern_free(struct path_pattern *pattern)
{
	if (!pattern)
		return;
	pcre2_code_free(pattern->code);
	g_free(pattern->begin);
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
	memory->limits = pcre2_match_context_create(NULL);
	if (memory->data && memory->limits) {
		(void)pcre2_set_heap_limit(memory->limits, HEAP_LIMIT);
		return memory;
	}
	path_pattern_memory_free(memory);
	return NULL;
}

void path_pattern_memory_free(struct path_pattern_memory *memory)
{
	if (!memory)
		return;
	pcre2_match_data_free(memory->data);
	pcre2_match_context_free(memory->limits);
	g_free(memory);
}

/* Matches within that many steps. */
static int match(const struct path_pattern *pattern, const struct path_pattern_memory *memory,
		 struct slice path, uint32_t steps)
{
	PCRE2_SPTR text = (PCRE2_SPTR)path.at;
	int count;

	(void)pcre2_set_match_limit(memory->limits, steps);
	count = pcre2_match(pattern->code, text, path.length, 0, PCRE2_NO_UTF_CHECK, memory->data,
			    memory->limits);
	if (count == PCRE2_ERROR_JIT_STACKLIMIT)
		count = pcre2_match(pattern->code, text, path.length, 0,
				    PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, memory->data,
				    memory->limits);
	return count;
}

static bool may_try(struct path_pattern_memory *memory)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (now_ns - memory->since_ns >= SECOND_NS) {
		memory->since_ns = now_ns;
		memory->tries = 0;
	}
	return memory->tries++ < PATH_HARD_TRIES;
}

enum path_match path_pattern_match(const struct path_pattern *pattern,
				   struct path_pattern_memory *memory, struct slice path,
				   struct path_captures *captures)
{
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(memory->data);
	int count;

	if (path.length < pattern->begin_length ||
	    memcmp(path.at, pattern->begin, pattern->begin_length) != 0)
		return PATH_DIFFERS;
	count = match(pattern, memory, path, QUICK_LIMIT(path.length));
	if (count == PCRE2_ERROR_MATCHLIMIT) {
		if (!may_try(memory))
			return PATH_NOT_NOW;
		count = match(pattern, memory, path, MATCH_LIMIT);
	}
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
