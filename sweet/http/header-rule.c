/* SPDX-License-Identifier: MIT */
/*
 * header-rule.c - see header-rule.h.  Rules are only read after they were parsed: any thread may
 * apply them.
 */
#include <glib.h>

#include "base/syntax.h"
#include "http/header-rule.h"

/* The statuses of responses that have what the client asked for, or say where it is. */
static bool is_usual(int status)
{
	switch (status) {
	case 200:
	case 201:
	case 204:
	case 206:
	case 301:
	case 302:
	case 303:
	case 304:
	case 307:
	case 308:
		return true;
	default:
		return false;
	}
}

/* The server, or another key, decides about these. */
static bool is_own(const char *name)
{
	static const struct slice names[] = {
		SLICE_OF("Connection"),
		SLICE_OF("Content-Length"),
		SLICE_OF("Content-Range"),
		SLICE_OF("Content-Type"),
		SLICE_OF("Date"),
		SLICE_OF("Keep-Alive"),
		SLICE_OF("Server"),
		SLICE_OF("TE"),
		SLICE_OF("Trailer"),
		SLICE_OF("Upgrade"),
		SLICE_OF("Transfer-Encoding"),
		SLICE_OF("Status"),
		SLICE_OF("X-NABC-Cache-Id"),
	};

	return slice_is_one_of((struct slice){name, strlen(name)}, names, G_N_ELEMENTS(names));
}

static const char *parse_line(struct header_rule *rule, const char *text, size_t length)
{
	const char *value = text + length;
	char *trimmed;

	if (rule->kind == HEADER_REMOVE)
		return *value ? "must be -NAME, without a value" : NULL;
	if (*value != ':')
		return "must be NAME: VALUE, +NAME: VALUE or -NAME";
	for (value++; *value == ' '; value++)
		;
	for (const char *at = value; *at; at++)
		if (!syntax_is_value(*at))
			return "must have a value without control characters";
	trimmed = g_strchomp(g_strdup(value));
	rule->line = g_strdup_printf("%s: %s\r\n", rule->name, trimmed);
	rule->length = strlen(rule->line);
	g_free(trimmed);
	return NULL;
}

const char *header_rule_parse(struct header_rule *rule, const char *text)
{
	static const char always[] = "always ";
	size_t length = 0;

	*rule = (struct header_rule){.always = g_str_has_prefix(text, always)};
	if (rule->always)
		text += sizeof(always) - 1;
	rule->kind = *text == '+' ? HEADER_ADD : *text == '-' ? HEADER_REMOVE : HEADER_SET;
	if (rule->kind != HEADER_SET)
		text++;
	while (syntax_is_token(text[length]))
		length++;
	if (length == 0)
		return "must be NAME: VALUE, +NAME: VALUE or -NAME";
	rule->name = g_strndup(text, length);
	if (is_own(rule->name))
		return "must be another field: the server, or another key, decides about this one";
	return parse_line(rule, text, length);
}

void header_rule_free(struct header_rule *rule)
{
	g_free(rule->name);
	g_free(rule->line);
}

/* Whether a rule takes away the lines with that name. */
static bool is_taken(const struct header_rule *rules, unsigned count, bool usual, struct slice name)
{
	for (unsigned i = 0; i < count; i++)
		if (rules[i].kind != HEADER_ADD && (usual || rules[i].always) &&
		    slice_is(name, rules[i].name))
			return true;
	return false;
}

size_t header_rules_apply(const struct header_rule *rules, unsigned count, int status,
			  struct slice lines, char *out)
{
	const char *end = lines.at + lines.length, *line = lines.at;
	bool usual = is_usual(status);
	char *at = out;

	while (line < end) {
		const char *next = memchr(line, '\n', (size_t)(end - line));
		const char *colon;
		size_t length;

		next = next ? next + 1 : end;
		length = (size_t)(next - line);
		colon = memchr(line, ':', length);
		if (!colon ||
		    !is_taken(rules, count, usual, (struct slice){line, (size_t)(colon - line)})) {
			memcpy(at, line, length);
			at += length;
		}
		line = next;
	}
	for (unsigned i = 0; i < count; i++) {
		if (!rules[i].line || !(usual || rules[i].always))
			continue;
		memcpy(at, rules[i].line, rules[i].length);
		at += rules[i].length;
	}
	return (size_t)(at - out);
}
