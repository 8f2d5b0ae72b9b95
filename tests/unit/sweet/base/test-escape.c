/* SPDX-License-Identifier: MIT */
/*
 * test-escape.c - unit tests of escape.c: each byte, well-formed UTF-8 and near
 * misses, and long texts against a slow implementation.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/slice.h"

#include "suite.h"

typedef char *escape_function(char *to, struct slice text);

static char out[1 << 16];

/* From a copy of the exact size, into memory of the exact bound. */
static const char *escape(escape_function *function, const char *text, size_t length)
{
	char *from = must_alloc(length), *to = must_alloc(length * ESCAPE_MOST), *end;

	memcpy(from, text, length);
	end = function(to, (struct slice){from, length});
	ck_assert(end >= to && end <= to + length * ESCAPE_MOST);
	memcpy(out, to, (size_t)(end - to));
	out[end - to] = '\0';
	free(from);
	free(to);
	return out;
}

START_TEST(test_every_byte)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		char text[3] = {'<', (char)byte, '>'}, plain[4], hex[12], json[12];
		bool printable = byte >= 0x20 && byte < 0x7f;
		bool special = byte == '"' || byte == '\\';

		snprintf(plain, sizeof(plain), "<%c>", byte ? (char)byte : '?');
		snprintf(hex, sizeof(hex), "<\\x%02x>", byte);
		snprintf(json, sizeof(json), special ? "<\\%c>" : "<\\u%04x>", byte);
		ck_assert_str_eq(escape(escape_quoted, text, 3),
				 printable && !special ? plain : hex);
		ck_assert_str_eq(escape(escape_word, text, 3),
				 printable && !special && byte != ' ' ? plain : hex);
		ck_assert_str_eq(escape(escape_json, text, 3),
				 printable && !special ? plain : json);
		ck_assert_str_eq(escape(escape_message, text, 3), printable ? plain : hex);
	}
}
END_TEST

static const struct {
	const char *text, *json, *message;
} utf8[] = {
	{"", "", ""},
	/* The limits of each length, and around the excluded ranges. */
	{"\xc2\xa0", "\xc2\xa0", "\xc2\xa0"},
	{"\xdf\xbf", "\xdf\xbf", "\xdf\xbf"},
	{"\xe0\xa0\x80", "\xe0\xa0\x80", "\xe0\xa0\x80"},
	{"\xed\x9f\xbf", "\xed\x9f\xbf", "\xed\x9f\xbf"},
	{"\xee\x80\x80", "\xee\x80\x80", "\xee\x80\x80"},
	{"\xef\xbf\xbf", "\xef\xbf\xbf", "\xef\xbf\xbf"},
	{"\xf0\x90\x80\x80", "\xf0\x90\x80\x80", "\xf0\x90\x80\x80"},
	{"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
	{"gr\xc3\xbc\xc3\x9f dich", "gr\xc3\xbc\xc3\x9f dich", "gr\xc3\xbc\xc3\x9f dich"},
	/* Controls beyond ASCII. */
	{"\xc2\x80", "\\u00c2\\u0080", "\\xc2\\x80"},
	{"\xc2\x9b", "\\u00c2\\u009b", "\\xc2\\x9b"},
	/* Overlong forms, surrogates, beyond the end. */
	{"\xc0\xaf", "\\u00c0\\u00af", "\\xc0\\xaf"},
	{"\xc1\xbf", "\\u00c1\\u00bf", "\\xc1\\xbf"},
	{"\xe0\x9f\xbf", "\\u00e0\\u009f\\u00bf", "\\xe0\\x9f\\xbf"},
	{"\xed\xa0\x80", "\\u00ed\\u00a0\\u0080", "\\xed\\xa0\\x80"},
	{"\xf0\x8f\xbf\xbf", "\\u00f0\\u008f\\u00bf\\u00bf", "\\xf0\\x8f\\xbf\\xbf"},
	{"\xf4\x90\x80\x80", "\\u00f4\\u0090\\u0080\\u0080", "\\xf4\\x90\\x80\\x80"},
	{"\xf5\x80\x80\x80", "\\u00f5\\u0080\\u0080\\u0080", "\\xf5\\x80\\x80\\x80"},
	/* Truncated, and a continuation byte alone. */
	{"\xc3", "\\u00c3", "\\xc3"},
	{"\xe2\x82", "\\u00e2\\u0082", "\\xe2\\x82"},
	{"\xe2\x82(", "\\u00e2\\u0082(", "\\xe2\\x82("},
	{"\xe2(\xac", "\\u00e2(\\u00ac", "\\xe2(\\xac"},
	{"\xf0\x9f\x98", "\\u00f0\\u009f\\u0098", "\\xf0\\x9f\\x98"},
	{"\xc3\xc3\xbc", "\\u00c3\xc3\xbc", "\\xc3\xc3\xbc"},
	{"a\xbf", "a\\u00bf", "a\\xbf"},
};

START_TEST(test_utf8)
{
	for (size_t i = 0; i < sizeof(utf8) / sizeof(*utf8); i++) {
		size_t length = strlen(utf8[i].text);

		ck_assert_str_eq(escape(escape_json, utf8[i].text, length), utf8[i].json);
		ck_assert_str_eq(escape(escape_message, utf8[i].text, length), utf8[i].message);
	}
}
END_TEST

/* Texts of any length with a special byte at any place: the fast way equals the slow one. */
START_TEST(test_places)
{
	static const char strange[] = {0, 0x1f, 0x7f, '"', '\\', (char)0x80, (char)0xff, ' ', '~'};
	char text[40], expected[300];

	for (size_t length = 0; length < sizeof(text); length++) {
		for (size_t at = 0; at < length * sizeof(strange); at++) {
			char *to = expected;

			memset(text, 'a', sizeof(text));
			text[at / sizeof(strange)] = strange[at % sizeof(strange)];
			for (size_t i = 0; i < length; i++) {
				unsigned char byte = (unsigned char)text[i];

				to += byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\'
					      ? sprintf(to, "%c", byte)
					      : sprintf(to, "\\x%02x", byte);
			}
			*to = '\0';
			expect(strcmp(escape(escape_quoted, text, length), expected) == 0);
		}
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_every_byte);
	tcase_add_test(tcase, test_utf8);
	tcase_add_test(tcase, test_places);
}

RUN_SUITE("escape", fill)
