/* SPDX-License-Identifier: MIT */
/* test-trailers.c - unit tests of trailers.c.  Single-threaded. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/slice.h"
#include "http/trailers.h"

#include "suite.h"

static void check_filter(const char *lines, bool coded, const char *expected)
{
	char out[256];
	long length =
		trailers_filter((struct slice){lines, strlen(lines)}, coded, out, sizeof(out));

	ck_assert_int_eq(length, (long)strlen(expected));
	ck_assert_mem_eq(out, expected, strlen(expected));
}

START_TEST(test_filter)
{
	check_filter("", false, "");
	check_filter("X-A: 1\r\nX-B: 2\r\n", false, "X-A: 1\r\nX-B: 2\r\n");
	check_filter("X-A: 1\n", false, "X-A: 1\r\n");
	check_filter("host: a\r\nX-A: 1\r\nSET-COOKIE: b\r\nX-B: 2\r\nAge: 1\r\n", false,
		     "X-A: 1\r\nX-B: 2\r\n");
	check_filter("Content-Length: 5\r\nConnection: X-A\r\nX-A: 1\r\nX-NABC-Tag: 1\r\n", false,
		     "");
}
END_TEST

START_TEST(test_digests)
{
	check_filter("Repr-Digest: a\r\nETag: b\r\n", false, "Repr-Digest: a\r\nETag: b\r\n");
	check_filter("Repr-Digest: a\r\nX: 1\r\nETag: b\r\n", true, "X: 1\r\n");
}
END_TEST

START_TEST(test_wrong)
{
	static const char *const wrong[] = {
		"X", "X: 1", ": 1\r\n", "X : 1\r\n", "X: 1\r\n\r\nY: 2\r\n", "X: \x01\r\n"};
	char out[64];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_int_eq(trailers_filter((struct slice){wrong[i], strlen(wrong[i])}, false,
						 out, sizeof(out)),
				 -1);
	ck_assert_int_eq(trailers_filter(SLICE("X-A: 1\r\n"), false, out, 7), -1);
	ck_assert_int_eq(trailers_filter(SLICE("X-A: 1\r\n"), false, out, 8), 8);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_filter);
	tcase_add_test(tcase, test_digests);
	tcase_add_test(tcase, test_wrong);
}

RUN_SUITE("trailers", fill)
