/* SPDX-License-Identifier: MIT */
/*
 * config-value.c - see config-value.h.
 */
#include <string.h>

#include <glib.h>

#include "config/config-value.h"

#define DAY_MS 86400000u

const char *value_number(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
	guint64 number;

	if (!g_ascii_string_to_unsigned(text, 10, least, most, &number, NULL))
		return "must be a number";
	*value = number;
	return NULL;
}

const char *value_size(const char *text, uint64_t least, uint64_t *value)
{
	static const char suffixes[] = "KMG", wrong[] = "must be a size like 64M";
	guint64 number, unit = 1;
	char *end;

	if (!g_ascii_isdigit(*text))
		return wrong;
	number = g_ascii_strtoull(text, &end, 10);
	if (*end) {
		const char *suffix = strchr(suffixes, g_ascii_toupper(*end));

		if (!suffix || end[1])
			return wrong;
		unit = (guint64)1 << 10 * (suffix - suffixes + 1);
	}
	if (number >= ((guint64)1 << 40) / unit)
		return "must be a size below 1024G";
	if (number * unit < least)
		return least >= 1 << 20 ? "must be a size like 64M, at least 1M"
					: "must be a size like 64K, at least 1K";
	*value = number * unit;
	return NULL;
}

const char *value_time(const char *text, unsigned bare_ms, uint64_t *ms)
{
	static const struct {
		const char *name;
		unsigned ms;
	} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
	static const char wrong[] = "must be a time like 500ms, 30s or 2m, at most 24h";
	guint64 number, unit = 0;
	char *end;

	if (!g_ascii_isdigit(*text))
		return wrong;
	number = g_ascii_strtoull(text, &end, 10);
	if (!*end)
		unit = bare_ms;
	for (size_t i = 0; i < G_N_ELEMENTS(units); i++)
		if (strcmp(end, units[i].name) == 0)
			unit = units[i].ms;
	if (!unit || number > DAY_MS / unit)
		return wrong;
	*ms = number * unit;
	return NULL;
}

const char *value_switch(const char *text, bool *value)
{
	if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
		return "must be on or off";
	*value = text[1] == 'n';
	return NULL;
}

bool value_word(const char *text, const char *const *words, unsigned *value)
{
	for (unsigned i = 0; words[i]; i++) {
		if (strcmp(text, words[i]) == 0) {
			*value = i;
			return true;
		}
	}
	return false;
}

/* Returns what a path that no request has must be, as requests are compared decoded; else NULL. */
static const char *matches_nothing(const char *text)
{
	for (; *text; text++) {
		if (*text == '*')
			return "must be one path, without *: [path /a] is also for all below /a, "
			       "and a [pattern] for an expression";
		if (*text == '?')
			return "must be a path without a query";
		/* With escaped-slash=keep, these three characters are a part of a path. */
		if (*text == '%' && g_ascii_isxdigit(text[1]) && g_ascii_isxdigit(text[2]) &&
		    strncmp(text, "%2F", 3) != 0)
			return "must have the characters that stand for %XX, because paths are "
			       "compared decoded";
	}
	return NULL;
}

const char *value_path(const char *text)
{
	static const char wrong[] = "must be a path like /a/b, without //, /. or /..";

	const char *must = matches_nothing(text);

	if (*text != '/')
		return "must begin with '/'";
	if (must)
		return must;
	if (!text[1])
		return NULL;
	while (*text) {
		size_t length = strcspn(++text, "/");

		if (length == 0 || (length == 1 && text[0] == '.') ||
		    (length == 2 && text[0] == '.' && text[1] == '.'))
			return wrong;
		text += length;
	}
	return NULL;
}
