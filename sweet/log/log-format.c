/* SPDX-License-Identifier: MIT */
/*
 * log-format.c - see log-format.h.
 */
#include <string.h>

#include <glib.h>

#include "base/syntax.h"
#include "log/log-format.h"

#define REQUEST_FIELD "request."
#define RESPONSE_FIELD "response."

/* In the order of enum log_variable, without LOG_LITERAL. */
#define NAME(variable) [-1 + (variable)]
const char *const log_variables[] = {
	NAME(LOG_CLIENT) = "client",
	NAME(LOG_CLIENT_PORT) = "client-port",
	NAME(LOG_USER) = "user",
	NAME(LOG_TIME) = "time",
	NAME(LOG_TIME_LOCAL) = "time-local",
	NAME(LOG_REQUEST) = "request",
	NAME(LOG_METHOD) = "method",
	NAME(LOG_TARGET) = "target",
	NAME(LOG_PATH) = "path",
	NAME(LOG_QUERY) = "query",
	NAME(LOG_PROTOCOL) = "protocol",
	NAME(LOG_HOST) = "host",
	NAME(LOG_STATUS) = "status",
	NAME(LOG_BYTES) = "bytes",
	NAME(LOG_HEAD_BYTES) = "head-bytes",
	NAME(LOG_TIME_TOTAL) = "time-total",
	NAME(LOG_TIME_QUEUE) = "time-queue",
	NAME(LOG_TIME_PROGRAM) = "time-program",
	NAME(LOG_TIME_SEND) = "time-send",
	NAME(LOG_TLS_VERSION) = "tls-version",
	NAME(LOG_TLS_CIPHER) = "tls-cipher",
	NAME(LOG_POOL) = "pool",
	NAME(LOG_CACHE) = "cache",
	NAME(LOG_REQUEST_ID) = "request-id",
	NAME(LOG_TRACE_ID) = "trace-id",
	NAME(LOG_REQUEST_FIELD) = REQUEST_FIELD "NAME",
	NAME(LOG_RESPONSE_FIELD) = RESPONSE_FIELD "NAME",
	NULL,
};

static const char *const words[] = {
	[ACCESS_SHORT] = "short",	 [ACCESS_COMMON] = "common",
	[ACCESS_COMBINED] = "combined",	 [ACCESS_JSON] = "json",
	[ACCESS_TEMPLATE] = "template:", [ACCESS_JSON_TEMPLATE] = "json-template:"};

static bool is_token(struct slice name)
{
	for (size_t i = 0; i < name.length; i++)
		if (!syntax_is_token(name.at[i]))
			return false;
	return name.length > 0;
}

/* Passwords are never logged. */
static bool is_secret(struct slice name)
{
	return slice_is(name, "Authorization") || slice_is(name, "Proxy-Authorization");
}

/* Reads the field's name after the prefix. */
static bool take_field(struct log_part *part, const char *prefix, enum log_variable variable)
{
	size_t length = strlen(prefix);

	if (part->text.length <= length || strncmp(part->text.at, prefix, length) != 0)
		return false;
	part->text.at += length;
	part->text.length -= length;
	part->variable = variable;
	return is_token(part->text) && !is_secret(part->text);
}

static unsigned wants_of(enum log_variable variable)
{
	switch (variable) {
	case LOG_HOST:
		return LOG_WANTS_USUAL;
	case LOG_TLS_VERSION:
	case LOG_TLS_CIPHER:
		return LOG_WANTS_TLS;
	case LOG_REQUEST_FIELD:
		return LOG_WANTS_FIELDS;
	default:
		return 0;
	}
}

/* Finds the variable that the part's text names. */
static bool find_variable(struct log_part *part)
{
	if (take_field(part, REQUEST_FIELD, LOG_REQUEST_FIELD) ||
	    take_field(part, RESPONSE_FIELD, LOG_RESPONSE_FIELD))
		return true;
	/* The last two are no names. */
	for (unsigned i = 0; i + 1 < LOG_REQUEST_FIELD; i++)
		if (slice_equals(part->text,
				 (struct slice){log_variables[i], strlen(log_variables[i])})) {
			part->variable = (enum log_variable)(i + 1);
			return true;
		}
	return false;
}

static struct log_part *add(struct log_format *format, enum log_variable variable, const char *at,
			    size_t length)
{
	struct log_part *part = &format->parts[format->part_count++];

	*part = (struct log_part){.variable = variable, .text = {at, length}};
	return part;
}

/* Reads a template; the parts refer to its text. */
static const char *compile(struct log_format *format, const char *at, const char **wrong)
{
	bool quoted = false;

	while (*at) {
		size_t length = strcspn(at, "{}");
		struct log_part *part;

		*wrong = at;
		if (format->part_count == LOG_PARTS_MAX)
			return "has too many parts; variables are";
		for (size_t i = 0; i < length; i++)
			quoted ^= at[i] == '"';
		if (length) {
			add(format, LOG_LITERAL, at, length);
			at += length;
		} else if (at[0] == at[1]) {
			/* A brace is written twice. */
			add(format, LOG_LITERAL, at, 1);
			at += 2;
		} else {
			length = strcspn(at + 1, "{}");
			if (*at == '}' || at[1 + length] != '}')
				return "has a single brace here (twice, it is a character); "
				       "variables are";
			part = add(format, LOG_LITERAL, at + 1, length);
			part->quoted = quoted;
			if (!find_variable(part))
				return "names no variable here; variables are";
			format->wants |= wants_of(part->variable);
			at += length + 2;
		}
	}
	return NULL;
}

static struct log_format *create(enum access_format kind, const char *text, unsigned parts)
{
	struct log_format *format = g_malloc0(sizeof(*format) + parts * sizeof(format->parts[0]));

	format->kind = kind;
	format->text = g_strdup(text);
	format->wants = LOG_WANTS_LINE;
	if (kind == ACCESS_COMBINED || kind == ACCESS_JSON)
		format->wants |= LOG_WANTS_USUAL;
	return format;
}

struct log_format *log_format_fixed(enum access_format kind)
{
	return create(kind, words[kind], 0);
}

static const char *read_template(enum access_format kind, const char *text,
				 struct log_format **format, const char **wrong)
{
	size_t prefix = strlen(words[kind]);
	const char *must, *at;

	*wrong = text;
	if (!text[prefix] || strlen(text) > LOG_TEMPLATE_MAX)
		return "must have 1 to 4096 bytes, with variables in braces:";
	for (at = text; *at; at++)
		if (((unsigned char)*at < 0x20 && *at != '\t') || *at == 0x7f)
			return "must be one line, without control characters but tabs; variables "
			       "are";
	*format = create(kind, text, LOG_PARTS_MAX);
	/* Its own copy of the text lives as long as the parts. */
	must = compile(*format, (*format)->text + prefix, &at);
	if (!must)
		return NULL;
	*wrong = text + (at - (*format)->text);
	log_format_free(*format);
	*format = NULL;
	return must;
}

const char *log_format_read(const char *text, struct log_format **format, const char **wrong)
{
	*wrong = text;
	*format = NULL;
	for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
		if (i < ACCESS_TEMPLATE && strcmp(text, words[i]) == 0) {
			*format = log_format_fixed((enum access_format)i);
			return NULL;
		}
		if (i >= ACCESS_TEMPLATE && g_str_has_prefix(text, words[i]))
			return read_template((enum access_format)i, text, format, wrong);
	}
	return "must be short, common, combined, json, template:TEXT or json-template:TEXT, where "
	       "TEXT has variables in braces:";
}

void log_format_free(struct log_format *format)
{
	if (!format)
		return;
	g_free(format->text);
	g_free(format);
}
