/* SPDX-License-Identifier: MIT */
/*
 * test-coded-fields.c - unit tests of coded-fields.c: which heads prevent compression, and what the
 * others become.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "coding/coded-fields.h"
#include "http/fields.h"

#include "suite.h"

static void read_text(struct fields *fields, const char *text)
{
	fields_init(fields);
	fields_read(fields, (struct slice){text, strlen(text)});
}

START_TEST(test_fixed)
{
	static const struct {
		const char *lines;
		bool fixed;
	} cases[] = {
		{"", false},
		{"Content-Type: text/html; charset=x\r\n", false},
		{"content-type:a/b\r\nCONTENT-ENCODING: br\r\n", true},
		{"Content-Range: bytes 0-1/2\r\n", true},
		{"Repr-Digest: x\r\n", true},
		{"Cache-Control: no-store\r\nCache-Control: public, No-Transform\r\n", true},
		{"Cache-Control: max-age=1\r\nX-Content-Encoding: br\r\n", false},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fields fields;

		read_text(&fields, cases[i].lines);
		ck_assert_int_eq(coded_fields_are_fixed(&fields), cases[i].fixed);
	}
}
END_TEST

static void weakens(const char *tag, const char *wanted)
{
	char *out = must_alloc(strlen(tag) + 2);
	struct slice weak = coded_fields_weaken((struct slice){tag, strlen(tag)}, out);

	ck_assert(slice_equals(weak, (struct slice){wanted, strlen(wanted)}));
	free(out);
}

START_TEST(test_weaken)
{
	weakens("\"x\"", "W/\"x\"");
	weakens("W/\"x\"", "W/\"x\"");
	weakens("", "W/");
	weakens("W", "W/W");
}
END_TEST

static void writes(const char *lines, const char *tag, const char *token, const char *wanted)
{
	size_t most = strlen(lines) + CODED_FIELDS_MORE + (tag ? strlen(tag) : 0);
	struct fields fields;
	char *out;

	read_text(&fields, lines);
	if (tag)
		coded_fields_set_tag(&fields, (struct slice){tag, strlen(tag)});
	coded_fields_set_coding(&fields, token);
	ck_assert_uint_le(fields_size(&fields), most);
	out = must_alloc(fields_size(&fields));
	ck_assert_ptr_eq(fields_write(&fields, out), out + fields_size(&fields));
	ck_assert_msg(fields_size(&fields) == strlen(wanted) &&
			      memcmp(out, wanted, strlen(wanted)) == 0,
		      "%.*s", (int)fields_size(&fields), out);
	free(out);
}

#define VARY "Vary: Accept-Encoding\r\n"
#define GZIP "Content-Encoding: gzip\r\n"

START_TEST(test_write)
{
	writes("", NULL, "gzip", VARY GZIP);
	writes("", NULL, NULL, VARY);
	writes("A: b\r\nETag: \"x\"\r\n", NULL, NULL, "A: b\r\nETag: \"x\"\r\n" VARY);
	writes("etag:\"x\"\r\n", "W/\"x\"", "zstd",
	       "ETag: W/\"x\"\r\n" VARY "Content-Encoding: zstd\r\n");
	writes("ETag:\"x\"\r\nETag:\"y\"\r\nETag:\"z\"\r\n", "W/\"x\"", "gzip",
	       "ETag: W/\"x\"\r\n" VARY GZIP);
	writes("ETag: \"x\"\r\nA: b\r\n", "", NULL, "A: b\r\n" VARY);
	writes("Vary: Cookie\r\n", NULL, "gzip", "Vary: Cookie\r\n" VARY GZIP);
	writes("Vary: a , accept-ENCODING\r\n", NULL, "gzip", "Vary: a , accept-ENCODING\r\n" GZIP);
	writes("Vary: *\r\n", NULL, NULL, "Vary: *\r\n");
	writes("Vary: X-Accept-Encoding\r\n", NULL, NULL, "Vary: X-Accept-Encoding\r\n" VARY);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_fixed);
	tcase_add_test(tcase, test_weaken);
	tcase_add_test(tcase, test_write);
}

RUN_SUITE("coded-fields", fill)
