/* SPDX-License-Identifier: MIT */
/*
 * request-rule.c - see request-rule.h.  Rules are only read after they were parsed: any thread may
 * apply them.
 *
 * The changed request has a head of its own, because others copy or parse that instead of the
 * fields: what a rule removes must be in neither.
 */
#include <glib.h>
#include <string.h>

#include "base/slice.h"
#include "base/syntax.h"
#include "http/field.h"
#include "http/request.h"
#include "rules/request-rule.h"

/* The server, or another key, decides about these; they frame the request, or name its host. */
static bool is_own(struct slice name)
{
	static const struct slice names[] = {
		SLICE_OF("Connection"),
		SLICE_OF("Content-Length"),
		SLICE_OF("Expect"),
		SLICE_OF("Forwarded"),
		SLICE_OF("Host"),
		SLICE_OF("HTTP2-Settings"),
		SLICE_OF("Keep-Alive"),
		SLICE_OF("Proxy"),
		SLICE_OF("TE"),
		SLICE_OF("Trailer"),
		SLICE_OF("Transfer-Encoding"),
		SLICE_OF("Upgrade"),
		SLICE_OF("X-Forwarded-For"),
		SLICE_OF("X-Forwarded-Host"),
		SLICE_OF("X-Forwarded-Proto"),
		SLICE_OF("X-Request-Id"),
		SLICE_OF("traceparent"),
		SLICE_OF("tracestate"),
	};

	return slice_is_one_of(name, names, G_N_ELEMENTS(names));
}

static const char *parse_value(struct request_rule *rule, const char *text)
{
	unsigned permitted = (1u << TEMPLATE_VARIABLES) - 1;
	const char *must;
	char *trimmed;

	for (const char *at = text; *at; at++)
		if (!syntax_is_value(*at))
			return "must have a value without control characters";
	trimmed = g_strstrip(g_strdup(text));
	rule->value = *trimmed ? template_compile(trimmed, permitted, &must) : NULL;
	if (!*trimmed)
		must = "must have a value; to remove the field, it is -NAME";
	g_free(trimmed);
	return rule->value ? NULL : must;
}

const char *request_rule_parse(struct request_rule *rule, const char *text)
{
	bool removes = *text == '-';
	struct slice name;

	*rule = (struct request_rule){0};
	text += removes;
	name = (struct slice){text, strcspn(text, ":")};
	/* Another name reaches no program; see field_is_ambiguous(). */
	if (name.length == 0 || text[0] == '-' || field_is_ambiguous(name) ||
	    text[name.length] != (removes ? '\0' : ':'))
		return "must be NAME: VALUE or -NAME, with letters, digits and - in the name";
	if (is_own(name))
		return "must be another field: the server, or another key, decides about this one";
	rule->name = g_strndup(name.at, name.length);
	return removes ? NULL : parse_value(rule, text + name.length + 1);
}

void request_rule_free(struct request_rule *rule)
{
	g_free(rule->name);
	template_free(rule->value);
}

bool request_rules_have(struct request_rules rules, struct slice name)
{
	for (unsigned i = 0; i < rules.count; i++)
		if (slice_is(name, rules.rules[i].name))
			return true;
	return false;
}

static void put_line(GString *head, struct slice name, struct slice value)
{
	g_string_append_len(head, name.at, (gssize)name.length);
	g_string_append(head, ": ");
	g_string_append_len(head, value.at, (gssize)value.length);
	g_string_append(head, "\r\n");
}

/* Adds the line of a rule, unless its value is empty. */
static void put_rule(GString *head, const struct request_rule *rule, template_value *value,
		     const void *context)
{
	GString *text = g_string_new(NULL);

	template_expand(rule->value, TEMPLATE_FIELD, value, context, text);
	g_strstrip(text->str);
	if (*text->str)
		g_string_append_printf(head, "%s: %s\r\n", rule->name, text->str);
	g_string_free(text, TRUE);
}

/* The client's line, and its fields that no rule names. */
static void put_request(GString *head, struct request_rules rules, const struct request *request)
{
	g_string_append_len(head, request->method_name.at, (gssize)request->method_name.length);
	g_string_append_c(head, ' ');
	g_string_append_len(head, request->target.at, (gssize)request->target.length);
	g_string_append_printf(head, " HTTP/1.%u\r\n", request->minor);
	for (unsigned i = 0; i < request->header_count; i++)
		if (!request_rules_have(rules, request->headers[i].name))
			put_line(head, request->headers[i].name, request->headers[i].value);
}

char *request_rules_apply(struct request_rules rules, const struct request *request,
			  template_value *value, const void *context, struct request *changed)
{
	GString *head = g_string_sized_new(request->head.length + REQUEST_RULES_MAX);
	bool fits;
	size_t theirs;

	put_request(head, rules, request);
	theirs = head->len;
	for (unsigned i = 0; i < rules.count; i++)
		if (rules.rules[i].value)
			put_rule(head, &rules.rules[i], value, context);
	fits = head->len - theirs <= REQUEST_RULES_MAX;
	g_string_append(head, "\r\n");
	if (fits && request_parse(changed, head->str, head->len) == 0)
		return g_string_free(head, FALSE);
	g_string_free(head, TRUE);
	return NULL;
}
