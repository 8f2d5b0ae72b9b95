/* SPDX-License-Identifier: MIT */
/*
 * test-coded-head.c - unit tests of coded-head.c: which heads prevent compression, and what the others
 * become.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "coding/coded-head.h"

#include "suite.h"

static struct slice of(const char *text)
{
	return (struct slice){text, strlen(text)};
}

START_TEST(test_read)
{
	static const struct {
		const char *lines, *type;
		bool fixed;
	} cases[] = {
		{"", "", false},
		{"Content-Type: text/html; charset=x\r\n", "text/html; charset=x", false},
		{"content-type:a/b\r\nCONTENT-ENCODING: br\r\n", "a/b", true},
		{"Content-Range: bytes 0-1/2\r\n", "", true},
		{"Repr-Digest: x\r\n", "", true},
		{"Cache-Control: no-store\r\nCache-Control: public, No-Transform\r\n", "", true},
		{"Cache-Control: max-age=1\r\nX-Content-Encoding: br\r\n", "", false},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct coded_head head;

		coded_head_read(&head, of(cases[i].lines));
		ck_assert_int_eq(head.fixed, cases[i].fixed);
		ck_assert(slice_equals(head.type, of(cases[i].type)));
	}
}
END_TEST

/* Writes into memory of the size that it is promised, so that memory checkers detect a byte more. */
static void writes(const char *lines, bool weak, const char *token, const char *wanted)
{
	size_t most = strlen(lines) + CODED_HEAD_MORE;
	char *out = must_alloc(most);
	size_t length = coded_head_write(of(lines), weak, token, out);

	ck_assert_uint_le(length, most);
	ck_assert_msg(length == strlen(wanted) && memcmp(out, wanted, length) == 0, "%.*s",
		      (int)length, out);
	free(out);
}

#define VARY "Vary: Accept-Encoding\r\n"
#define GZIP "Content-Encoding: gzip\r\n"

START_TEST(test_write)
{
	writes("", true, "gzip", VARY GZIP);
	writes("", false, NULL, VARY);
	writes("A: b\r\nContent-Length: 5\r\nAccept-Ranges: bytes\r\nC: d\r\n", true, "gzip",
	       "A: b\r\nC: d\r\n" VARY GZIP);
	writes("A: b\r\nContent-Length: 5\r\nAccept-Ranges: bytes\r\nETag: \"x\"\r\n", false, NULL,
	       "A: b\r\nContent-Length: 5\r\nAccept-Ranges: bytes\r\nETag: \"x\"\r\n" VARY);
	writes("etag:\"x\"\r\n", true, "zstd",
	       "ETag: W/\"x\"\r\n" VARY "Content-Encoding: zstd\r\n");
	writes("ETag: W/\"x\"\r\n", true, NULL, "ETag: W/\"x\"\r\n" VARY);
	writes("ETag:\"x\"\r\nETag:\"y\"\r\nETag:\"z\"\r\n", true, "gzip",
	       "ETag: W/\"x\"\r\n" VARY GZIP);
	writes("ETag: \r\n", true, "gzip", "ETag: W/\r\n" VARY GZIP);
	writes("Vary: Cookie\r\n", true, "gzip", "Vary: Cookie\r\n" VARY GZIP);
	writes("Vary: a , accept-ENCODING\r\n", true, "gzip", "Vary: a , accept-ENCODING\r\n" GZIP);
	writes("Vary: *\r\n", false, NULL, "Vary: *\r\n");
	writes("Vary: X-Accept-Encoding\r\n", false, NULL, "Vary: X-Accept-Encoding\r\n" VARY);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_read);
	tcase_add_test(tcase, test_write);
}

RUN_SUITE("coded-head", fill)
