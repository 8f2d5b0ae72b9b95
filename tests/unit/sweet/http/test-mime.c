/* SPDX-License-Identifier: MIT */
/*
 * test-mime.c - unit tests of the content type table: the built-in list, a
 * file in the format of mime.types with traps in it, and names.
 * Single-threaded; writes one temporary file and removes it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http/mime.h"

#include "suite.h"

#define UNKNOWN "application/octet-stream"

static const char file_text[] = "# a comment with type text/plain evil\n"
				"\n"
				"text/x-test\t\t\ttst TST2\n"
				"application/x-first dup\n"
				"application/x-second dup\n"
				"application/x-own html # json\n"
				"application/x-crlf crlf\r\n"
				"   image/x-blank   lead   \n"
				"TEXT/X-Upper upp\n"
				"application/x-none\n"
				"notype nt\n"
				"/x s1\n"
				"x/ s2\n"
				"a/b/c s3\n"
				"text/plain;charset=x s4\n"
				"text/\x01x s5\n"
				"text/\xe4 s6\n"
				"text/x-long abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz\n"
				"text/x-30 a123456789b123456789c123456789d\n"
				"application/x-last last"; /* no newline */

static const struct {
	const char *name;
	const char *type;
} built_in[] = {
	{"index.html", "text/html; charset=utf-8"},
	{"a.css", "text/css; charset=utf-8"},
	{"a.js", "text/javascript; charset=utf-8"},
	{"a.mjs", "text/javascript; charset=utf-8"},
	{"a.json", "application/json"},
	{"a.svg", "image/svg+xml"},
	{"a.png", "image/png"},
	{"a.jpg", "image/jpeg"},
	{"a.jpeg", "image/jpeg"},
	{"a.gif", "image/gif"},
	{"a.webp", "image/webp"},
	{"a.txt", "text/plain; charset=utf-8"},
	{"a.wasm", "application/wasm"},
	{"a.HTML", "text/html; charset=utf-8"},
	{"A.JpG", "image/jpeg"},
	{"a.txt.png", "image/png"},
	{"a.png.unheard", UNKNOWN},
	{"/srv/www/a.png", "image/png"},
	{"/srv/www.png/a", UNKNOWN},
	{"/srv/www.png/", UNKNOWN},
	{"a", UNKNOWN},
	{"", UNKNOWN},
	{".", UNKNOWN},
	{"..", UNKNOWN},
	{"a.", UNKNOWN},
	{"a.png.", UNKNOWN},
	{".html", UNKNOWN},
	{"dir/.html", UNKNOWN},
	{".a.html", "text/html; charset=utf-8"},
	{"a.html ", UNKNOWN},
	{"a.html\xff", UNKNOWN},
	{"a.abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", UNKNOWN},
};

static void check_built_in(const struct mime *mime)
{
	size_t i;

	for (i = 0; i < sizeof(built_in) / sizeof(built_in[0]); i++)
		ck_assert_str_eq(mime_type(mime, built_in[i].name), built_in[i].type);
}

START_TEST(test_built_in)
{
	static const char *const paths[] = {NULL, "/nonexistent/mime.types", "/", "", "/dev/null"};
	size_t i;

	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct mime *mime =
			mime_open(&(struct mime_options){.path = paths[i], .charset = "utf-8"});

		ck_assert_ptr_nonnull(mime);
		check_built_in(mime);
		mime_close(mime);
	}
	mime_close(NULL);
}
END_TEST

START_TEST(test_file)
{
	static const struct {
		const char *name;
		const char *type;
	} cases[] = {
		{"a.tst", "text/x-test; charset=utf-8"},
		{"a.tst2", "text/x-test; charset=utf-8"},
		{"a.Tst2", "text/x-test; charset=utf-8"},
		{"a.dup", "application/x-first"},
		{"a.html", "application/x-own"}, /* the file overrides the built-in list */
		{"a.json", "application/json"},	 /* which still applies otherwise */
		{"a.css", "text/css; charset=utf-8"},
		{"a.crlf", "application/x-crlf"},
		{"a.lead", "image/x-blank"},
		{"a.upp", "TEXT/X-Upper; charset=utf-8"},
		{"a.last", "application/x-last"},
		{"a.a123456789b123456789c123456789d", "text/x-30; charset=utf-8"},
		{"a.a123456789b123456789c123456789", UNKNOWN},
		{"a.abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", UNKNOWN},
		{"a.evil", UNKNOWN},
		{"a.nt", UNKNOWN},
		{"a.s1", UNKNOWN},
		{"a.s2", UNKNOWN},
		{"a.s3", UNKNOWN},
		{"a.s4", UNKNOWN},
		{"a.s5", UNKNOWN},
		{"a.s6", UNKNOWN},
	};
	char path[] = "/tmp/test-mime-XXXXXX";
	int fd = mkstemp(path);
	struct mime *mime;
	size_t i;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, file_text, sizeof(file_text) - 1), sizeof(file_text) - 1);
	close(fd);
	mime = mime_open(&(struct mime_options){.path = path, .charset = "utf-8"});
	unlink(path);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(strcmp(mime_type(mime, cases[i].name), cases[i].type) == 0, "%s: %s",
			      cases[i].name, mime_type(mime, cases[i].name));
	mime_close(mime);
}
END_TEST

/* The table owns the string: two lookups return the same one. */
START_TEST(test_lifetime)
{
	struct mime *mime = mime_open(&(struct mime_options){.charset = "utf-8"});

	ck_assert_ptr_eq(mime_type(mime, "a.html"), mime_type(mime, "b.htm"));
	ck_assert_ptr_eq(mime_type(mime, "a.nothing"), mime_type(mime, "nothing"));
	mime_close(mime);
}
END_TEST

START_TEST(test_options)
{
	static char *lines[] = {(char *)"text/x-c c H", (char *)"application/x-own html", NULL};
	struct mime_options options = {
		.lines = lines, .charset = "koi8-r", .otherwise = "text/plain"};
	struct mime *mime = mime_open(&options), *other;

	ck_assert_str_eq(mime_type(mime, "/a.c"), "text/x-c; charset=koi8-r");
	ck_assert_str_eq(mime_type(mime, "/a.h"), "text/x-c; charset=koi8-r");
	ck_assert_str_eq(mime_type(mime, "/a.html"), "application/x-own");
	ck_assert_str_eq(mime_type(mime, "/a.css"), "text/css; charset=koi8-r");
	ck_assert_str_eq(mime_type(mime, "/README"), "text/plain; charset=koi8-r");
	options.otherwise = NULL;
	other = mime_open(&options);
	ck_assert_str_eq(mime_type(other, "/README"), "application/octet-stream");
	ck_assert(!mime_equal(mime, other));
	mime_close(other);
	options.charset = NULL;
	other = mime_open(&options);
	ck_assert_str_eq(mime_type(other, "/a.css"), "text/css");
	mime_close(other);
	mime_close(mime);
}
END_TEST

START_TEST(test_words)
{
	ck_assert(mime_is_type("text/plain") && mime_is_type("a/b+c"));
	ck_assert(!mime_is_type("") && !mime_is_type("text") && !mime_is_type("text/") &&
		  !mime_is_type("a/b/c") && !mime_is_type("a/b c") && !mime_is_type("a/b;c"));
	ck_assert(mime_is_line("text/x-c c h") && mime_is_line("text/x-c \tc"));
	ck_assert(!mime_is_line("text/x-c") && !mime_is_line("c text/x-c") && !mime_is_line(""));
	ck_assert(!mime_is_line("text/x-c an-extension-that-is-much-longer-than-any-other"));
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, test_built_in);
	tcase_add_test(tcase, test_options);
	tcase_add_test(tcase, test_words);
	tcase_add_test(tcase, test_file);
	tcase_add_test(tcase, test_lifetime);
}

RUN_SUITE("mime", fill)
