/* SPDX-License-Identifier: MIT */
/*
 * json.c - see json.h.
 */
#include <inttypes.h>
#include <math.h>

#include <glib.h>

#include "json.h"

static void indent(struct json *json)
{
	if (json->one_line)
		return;
	fputc('\n', json->to);
	for (unsigned i = 0; i < json->depth; i++)
		fputs("  ", json->to);
}

/* Writes what precedes any value. */
static void begin(struct json *json, const char *name)
{
	if (json->follows)
		fputs(json->one_line ? ", " : ",", json->to);
	if (json->depth)
		indent(json);
	if (name)
		fprintf(json->to, "\"%s\": ", name);
	json->follows = true;
}

void json_open(struct json *json, const char *name, char start)
{
	begin(json, name);
	fputc(start, json->to);
	json->depth++;
	json->follows = false;
}

void json_close(struct json *json, char end)
{
	json->depth--;
	if (json->follows)
		indent(json);
	fputc(end, json->to);
	json->follows = json->depth > 0;
	if (json->depth == 0)
		fputc('\n', json->to);
}

static void put_character(struct json *json, gunichar character)
{
	char bytes[6];

	if (character == '"' || character == '\\') {
		fputc('\\', json->to);
		fputc((int)character, json->to);
	} else if (character < 0x20 || character == 0x7f) {
		fprintf(json->to, "\\u%04x", (unsigned)character);
	} else {
		fwrite(bytes, 1, (size_t)g_unichar_to_utf8(character, bytes), json->to);
	}
}

void json_text(struct json *json, const char *name, const char *text)
{
	begin(json, name);
	fputc('"', json->to);
	while (*text) {
		gunichar character = g_utf8_get_char_validated(text, -1);
		bool valid = character < 0x110000;

		put_character(json, valid ? character : 0xfffd);
		text = valid ? g_utf8_next_char(text) : text + 1;
	}
	fputc('"', json->to);
}

void json_number(struct json *json, const char *name, uint64_t number)
{
	begin(json, name);
	fprintf(json->to, "%" PRIu64, number);
}

void json_integer(struct json *json, const char *name, int64_t number)
{
	begin(json, name);
	fprintf(json->to, "%" PRId64, number);
}

void json_real(struct json *json, const char *name, double number)
{
	char text[G_ASCII_DTOSTR_BUF_SIZE];

	begin(json, name);
	/* Without a locale's comma, and never in a form that is not valid JSON. */
	fputs(g_ascii_formatd(text, sizeof(text), "%.1f", isfinite(number) ? number : 0.0),
	      json->to);
}

void json_id(struct json *json, const char *name, size_t id)
{
	begin(json, name);
	fprintf(json->to, "\"%zu\"", id);
}
