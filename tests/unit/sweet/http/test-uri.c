/* SPDX-License-Identifier: MIT */
/*
 * test-uri.c - unit tests of uri_decode_path(): one table of special cases, the size
 * of the buffer, and random input.  Single-threaded; every input is a heap copy of its
 * exact size, so that memory checkers detect a read beyond.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/uri.h"

#include "suite.h"

#define OUT_SIZE 256
#define GUARD 0x5a

/* clang-format off */
#define GOOD(raw, path) {{raw, sizeof(raw) - 1}, 0, path}
#define BAD(raw) {{raw, sizeof(raw) - 1}, -400, NULL}
/* clang-format on */

static const struct {
	struct slice raw;
	int status; /* 0: the path is the result */
	const char *path;
} cases[] = {
	/* plain */
	GOOD("/", "/"),
	GOOD("/a", "/a"),
	GOOD("/index.html", "/index.html"),
	GOOD("/a/b/c", "/a/b/c"),
	GOOD("/a/", "/a/"),
	GOOD("/a~b_c-d.e!$&'()*+,;=:@", "/a~b_c-d.e!$&'()*+,;=:@"),
	GOOD("/\xc3\xa4", "/\xc3\xa4"),
	/* escapes */
	GOOD("/%61", "/a"),
	GOOD("/a%20b", "/a b"),
	GOOD("/%7E", "/~"),
	GOOD("/%7e", "/~"),
	GOOD("/%c3%A4", "/\xc3\xa4"),
	GOOD("/%ff", "/\xff"),
	GOOD("/a%3fb", "/a?b"),
	GOOD("/a%23b", "/a#b"),
	GOOD("/a%5cb", "/a\\b"),
	GOOD("/%2541", "/%41"),
	GOOD("/%252e%252e/x", "/%2e%2e/x"),
	GOOD("/%252f", "/%2f"),
	BAD("/%"),
	BAD("/%4"),
	BAD("/%zz"),
	BAD("/%4g"),
	BAD("/%g4"),
	BAD("/%%41"),
	BAD("/%-1"),
	BAD("/% 1"),
	BAD("/a%2"),
	BAD("/%00"),
	BAD("/a%00.html"),
	BAD("/a%2fb"),
	BAD("/a%2Fb"),
	BAD("/..%2fx"),
	BAD("/%0a"),
	BAD("/%0d%0a"),
	BAD("/%09"),
	BAD("/%1f"),
	BAD("/%7f"),
	BAD("/a\0b"),
	BAD("/a\nb"),
	BAD("/a\x7f"),
	/* dots */
	GOOD("/.", "/"),
	GOOD("/./", "/"),
	GOOD("/./a", "/a"),
	GOOD("/a/.", "/a/"),
	GOOD("/a/./b/", "/a/b/"),
	GOOD("/a/..", "/"),
	GOOD("/a/../", "/"),
	GOOD("/a/../b", "/b"),
	GOOD("/a/b/..", "/a/"),
	GOOD("/a/b/../", "/a/"),
	GOOD("/a/b/../../c", "/c"),
	GOOD("/a/b/.././../c", "/c"),
	GOOD("/a/%2e%2e/b", "/b"),
	GOOD("/a/%2E./b", "/b"),
	GOOD("/a/.%2e/b", "/b"),
	GOOD("/a/%2e/b", "/a/b"),
	GOOD("/...", "/..."),
	GOOD("/a/...", "/a/..."),
	GOOD("/.../..", "/"),
	GOOD("/..a", "/..a"),
	GOOD("/a..", "/a.."),
	GOOD("/.a", "/.a"),
	GOOD("/a./b", "/a./b"),
	GOOD("/..;/a", "/..;/a"),
	GOOD("/. ./a", "/. ./a"),
	BAD("/.."),
	BAD("/../"),
	BAD("/../x"),
	BAD("/%2e%2e/x"),
	BAD("/%2e%2e"),
	BAD("/%2E."),
	BAD("/./../x"),
	BAD("/a/../.."),
	BAD("/a/../../a"),
	BAD("/a/b/../../../c"),
	BAD("//.."),
	BAD("///../x"),
	BAD("/a//../.."),
	/* runs of slashes */
	GOOD("//", "/"),
	GOOD("////", "/"),
	GOOD("//a///b", "/a/b"),
	GOOD("/a//", "/a/"),
	GOOD("//a//..//b", "/b"),
	GOOD("/a//../b", "/b"),
	GOOD("/a/.//./b", "/a/b"),
	/* not a path */
	BAD(""),
	BAD("a"),
	BAD("*"),
	BAD("./a"),
	BAD("%2fa"),
	BAD("\\a"),
	BAD("http://h/"),
#undef GOOD
#undef BAD
};

/* ck_assert() reports even success to the parent process: too slow for loops. */
#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition))                                                                  \
			ck_abort_msg("%s", #condition);                                            \
	} while (0)

static char *copy(struct slice slice)
{
	char *bytes = malloc(slice.length + !slice.length);

	REQUIRE(bytes);
	memcpy(bytes, slice.at, slice.length);
	return bytes;
}

START_TEST(test_table)
{
	char out[OUT_SIZE];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slice raw = cases[i].raw;
		char *bytes = copy(raw);
		int got = uri_decode_path((struct slice){bytes, raw.length}, URI_SLASH_REFUSE, out,
					  sizeof(out));

		free(bytes);
		if (cases[i].status) {
			ck_assert_msg(got == cases[i].status, "%s: %d", raw.at, got);
			continue;
		}
		ck_assert_msg(got == (int)strlen(cases[i].path), "%s: %d", raw.at, got);
		ck_assert_msg(strcmp(out, cases[i].path) == 0, "%s: %s", raw.at, out);
	}
}
END_TEST

/* Paths with escaped slashes, as both ways to take them decode them; NULL: refused. */
static const struct {
	const char *raw, *decoded, *kept;
} slashes[] = {
	{"/a/b", "/a/b", "/a/b"},
	{"/a%2fb", "/a/b", "/a%2Fb"},
	{"/a%2F%2fb", "/a/b", "/a%2F%2Fb"},
	{"/a/%2Fb%2F", "/a/b/", "/a/%2Fb%2F"},
	{"/%2F", "/", "/%2F"},
	{"/a%2F..%2Fb", "/b", "/a%2F..%2Fb"},
	{"/a%2F%2e%2e", "/", "/a%2F.."},
	{"/a/..%2Fb", "/b", "/a/..%2Fb"},
	{"/a/..%2F/../b", NULL, "/a/b"},
	{"/..%2Fb", NULL, "/..%2Fb"},
	{"/a%2F../..", NULL, "/"},
	{"/a%252Fb", "/a%2Fb", "/a%2Fb"},
	{"/a%2", NULL, NULL},
	{"/a%2G", NULL, NULL},
	{"%2Fa", NULL, NULL},
};

START_TEST(test_slashes)
{
	for (size_t i = 0; i < sizeof(slashes) / sizeof(slashes[0]); i++)
		for (enum uri_slash slash = URI_SLASH_DECODE; slash <= URI_SLASH_KEEP; slash++) {
			const char *expected =
				slash == URI_SLASH_KEEP ? slashes[i].kept : slashes[i].decoded;
			struct slice raw = {slashes[i].raw, strlen(slashes[i].raw)};
			char out[OUT_SIZE];
			int got = uri_decode_path(raw, slash, out, sizeof(out));

			if (!expected) {
				ck_assert_msg(got == -400, "%s: %d", raw.at, got);
				continue;
			}
			ck_assert_msg(got > 0 && strcmp(out, expected) == 0, "%s: %s", raw.at, out);
			ck_assert_int_eq(uri_decode_path(raw, slash, out, (size_t)got), -414);
			ck_assert_int_ge(uri_decode_path(raw, slash, out, raw.length + 1), 0);
		}
}
END_TEST

/* A buffer that is too small is reported, and nothing is written beyond it. */
START_TEST(test_sizes)
{
	static const char raw[] = "/abc/d%65f/ghi";
	static const char path[] = "/abc/def/ghi";
	unsigned char out[sizeof(path) + 8];
	struct slice slice = {raw, sizeof(raw) - 1};
	size_t size, i;
	int got;

	for (size = 0; size <= sizeof(path); size++) {
		memset(out, GUARD, sizeof(out));
		got = uri_decode_path(slice, URI_SLASH_REFUSE, (char *)out, size);
		ck_assert_int_eq(got, size < sizeof(path) ? -414 : (int)sizeof(path) - 1);
		for (i = size; i < sizeof(out); i++)
			ck_assert_uint_eq(out[i], GUARD);
	}
	ck_assert_str_eq((char *)out, path);
	ck_assert_int_eq(uri_decode_path((struct slice){"/", 1}, URI_SLASH_REFUSE, (char *)out, 0),
			 -414);
	ck_assert_int_eq(uri_decode_path((struct slice){"/", 1}, URI_SLASH_REFUSE, (char *)out, 1),
			 -414);
	ck_assert_int_eq(uri_decode_path((struct slice){"/", 1}, URI_SLASH_REFUSE, (char *)out, 2),
			 1);
	ck_assert_int_eq(
		uri_decode_path((struct slice){"/a/", 3}, URI_SLASH_REFUSE, (char *)out, 3), -414);
	ck_assert_int_eq(
		uri_decode_path((struct slice){"/a/", 3}, URI_SLASH_REFUSE, (char *)out, 4), 3);
}
END_TEST

/* What every accepted path must satisfy. */
static void check_path(const char *path, int length)
{
	int i;

	REQUIRE((int)strlen(path) == length);
	REQUIRE(path[0] == '/');
	REQUIRE(!strstr(path, "//"));
	REQUIRE(!strstr(path, "/./"));
	REQUIRE(!strstr(path, "/../"));
	REQUIRE(length < 2 || strcmp(path + length - 2, "/.") != 0);
	REQUIRE(length < 3 || strcmp(path + length - 3, "/..") != 0);
	for (i = 0; i < length; i++)
		REQUIRE((unsigned char)path[i] >= 0x20 && path[i] != 0x7f);
}

START_TEST(test_random)
{
	static const char alphabet[] = "//////....%%%22eEfFaZ057\x01\xe4";
	uint32_t state = 20240229;
	unsigned accepted = 0, refused = 0;
	int round;

	for (round = 0; round < 100000; round++) {
		char raw[24], out[sizeof(raw) + 1];
		struct slice slice = {raw, 1 + round % (sizeof(raw) - 1)};
		char *bytes;
		size_t i;
		int got;

		raw[0] = '/';
		for (i = 1; i < slice.length; i++) {
			state = state * 1664525 + 1013904223;
			raw[i] = alphabet[(state >> 16) % (sizeof(alphabet) - 1)];
		}
		bytes = copy(slice);
		/* The size that the header file promises to be enough. */
		got = uri_decode_path((struct slice){bytes, slice.length},
				      (enum uri_slash)(round % 3), out, slice.length + 1);
		free(bytes);
		if (got < 0) {
			REQUIRE(got == -400);
			refused++;
			continue;
		}
		REQUIRE((size_t)got <= slice.length);
		check_path(out, got);
		accepted++;
	}
	ck_assert_uint_gt(accepted, 1000);
	ck_assert_uint_gt(refused, 1000);
}
END_TEST

START_TEST(test_dot_parameters)
{
	static const char *const with[] = {"/.;",      "/..;",	   "/..;a/b",	"/a/.;x/y",
					   "/a/..;/b", "/a.;/..;", "/a/..;b;c", "/;/..;"};
	static const char *const without[] = {"/",	"/;",	  "/a;b",  "/a.;b",
					      "/a..;b", "/...;a", "/.a;b", "/..a;b",
					      "/a/.",	"/;..",	  "/. ;"};

	for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
		ck_assert_msg(uri_has_dot_parameter(with[i]), "%s", with[i]);
	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
		ck_assert_msg(!uri_has_dot_parameter(without[i]), "%s", without[i]);
}
END_TEST

START_TEST(test_parameters)
{
	static const struct {
		const char *path, *without;
	} cases[] = {
		{"/admin;a", "/admin"},
		{"/admin;a=b,c;d/x", "/admin/x"},
		{"/;a/admin", "/admin"},
		{"/a/;/;b//c;", "/a/c"},
		{"/admin/;x", "/admin/"},
		{";", ""},
		{"/a", NULL},
		{"//a", NULL},
	};
	char out[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool any = uri_without_parameters(cases[i].path, out);

		ck_assert_msg(any == (cases[i].without != NULL), "%s", cases[i].path);
		if (any)
			ck_assert_str_eq(out, cases[i].without);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, test_table);
	tcase_add_test(tcase, test_slashes);
	tcase_add_test(tcase, test_sizes);
	tcase_add_test(tcase, test_dot_parameters);
	tcase_add_test(tcase, test_parameters);
	tcase_add_test(tcase, test_random);
}

RUN_SUITE("uri", fill)
