/* SPDX-License-Identifier: MIT */
/*
 * field.c - see field.h.  No state, no allocation: any thread may call it.
 */

#include <stdbool.h>
#include <string.h>

#include "base/syntax.h"
#include "http/field.h"

size_t field_line_end(const char *data, size_t length)
{
	if (length >= 1 && data[0] == '\n')
		return 1;
	if (length >= 2 && data[0] == '\r' && data[1] == '\n')
		return 2;
	return 0;
}

size_t field_section_end(const char *data, size_t length, size_t at)
{
	const char *newline;

	while (at < length && (newline = memchr(data + at, '\n', length - at))) {
		size_t bytes;

		at = (size_t)(newline - data) + 1;
		bytes = field_line_end(data + at, length - at);
		if (bytes)
			return at + bytes;
	}
	return 0;
}

bool field_is_ambiguous(struct slice name)
{
	for (size_t i = 0; i < name.length; i++) {
		char byte = name.at[i], letter = byte | 0x20;

		if (!(letter >= 'a' && letter <= 'z') && !(byte >= '0' && byte <= '9') &&
		    byte != '-')
			return true;
	}
	return false;
}

bool field_options_add(struct field_options *options, struct slice value)
{
	struct slice name;

	while (field_part(&value, ',', &name)) {
		if (!name.length)
			continue;
		if (options->count == FIELD_OPTIONS_MAX)
			return false;
		options->names[options->count++] = name;
	}
	return true;
}

struct slice field_trim(struct slice value)
{
	while (value.length && syntax_is_blank(value.at[0])) {
		value.at++;
		value.length--;
	}
	while (value.length && syntax_is_blank(value.at[value.length - 1]))
		value.length--;
	return value;
}

bool field_part(struct slice *rest, char separator, struct slice *part)
{
	bool quoted = false;
	size_t i;

	if (!rest->at)
		return false;
	for (i = 0; i < rest->length; i++) {
		if (quoted && rest->at[i] == '\\')
			i++;
		else if (rest->at[i] == '"')
			quoted = !quoted;
		else if (!quoted && rest->at[i] == separator)
			break;
	}
	if (i < rest->length) {
		*part = field_trim((struct slice){rest->at, i});
		*rest = (struct slice){rest->at + i + 1, rest->length - i - 1};
	} else {
		*part = field_trim(*rest);
		*rest = (struct slice){NULL, 0};
	}
	return true;
}

bool field_number(struct slice digits, uint64_t *value)
{
	*value = 0;
	for (size_t i = 0; i < digits.length; i++) {
		unsigned digit = (unsigned)(digits.at[i] - '0');

		if (digit > 9)
			return false;
		*value = *value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *value * 10 + digit;
	}
	return digits.length > 0;
}
