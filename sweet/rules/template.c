/* SPDX-License-Identifier: MIT */
/*
 * template.c - see template.h.
 */
#include <string.h>

#include "base/syntax.h"
#include "rules/template.h"
#include "http/uri.h"

struct part {
	char *text; /* constant; of TEMPLATE_MAP, the table's name */
	enum template_variable variable;
	unsigned number;
	bool is_variable;
};

struct template
{
	struct part *parts;
	unsigned count;
};

static const char *const names[TEMPLATE_VARIABLES] = {
	[TEMPLATE_CAPTURE] = "0 to 9", [TEMPLATE_CLIENT] = "client",
	[TEMPLATE_HOST] = "host",      [TEMPLATE_MAP] = "map:NAME",
	[TEMPLATE_METHOD] = "method",  [TEMPLATE_PATH] = "path",
	[TEMPLATE_QUERY] = "query",    [TEMPLATE_REQUEST_ID] = "request-id",
	[TEMPLATE_SCHEME] = "scheme",  [TEMPLATE_SUBJECT] = "subject",
	[TEMPLATE_USER] = "user",
};

/* The message lasts: a server reads few configurations. */
static const char *unknown(const char *name, unsigned permitted)
{
	GString *must = g_string_new(NULL);
	const char *joint = "", *lasting;

	g_string_printf(must, "has an unknown variable {%s}: there are ", name);
	for (unsigned i = 0; i < TEMPLATE_VARIABLES; i++)
		if (permitted & 1u << i) {
			g_string_append_printf(must, "%s%s", joint, names[i]);
			joint = ", ";
		}
	lasting = g_intern_string(must->str);
	g_string_free(must, TRUE);
	return lasting;
}

/* Returns false if there is no such variable. */
static bool read_variable(struct part *part, const char *name, unsigned permitted)
{
	static const char map[] = "map:";
	bool found = false;

	part->is_variable = true;
	if (g_ascii_isdigit(name[0]) && !name[1]) {
		part->variable = TEMPLATE_CAPTURE;
		part->number = (unsigned)(name[0] - '0');
		found = true;
	} else if (g_str_has_prefix(name, map) && name[sizeof(map) - 1]) {
		part->variable = TEMPLATE_MAP;
		part->text = g_strdup(name + sizeof(map) - 1);
		found = true;
	}
	for (unsigned i = 0; i < TEMPLATE_VARIABLES && !found; i++)
		if (i != TEMPLATE_CAPTURE && i != TEMPLATE_MAP && strcmp(names[i], name) == 0) {
			part->variable = (enum template_variable)i;
			found = true;
		}
	return found && permitted & 1u << part->variable;
}

static struct part *add_part(struct template *template)
{
	template->parts = g_renew(struct part, template->parts, template->count + 1);
	template->parts[template->count] = (struct part){0};
	return &template->parts[template->count++];
}

static void add_text(struct template *template, GString *text)
{
	if (text->len)
		add_part(template)->text = g_strdup(text->str);
	g_string_truncate(text, 0);
}

/* Reads the variable behind a brace; returns what follows it, or NULL with *must set. */
static const char *add_variable(struct template *template, const char *text, unsigned permitted,
				const char **must)
{
	const char *end = strchr(text, '}');
	char *name;
	bool good;

	if (!end) {
		*must = "must close the brace of a variable; {{ is a brace";
		return NULL;
	}
	name = g_strndup(text, (gsize)(end - text));
	good = read_variable(add_part(template), name, permitted);
	if (!good)
		*must = unknown(name, permitted);
	g_free(name);
	return good ? end + 1 : NULL;
}

struct template *template_compile(const char *text, unsigned permitted, const char **must)
{
	struct template *template = g_new0(struct template, 1);
	GString *plain = g_string_new(NULL);

	*must = NULL;
	while (text && *text) {
		if (*text != '{' || (text[1] != '{' && !g_ascii_isalnum(text[1]))) {
			g_string_append_c(plain, *text++);
		} else if (text[1] == '{') {
			g_string_append_c(plain, '{');
			text += 2;
		} else {
			add_text(template, plain);
			text = add_variable(template, text + 1, permitted, must);
		}
	}
	add_text(template, plain);
	g_string_free(plain, TRUE);
	if (!*must)
		return template;
	template_free(template);
	return NULL;
}

void template_free(struct template *template)
{
	if (!template)
		return;
	for (unsigned i = 0; i < template->count; i++)
		g_free(template->parts[i].text);
	g_free(template->parts);
	g_free(template);
}

bool template_is_constant(const struct template *template)
{
	for (unsigned i = 0; i < template->count; i++)
		if (template->parts[i].is_variable)
			return false;
	return true;
}

bool template_uses(const struct template *template, enum template_variable variable)
{
	for (unsigned i = 0; i < template->count; i++)
		if (template->parts[i].is_variable && template->parts[i].variable == variable)
			return true;
	return false;
}

int template_last_capture(const struct template *template)
{
	int last = -1;

	for (unsigned i = 0; i < template->count; i++) {
		const struct part *part = &template->parts[i];

		if (part->is_variable && part->variable == TEMPLATE_CAPTURE)
			last = MAX(last, (int)part->number);
	}
	return last;
}

const char *template_each_map(const struct template *template,
			      const char *(*visit)(void *context, const char *name), void *context,
			      const char **name)
{
	const char *must = NULL;

	for (unsigned i = 0; i < template->count && !must; i++) {
		const struct part *part = &template->parts[i];

		if (part->is_variable && part->variable == TEMPLATE_MAP) {
			*name = part->text;
			must = visit(context, part->text);
		}
	}
	return must;
}

static bool is_unreserved(unsigned char byte)
{
	return g_ascii_isalnum(byte) || (byte && strchr("-._~", byte));
}

static void append(GString *out, struct slice value, enum template_escape escape)
{
	for (size_t i = 0; i < value.length; i++) {
		char byte = value.at[i], escaped[3];

		if (escape == TEMPLATE_URI_PATH)
			g_string_append_len(out, escaped, (gssize)uri_escape(byte, escaped));
		else if (escape == TEMPLATE_URI_QUERY && !is_unreserved((unsigned char)byte))
			g_string_append_printf(out, "%%%02X", (unsigned char)byte);
		else
			g_string_append_c(out, escape == TEMPLATE_FIELD && !syntax_is_value(byte)
						       ? '?'
						       : byte);
	}
}

void template_expand(const struct template *template, enum template_escape escape,
		     template_value *value, const void *context, GString *out)
{
	for (unsigned i = 0; i < template->count; i++) {
		const struct part *part = &template->parts[i];
		struct slice text;

		if (!part->is_variable) {
			g_string_append(out, part->text);
			if (escape == TEMPLATE_URI_PATH && strchr(part->text, '?'))
				escape = TEMPLATE_URI_QUERY;
			continue;
		}
		text = value(context, part->variable, part->number, part->text);
		/* The client, or the operator, has escaped it as a whole. */
		if ((part->variable == TEMPLATE_QUERY || part->variable == TEMPLATE_MAP) &&
		    escape != TEMPLATE_FIELD)
			append(out, text, TEMPLATE_PLAIN);
		else
			append(out, text, escape);
	}
}
