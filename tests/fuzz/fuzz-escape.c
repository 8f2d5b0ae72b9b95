/* SPDX-License-Identifier: MIT */
/*
 * fuzz-escape.c - bytes of clients in output for people and programs: logs
 * (sweet/base/escape.c) and listings of folders (autoindex-render.c).  They never end
 * a line, a string, a field or an element, and no byte is lost.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/slice.h"
#include "http/autoindex-render.h"

#include "fuzz.h"

static int digit(char byte)
{
	return byte <= '9' ? byte - '0' : byte - 'a' + 10;
}

/* Decodes \x with two digits. */
static size_t take_back(const char *text, size_t length, char *out)
{
	size_t count = 0;

	for (size_t i = 0; i < length; i++) {
		if (text[i] != '\\' || i + 3 >= length || text[i + 1] != 'x') {
			out[count++] = text[i];
			continue;
		}
		out[count++] = (char)(digit(text[i + 2]) << 4 | digit(text[i + 3]));
		i += 3;
	}
	return count;
}

static void check_written(struct slice text, char *(*escape)(char *to, struct slice text),
			  const char *forbidden, bool ascii, bool exact)
{
	char *out = malloc(text.length * ESCAPE_MOST + 1),
	     *back = malloc(text.length * ESCAPE_MOST + 1);
	size_t length, count;

	MUST(out && back);
	length = (size_t)(escape(out, text) - out);
	MUST(length <= text.length * ESCAPE_MOST);
	for (size_t i = 0; i < length; i++) {
		MUST((unsigned char)out[i] >= 0x20 && out[i] != 0x7f);
		MUST(!ascii || (unsigned char)out[i] < 0x7f);
		MUST(!strchr(forbidden, out[i]));
	}
	if (exact) {
		count = take_back(out, length, back);
		MUST(count == text.length && memcmp(back, text.at, count) == 0);
	}
	free(out);
	free(back);
}

/* Every quote is preceded by a backslash. */
static void check_json_string(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		MUST((unsigned char)text[i] >= 0x20 && text[i] != '"');
		if (text[i] == '\\') {
			MUST(i + 1 < length && strchr("\"\\/bfnrtu", text[i + 1]));
			if (text[i + 1] == 'u')
				MUST(i + 5 < length);
			i++;
		}
	}
}

static void check_json(struct slice text)
{
	char *out = malloc(text.length * ESCAPE_MOST + 1);
	size_t length;

	MUST(out);
	length = (size_t)(escape_json(out, text) - out);
	MUST(length <= text.length * ESCAPE_MOST);
	check_json_string(out, length);
	MUST(g_utf8_validate(out, (gssize)length, NULL));
	free(out);
}

static unsigned count_of(const char *text, const char *what)
{
	unsigned count = 0;

	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		count++;
	return count;
}

/* A name that looks like an element or a script is text; the tags of the page do not change. */
static void check_listing(struct slice text)
{
	char *name = g_strndup(text.at, text.length);
	struct autoindex_entry entry = {.name = name, .size = 5};
	struct autoindex_page listing = {.path = "/folder/", .entries = &entry, .count = 1};
	struct autoindex_entry harmless = {.name = (char *)"name", .size = 5};
	GString *page, *plain, *json;
	bool cut = false;

	g_strdelimit(name, "/", '|');
	listing.order = autoindex_order(text);
	page = autoindex_html(&listing, 65536);
	json = autoindex_json(&listing, 65536, &cut);
	listing.entries = &harmless;
	plain = autoindex_html(&listing, 65536);
	if (strlen(name) < 4000) {
		MUST(count_of(page->str, "<") == count_of(plain->str, "<"));
		MUST(count_of(page->str, ">") == count_of(plain->str, ">"));
		MUST(count_of(page->str, "\"") == count_of(plain->str, "\""));
		MUST(g_utf8_validate(json->str, (gssize)json->len, NULL) && !cut);
	}
	g_string_free(page, TRUE);
	g_string_free(plain, TRUE);
	g_string_free(json, TRUE);
	g_free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = exact_copy(data, size);
	struct slice text = {copy, size};

	check_written(text, escape_quoted, "\"", true, true);
	check_written(text, escape_word, "\" ", true, true);
	check_written(text, escape_message, "", false, false);
	check_json(text);
	check_listing(text);
	free(copy);
	return 0;
}
