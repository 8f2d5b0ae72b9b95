/* SPDX-License-Identifier: MIT */
/*
 * compress-rule.c - see compress-rule.h.  No state: any thread may call it.
 */
#include <string.h>
#include <strings.h>

#include "base/syntax.h"
#include "coding/compress-rule.h"
#include "coding/encoder.h"
#include "http/fields.h"

static const char *add_coding(struct compress_rule *rule, unsigned *count, const char *name)
{
	for (unsigned i = 0; i < CODINGS; i++) {
		enum coding coding = (enum coding)i;

		if (strcmp(name, coding_token(coding)) != 0)
			continue;
		if (!encoder_of(coding))
			return encoder_missing(coding);
		if (rule->codings & 1u << i)
			return "must be there once";
		rule->codings |= 1u << i;
		rule->order[(*count)++] = coding;
		return NULL;
	}
	return "must be zstd, br or gzip; or off alone";
}

const char *compress_rule_codings(struct compress_rule *rule, char **names, const char **wrong)
{
	unsigned count = 0;

	rule->codings = 0;
	for (unsigned i = 0; names[i]; i++) {
		const char *must;

		*wrong = names[i];
		if (strcmp(names[i], "off") == 0 && !names[1])
			break;
		must = add_coding(rule, &count, names[i]);
		if (must)
			return must;
	}
	/* Precompressed files may have the others. */
	for (unsigned i = 0; i < CODINGS; i++)
		if (!(rule->codings & 1u << i))
			rule->order[count++] = (enum coding)i;
	return NULL;
}

static bool is_token(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!syntax_is_token(text[i]))
			return false;
	return length > 0;
}

const char *compress_rule_types(char **types, const char **wrong)
{
	for (; *types; types++) {
		const char *slash = strchr(*types, '/');

		*wrong = *types;
		if (!slash || !is_token(*types, (size_t)(slash - *types)) ||
		    !is_token(slash + 1, strlen(slash + 1)))
			return "must be a media type like text/html, or text/* for all of a kind";
	}
	return NULL;
}

static bool fits(const char *pattern, struct slice type)
{
	size_t length = strlen(pattern);

	if (pattern[length - 1] == '*' && pattern[length - 2] == '/')
		return type.length >= length && strncasecmp(pattern, type.at, length - 1) == 0;
	return type.length == length && strncasecmp(pattern, type.at, length) == 0;
}

bool compress_rule_takes(const struct compress_rule *rule, struct slice type, uint64_t length)
{
	const char *end;

	if (length < rule->min || length > rule->max || !type.length)
		return false;
	end = memchr(type.at, ';', type.length);
	if (end)
		type.length = (size_t)(end - type.at);
	while (type.length && (type.at[type.length - 1] == ' ' || type.at[type.length - 1] == '\t'))
		type.length--;
	for (char **at = rule->types; *at; at++)
		if (fits(*at, type))
			return true;
	return false;
}

bool compress_rule_excludes(const struct field *field)
{
	static const field_set names =
		FIELD_BIT(FIELD_CONTENT_ENCODING) | FIELD_BIT(FIELD_CONTENT_RANGE) |
		FIELD_BIT(FIELD_CONTENT_MD5) | FIELD_BIT(FIELD_CONTENT_DIGEST) |
		FIELD_BIT(FIELD_REPR_DIGEST) | FIELD_BIT(FIELD_DIGEST);

	return field_is_in(field, names);
}
