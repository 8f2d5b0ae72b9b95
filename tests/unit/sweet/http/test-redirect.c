/* SPDX-License-Identifier: MIT */
/*
 * test-redirect.c - unit tests of redirect.c: targets, the rest of the path, bytes
 * that a field or a URI must not contain, and too little memory.
 */
#include <stdio.h>
#include <string.h>

#include "base/slice.h"
#include "http/redirect.h"

#include "suite.h"

#define MOST 200

START_TEST(test_targets)
{
	static const struct {
		const char *target, *rest, *query, *field;
	} cases[] = {
		{"/new", "/a/b", "", "/new"},
		{"/new/", "/a/b", "", "/new/a/b"},
		{"/new/", "a/b", "", "/new/a/b"},
		{"/new/", "", "", "/new/"},
		{"/new/", "/", "", "/new/"},
		{"/", "/a", "", "/a"},
		{"https://example.org/", "/a/", "", "https://example.org/a/"},
		{"https://example.org", "/a/", "", "https://example.org"},
		/* The query. */
		{"/new", "/a", "x=1&y=%20", "/new?x=1&y=%20"},
		{"/new/", "/a", "x=1", "/new/a?x=1"},
		{"/new?k=v", "/a", "x=1", "/new?k=v&x=1"},
		{"/new?k=v", "/a", "", "/new?k=v"},
		{"/new#part", "/a", "x=1", "/new#part"},
		/* Bytes that must be escaped: a browser treats a backslash as a slash. */
		{"/", "/\\evil.example", "", "/%5Cevil.example"},
		{"/", "/a b\r\nSet-Cookie: x", "", "/a%20b%0D%0ASet-Cookie:%20x"},
		{"/", "/a?b#c%d\"<>", "", "/a%3Fb%23c%25d%22%3C%3E"},
		{"/", "/gr\xc3\xbcn", "", "/gr%C3%BCn"},
		{"/", "/-._~!$&'()*+,;=:@", "", "/-._~!$&'()*+,;=:@"},
	};
	char out[MOST], want[MOST];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slice query = {cases[i].query, strlen(cases[i].query)};
		size_t length =
			redirect_write(cases[i].target, cases[i].rest, query, out, sizeof(out));

		snprintf(want, sizeof(want), "Location: %s\r\n", cases[i].field);
		ck_assert_msg(length == strlen(want) && memcmp(out, want, length) == 0,
			      "%s %s: %.*s", cases[i].target, cases[i].rest, (int)length, out);
		/* For any size: all of it, or nothing and no byte beyond the end. */
		for (size_t room = 0; room < sizeof(out); room++) {
			memset(out, 'x', sizeof(out));
			ck_assert_uint_eq(
				redirect_write(cases[i].target, cases[i].rest, query, out, room),
				room < length ? 0 : length);
			ck_assert(room == sizeof(out) || out[room < length ? room : length] == 'x');
		}
	}
}
END_TEST

START_TEST(test_folder)
{
	char out[MOST];
	size_t length = redirect_write_folder("/a b/c", (struct slice){"", 0}, out, sizeof(out));

	ck_assert_uint_eq(length, strlen("Location: /a%20b/c/\r\n"));
	ck_assert_mem_eq(out, "Location: /a%20b/c/\r\n", length);
	length = redirect_write_folder("/a", (struct slice){"q", 1}, out, sizeof(out));
	ck_assert_mem_eq(out, "Location: /a/?q\r\n", length);
	ck_assert_uint_eq(redirect_write_folder("/a", (struct slice){"q", 1}, out, length - 1), 0);
}
END_TEST

START_TEST(test_tls)
{
	static const struct {
		const char *host;
		unsigned port;
		const char *path, *query, *field;
	} cases[] = {
		{"a.example", 0, "/x%20y", "", "https://a.example/x%20y"},
		{"a.example", 8443, "/", "", "https://a.example/"},
		{"a.example:80", 0, "/", "q=1", "https://a.example/?q=1"},
		{"a.example:8080", 8443, "/", "", "https://a.example:8443/"},
		{"[::1]", 8443, "/", "", "https://[::1]/"},
		{"[::1]:80", 8443, "/", "", "https://[::1]:8443/"},
		{"1234", 8443, "/", "", "https://1234/"},
	};
	char out[MOST], want[MOST];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slice host = {cases[i].host, strlen(cases[i].host)},
			     path = {cases[i].path, strlen(cases[i].path)},
			     query = {cases[i].query, strlen(cases[i].query)};
		size_t length =
			redirect_write_tls(host, cases[i].port, path, query, out, sizeof(out));

		snprintf(want, sizeof(want), "Location: %s\r\n", cases[i].field);
		ck_assert_msg(length == strlen(want) && memcmp(out, want, length) == 0, "%s: %.*s",
			      cases[i].host, (int)length, out);
		ck_assert_uint_eq(
			redirect_write_tls(host, cases[i].port, path, query, out, length - 1), 0);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_targets);
	tcase_add_test(tcase, test_folder);
	tcase_add_test(tcase, test_tls);
}

RUN_SUITE("redirect", fill)
