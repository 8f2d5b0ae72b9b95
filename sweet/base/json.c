/* SPDX-License-Identifier: MIT */
/*
 * json.c - see json.h.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <glib.h>

#include "base/decimal.h"
#include "base/json.h"

static void new_line(struct json *json)
{
	unsigned spaces = json->depth * (json->step ? json->step : 2);

	g_string_append_c(json->text, '\n');
	while (spaces--)
		g_string_append_c(json->text, ' ');
}

/* What stands before any value. */
static void begin(struct json *json, const char *name)
{
	bool lines = json->layout == JSON_LINES;

	if (!json->text)
		json->text = g_string_new(NULL);
	if (json->follows)
		g_string_append(json->text, lines || json->layout == JSON_DENSE ? "," : ", ");
	if (json->depth && lines)
		new_line(json);
	else if (json->depth && !json->follows && json->layout == JSON_SPACED)
		g_string_append_c(json->text, ' ');
	if (name) {
		g_string_append_c(json->text, '"');
		g_string_append(json->text, name);
		g_string_append(json->text, json->layout == JSON_DENSE ? "\":" : "\": ");
	}
	json->follows = true;
}

void json_open_as(struct json *json, const char *name, char start, enum json_layout layout)
{
	assert(json->depth < JSON_DEPTH);
	begin(json, name);
	g_string_append_c(json->text, start);
	json->outer[json->depth++] = json->layout;
	/* Only objects have spaces within their brackets. */
	json->layout = start == '[' && layout == JSON_SPACED ? JSON_FLAT : layout;
	json->follows = false;
}

void json_open(struct json *json, const char *name, char start)
{
	json_open_as(json, name, start, json->layout);
}

void json_close(struct json *json, char end)
{
	json->depth--;
	if (json->follows && json->layout == JSON_LINES)
		new_line(json);
	else if (json->follows && json->layout == JSON_SPACED)
		g_string_append_c(json->text, ' ');
	g_string_append_c(json->text, end);
	json->layout = json->outer[json->depth];
	json->follows = json->depth > 0;
	if (json->depth)
		return;
	g_string_append_c(json->text, '\n');
	if (!json->to)
		return;
	/* What the stream says of errors is for its owner to ask. */
	(void)fwrite(json->text->str, 1, json->text->len, json->to);
	g_string_free(json->text, TRUE);
	json->text = NULL;
}

static void put_character(GString *out, gunichar character)
{
	if (character == '"' || character == '\\') {
		g_string_append_c(out, '\\');
		g_string_append_c(out, (char)character);
	} else if (g_unichar_iscntrl(character)) {
		g_string_append_printf(out, "\\u%04x", (unsigned)character);
	} else {
		g_string_append_unichar(out, character);
	}
}

/* Writes the bytes before the first one that is escaped or not ASCII: most texts have no other. */
static const char *put_plain(GString *out, const char *text)
{
	const char *end = text;

	while (*end >= ' ' && *end < 0x7f && *end != '"' && *end != '\\')
		end++;
	g_string_append_len(out, text, end - text);
	return end;
}

void json_text(struct json *json, const char *name, const char *text)
{
	begin(json, name);
	g_string_append_c(json->text, '"');
	while (*(text = put_plain(json->text, text))) {
		gunichar character = g_utf8_get_char_validated(text, -1);
		bool valid = character < 0x110000;

		put_character(json->text, valid ? character : 0xfffd);
		text = valid ? g_utf8_next_char(text) : text + 1;
	}
	g_string_append_c(json->text, '"');
}

void json_bool(struct json *json, const char *name, bool value)
{
	begin(json, name);
	g_string_append(json->text, value ? "true" : "false");
}

void json_null(struct json *json, const char *name)
{
	begin(json, name);
	g_string_append(json->text, "null");
}

static void put_number(GString *out, uint64_t number)
{
	char digits[DECIMAL_MAX];

	g_string_append_len(out, digits, decimal_write(digits, number) - digits);
}

void json_number(struct json *json, const char *name, uint64_t number)
{
	begin(json, name);
	put_number(json->text, number);
}

void json_real(struct json *json, const char *name, double number, unsigned places)
{
	char text[G_ASCII_DTOSTR_BUF_SIZE], format[] = "%.0f";

	begin(json, name);
	format[2] = (char)('0' + places % 10);
	/* Without a locale's comma, and never in a form that JSON does not know. */
	g_string_append(json->text, g_ascii_formatd(text, sizeof(text), format,
						    isfinite(number) ? number : 0.0));
}

void json_id(struct json *json, const char *name, size_t id)
{
	begin(json, name);
	g_string_append_c(json->text, '"');
	put_number(json->text, id);
	g_string_append_c(json->text, '"');
}
