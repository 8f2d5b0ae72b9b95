/* SPDX-License-Identifier: MIT */
/*
 * test-header-lines.c - unit tests of the lines of a response that has two authors.
 * Single-threaded; input is a heap copy of its exact size, so that memory checkers detect a read
 * beyond.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/header-lines.h"

#include "suite.h"

static struct slice copy_of(const char *text)
{
	size_t length = strlen(text);
	char *copy = must_alloc(length);

	memcpy(copy, text, length);
	return (struct slice){copy, length};
}

static void merges(const char *lines, const char *added, const char *expected)
{
	struct slice one = copy_of(lines), other = copy_of(added);
	char *out = must_alloc(one.length + other.length);
	size_t length = header_merge(one, other, out);

	ck_assert_uint_eq(length, strlen(expected));
	ck_assert_mem_eq(out, expected, length);
	free(out);
	free((void *)(uintptr_t)one.at);
	free((void *)(uintptr_t)other.at);
}

START_TEST(test_merge)
{
	merges("", "", "");
	merges("A: b\r\n", "", "A: b\r\n");
	merges("", "A: b\r\n", "A: b\r\n");
	merges("A: b\r\nC: d\r\na: e\n", "A: x\r\nA: y\r\nE: f\r\n",
	       "C: d\r\nA: x\r\nA: y\r\nE: f\r\n");
	merges("AB: c\r\n", "A: b\r\n", "AB: c\r\nA: b\r\n");
	/* A type of a whole body is not that of its parts. */
	merges("Content-Type: text/html\r\n", "content-type: text/plain\r\n",
	       "content-type: text/plain\r\n");
	merges("Content-Type: multipart/byteranges; boundary=a\r\n",
	       "B: c\r\ncontent-type: text/plain\r\n",
	       "Content-Type: multipart/byteranges; boundary=a\r\nB: c\r\n");
	merges("no colon", "", "no colon");
}
END_TEST

static void leaves(const char *lines, const char *expected)
{
	struct slice from = copy_of(lines);
	char *out = must_alloc(from.length);
	size_t length = header_without_body(from, out);

	ck_assert_uint_eq(length, strlen(expected));
	ck_assert_mem_eq(out, expected, length);
	free(out);
	free((void *)(uintptr_t)from.at);
}

START_TEST(test_without_body)
{
	leaves("", "");
	leaves("ETag: x\r\n", "");
	leaves("Set-Cookie: a\r\netag: x\r\nContent-Type: b\r\nLast-Modified: c\r\n"
	       "Content-Encoding: gzip\r\nCache-Control: d\r\nContent-Disposition: e\r\n",
	       "Set-Cookie: a\r\nContent-Type: b\r\nCache-Control: d\r\n"
	       "Content-Disposition: e\r\n");
}
END_TEST

/* In place; a line without a colon has an empty name. */
START_TEST(test_filter)
{
	static const struct slice names[] = {SLICE_OF("Allow"), SLICE_OF("Retry-After")};
	char lines[] = "A: b\r\nallow: GET\r\nAllowed: x\nno colon\nRetry-After: 7\r\n";
	char copy[sizeof(lines)];
	size_t length = strlen(lines);

	ck_assert_uint_eq(header_filter((struct slice){lines, length}, names, 2, false, copy), 26);
	ck_assert_mem_eq(copy, "A: b\r\nAllowed: x\nno colon\n", 26);
	ck_assert_uint_eq(header_filter((struct slice){lines, length}, names, 2, true, lines), 28);
	ck_assert_mem_eq(lines, "allow: GET\r\nRetry-After: 7\r\n", 28);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_merge);
	tcase_add_test(tcase, test_filter);
	tcase_add_test(tcase, test_without_body);
}

RUN_SUITE("header-lines", fill)
