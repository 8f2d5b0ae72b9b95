/* SPDX-License-Identifier: MIT */
/*
 * header-rule.c - see header-rule.h.  Rules are only read after they were parsed: any thread may
 * apply them.
 */
#include <glib.h>
#include <string.h>

#include "base/slice.h"
#include "base/syntax.h"
#include "http/fields.h"
#include "rules/header-rule.h"

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

static const char *set_value(struct header_rule *rule, const char *text)
{
	unsigned permitted = (1u << TEMPLATE_VARIABLES) - 1;
	const char *must;

	rule->value = template_compile(text, permitted, &must);
	if (!rule->value)
		return must;
	if (template_is_constant(rule->value)) {
		GString *line = g_string_new(NULL);

		g_string_printf(line, "%s: ", rule->name);
		template_expand(rule->value, TEMPLATE_FIELD, NULL, NULL, line);
		g_string_append(line, "\r\n");
		rule->length = line->len;
		rule->line = g_string_free(line, FALSE);
		(void)field_next(&(struct slice){rule->line, rule->length}, &rule->field);
		g_clear_pointer(&rule->value, template_free);
	}
	return NULL;
}

static const char *parse_line(struct header_rule *rule, const char *text, size_t length)
{
	const char *value = text + length, *must;
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
	must = set_value(rule, trimmed);
	g_free(trimmed);
	return must;
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
	rule->id = field_id((struct slice){text, length});
	if (is_own(rule->name))
		return "must be another field: the server, or another key, decides about this one";
	return parse_line(rule, text, length);
}

void header_rule_free(struct header_rule *rule)
{
	g_free(rule->name);
	g_free(rule->line);
	template_free(rule->value);
}

char *header_rules_expand(const struct header_rule *rules, unsigned count, template_value *value,
			  const void *context, bool *fits)
{
	GString *text = g_string_new(NULL);
	size_t constant = 0;

	for (unsigned i = 0; i < count; i++) {
		constant += rules[i].length;
		if (!rules[i].value)
			continue;
		g_string_append_printf(text, "%s: ", rules[i].name);
		template_expand(rules[i].value, TEMPLATE_FIELD, value, context, text);
		g_string_append(text, "\r\n");
		g_string_append_c(text, '\0');
	}
	*fits = text->len + constant <= HEADER_RULES_MAX;
	if (*fits && text->len)
		return g_string_free(text, FALSE);
	g_string_free(text, TRUE);
	return NULL;
}

/* Returns the field that a rule adds; without a name: none. */
static struct field field_of_rule(const struct header_rule *rule, const char **expanded)
{
	struct field field = rule->field;
	struct slice line;

	if (!rule->value || !*expanded)
		return field;
	line = (struct slice){*expanded, strlen(*expanded)};
	*expanded += line.length + 1;
	(void)field_next(&line, &field);
	return field;
}

void header_rules_apply(const struct header_rule *rules, unsigned count, const char *expanded,
			int status, struct fields *fields)
{
	bool usual = is_usual(status);

	for (unsigned i = 0; i < count; i++)
		if (rules[i].kind != HEADER_ADD && (usual || rules[i].always))
			fields_remove_name(fields, rules[i].id,
					   (struct slice){rules[i].name, strlen(rules[i].name)});
	for (unsigned i = 0; i < count; i++) {
		struct field field = field_of_rule(&rules[i], &expanded);

		if (field.name.length && (usual || rules[i].always))
			fields_add(fields, field);
	}
}
