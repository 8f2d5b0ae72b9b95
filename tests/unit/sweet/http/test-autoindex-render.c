/* SPDX-License-Identifier: MIT */
/*
 * test-autoindex-render.c - unit tests of autoindex-render.c: orders, hostile names, sizes,
 * times, the bound.  Single-threaded.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/autoindex-render.h"

#include "suite.h"

#define ROOM ((size_t)1 << 20)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct slice text(const char *text)
{
	return (struct slice){text, strlen(text)};
}

static struct autoindex_entry file(const char *name, uint64_t size, int64_t modified)
{
	return (struct autoindex_entry){.name = (char *)name, .size = size, .modified = modified};
}

static struct autoindex_entry folder(const char *name, int64_t modified)
{
	return (struct autoindex_entry){.name = (char *)name, .folder = true, .modified = modified};
}

/* A page of one file; free it with g_free(). */
static char *page_of(const char *path, const char *name, uint64_t size)
{
	struct autoindex_entry entry = file(name, size, 0);
	struct autoindex_page listing = {.path = path, .entries = &entry, .count = 1};
	GString *page = autoindex_html(&listing, ROOM);

	ck_assert_uint_eq(page->len, strlen(page->str));
	ck_assert(g_utf8_validate(page->str, -1, NULL));
	return g_string_free(page, FALSE);
}

static char *json_of(const char *name)
{
	struct autoindex_entry entry = file(name, 1, 0);
	struct autoindex_page listing = {.path = "/", .entries = &entry, .count = 1};
	bool cut;
	GString *json = autoindex_json(&listing, ROOM, &cut);

	ck_assert_uint_eq(json->len, strlen(json->str));
	ck_assert(!cut);
	ck_assert(g_utf8_validate(json->str, -1, NULL));
	return g_string_free(json, FALSE);
}

static void contains(const char *page, const char *part)
{
	ck_assert_msg(strstr(page, part) != NULL, "no %s in:\n%s", part, page);
}

/* --- queries -------------------------------------------------------------------------- */

START_TEST(test_query)
{
	static const struct {
		const char *query, *value; /* of "format" */
	} cases[] = {
		{"", NULL},
		{"format", NULL},
		{"format=", ""},
		{"format=json", "json"},
		{"a=b&format=json&format=x", "json"},
		{"xformat=a&formatx=b&format=c", "c"},
		{"&&format=json&", "json"},
		{"format=a=b", "a=b"},
		{"form", NULL},
		{"a=format=json", NULL},
	};

	for (unsigned i = 0; i < COUNT(cases); i++) {
		size_t length = strlen(cases[i].query);
		char *copy = must_alloc(length);
		struct slice got;

		memcpy(copy, cases[i].query, length);
		got = autoindex_query((struct slice){copy, length}, "format");
		ck_assert_msg((got.at == NULL) == (cases[i].value == NULL), "%s", cases[i].query);
		if (got.at)
			ck_assert_msg(slice_is(got, cases[i].value), "%s", cases[i].query);
		free(copy);
	}
}
END_TEST

static void check_order(const char *query, enum autoindex_column column, bool descending)
{
	struct autoindex_order order = autoindex_order(text(query));

	ck_assert_msg(order.column == column && order.descending == descending, "%s", query);
}

START_TEST(test_order)
{
	check_order("", AUTOINDEX_NAME, false);
	check_order("sort=name", AUTOINDEX_NAME, false);
	check_order("sort=size", AUTOINDEX_SIZE, false);
	check_order("sort=mtime&order=desc", AUTOINDEX_TIME, true);
	check_order("order=desc", AUTOINDEX_NAME, true);
	check_order("order=asc&sort=SIZE", AUTOINDEX_SIZE, false);
	check_order("sort=colour&order=sideways", AUTOINDEX_NAME, false);
}
END_TEST

static void check_sorted(const char *query, const char *expected)
{
	struct autoindex_entry entries[] = {
		file("b", 10, 300), file("B", 10, 300), file("a", 30, 100), file("10", 20, 200),
		folder("y", 5),	    folder("X", 10),	folder("z", 5),
	};
	char got[64] = "";

	autoindex_sort(entries, COUNT(entries), autoindex_order(text(query)));
	for (unsigned i = 0; i < COUNT(entries); i++) {
		strcat(got, entries[i].name);
		strcat(got, " ");
	}
	ck_assert_msg(strcmp(got, expected) == 0, "%s: %s instead of %s", query, got, expected);
}

START_TEST(test_sort)
{
	check_sorted("", "X y z 10 a B b ");
	check_sorted("order=desc", "z y X b B a 10 ");
	check_sorted("sort=size", "X y z B b 10 a ");
	check_sorted("sort=size&order=desc", "X y z a 10 B b ");
	check_sorted("sort=mtime", "y z X a 10 B b ");
	check_sorted("sort=mtime&order=desc", "X y z B b 10 a ");
	autoindex_sort(NULL, 0, autoindex_order(text("")));
}
END_TEST

/* --- names ------------------------------------------------------------------------------ */

START_TEST(test_names)
{
	static const struct {
		const char *name, *link, *html, *json;
	} cases[] = {
		{"a-b_c.d~e", "a-b_c.d~e", "a-b_c.d~e", "a-b_c.d~e"},
		{"a b", "a%20b", "a b", "a b"},
		{"<b>", "%3Cb%3E", "&lt;b&gt;", "<b>"},
		{"\"><script>alert(1)</script>", "%22%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E",
		 "&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;",
		 "\\\"><script>alert(1)</script>"},
		{"javascript:alert(1)", "javascript%3Aalert%281%29", "javascript:alert(1)",
		 "javascript:alert(1)"},
		{"?a=b&c#d", "%3Fa%3Db%26c%23d", "?a=b&amp;c#d", "?a=b&c#d"},
		{"100%", "100%25", "100%", "100%"},
		{"it's", "it%27s", "it&#39;s", "it's"},
		{"\\\\", "%5C%5C", "\\\\", "\\\\\\\\"},
		{"&amp;", "%26amp%3B", "&amp;amp;", "&amp;"},
		{"\xc3\xa4\xe2\x82\xac", "%C3%A4%E2%82%AC", "\xc3\xa4\xe2\x82\xac",
		 "\xc3\xa4\xe2\x82\xac"},
		{"\xf0\x9f\x90\xa7", "%F0%9F%90%A7", "\xf0\x9f\x90\xa7", "\xf0\x9f\x90\xa7"},
		/* Invalid UTF-8: a single byte, truncated, overlong, a surrogate. */
		{"a\xff"
		 "b",
		 "a%FFb",
		 "a\xef\xbf\xbd"
		 "b",
		 "a\xef\xbf\xbd"
		 "b"},
		{"\xe2\x82", "%E2%82", "\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd"},
		{"\xc0\xaf", "%C0%AF", "\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd"},
		{"\xed\xa0\x80", "%ED%A0%80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
		 "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		/* Controls. */
		{"a\nb\x7f", "a%0Ab%7F",
		 "a\xef\xbf\xbd"
		 "b\xef\xbf\xbd",
		 "a\\u000ab\\u007f"},
		{"\xc2\x85", "%C2%85", "\xef\xbf\xbd", "\\u0085"},
	};

	for (unsigned i = 0; i < COUNT(cases); i++) {
		char *page = page_of("/", cases[i].name, 1), *json = json_of(cases[i].name);
		char *row = g_strdup_printf("<a href=\"%s\"><bdi>%s</bdi></a>", cases[i].link,
					    cases[i].html);
		char *object = g_strdup_printf("{\"name\":\"%s\",\"href\":\"%s\",", cases[i].json,
					       cases[i].link);

		contains(page, row);
		contains(json, object);
		ck_assert_ptr_null(strstr(page, "<script"));
		g_free(page);
		g_free(json);
		g_free(row);
		g_free(object);
	}
}
END_TEST

START_TEST(test_path)
{
	char *top = page_of("/", "a", 1), *deep = page_of("/one/<two>/\xff/", "a", 1);
	GString *path = g_string_new("/");
	char *long_one;

	contains(top, "<title>Index of /</title>");
	contains(top, "<h1>Index of /</h1>");
	ck_assert_ptr_null(strstr(top, "href=\"../\""));
	contains(deep, "<title>Index of /one/&lt;two&gt;/\xef\xbf\xbd/</title>");
	contains(deep, "<h1>Index of <a href=\"../../../\">/</a><a href=\"../../\">one/</a>"
		       "<a href=\"../\">&lt;two&gt;/</a>\xef\xbf\xbd/</h1>");
	contains(deep, "<tr><td class=\"n\"><a href=\"../\">..</a></td>");
	g_free(top);
	g_free(deep);
	/* The page does not grow quadratically with the depth of the path. */
	for (unsigned i = 0; i < 2000; i++)
		g_string_append(path, "x/");
	long_one = page_of(path->str, "a", 1);
	ck_assert_uint_lt(strlen(long_one), 16384);
	g_free(long_one);
	g_string_free(path, TRUE);
}
END_TEST

/* --- figures ------------------------------------------------------------------------------- */

START_TEST(test_sizes)
{
	static const struct {
		uint64_t size;
		const char *text;
	} cases[] = {
		{0, "0 B"},
		{1, "1 B"},
		{1023, "1023 B"},
		{1024, "1.00 KiB"},
		{1500, "1.46 KiB"},
		{10235, "10.0 KiB"},
		{100000, "97.7 KiB"},
		{1022976, "999 KiB"},
		{1023488, "0.98 MiB"},
		{UINT64_C(1) << 20, "1.00 MiB"},
		{UINT64_C(10) << 30, "10.0 GiB"},
		{UINT64_C(1) << 40, "1.00 TiB"},
		{UINT64_C(1) << 50, "1.00 PiB"},
		{UINT64_MAX, "16.0 EiB"},
	};

	for (unsigned i = 0; i < COUNT(cases); i++) {
		char *page = page_of("/", "a", cases[i].size);
		char *cell = g_strdup_printf("<td class=\"s\">%s</td>", cases[i].text);

		contains(page, cell);
		g_free(page);
		g_free(cell);
	}
}
END_TEST

START_TEST(test_page)
{
	struct autoindex_entry entries[] = {folder("sub", 1700000000), file("a", 5, -1),
					    file("b", 6, 1700000000)};
	struct autoindex_page listing = {.path = "/", .entries = entries, .count = 3};
	char *page;
	bool cut;

	listing.order = (struct autoindex_order){AUTOINDEX_SIZE, true};
	page = g_string_free(autoindex_html(&listing, ROOM), FALSE);
	contains(page, "<!DOCTYPE html>\n<html lang=\"en\">");
	contains(page, "name=\"viewport\"");
	contains(page, "prefers-color-scheme:dark");
	contains(page,
		 "<a href=\"sub/\"><bdi>sub</bdi>/</a></td><td class=\"s\">\xe2\x80\x93</td>");
	contains(page, "2023-11-14<span> 22:13</span>");
	contains(page, "1969-12-31<span> 23:59</span>");
	contains(page, "<p>1 folder, 2 files. Times are UTC.</p>");
	/* The header of the sorted column reverses the order. */
	contains(page, "<th class=\"s\" scope=\"col\" aria-sort=\"descending\">"
		       "<a href=\"?sort=size&amp;order=asc\">");
	contains(page, "<a href=\"?sort=name&amp;order=asc\">Name</a>");
	/* Nothing from other servers. */
	ck_assert_ptr_null(strstr(page, "http"));
	ck_assert_ptr_null(strstr(page, "src="));
	ck_assert_ptr_null(strstr(page, "url("));
	g_free(page);
	listing.more = true;
	page = g_string_free(autoindex_html(&listing, ROOM), FALSE);
	contains(page, "more in this folder that are not shown");
	g_free(page);
	page = g_string_free(autoindex_json(&listing, ROOM, &cut), FALSE);
	ck_assert(cut);
	ck_assert_str_eq(page, "[\n {\"name\":\"sub\",\"href\":\"sub/\",\"type\":\"directory\","
			       "\"size\":null,\"mtime\":\"2023-11-14T22:13:20Z\"},\n "
			       "{\"name\":\"a\",\"href\":\"a\",\"type\":\"file\",\"size\":5,"
			       "\"mtime\":\"1969-12-31T23:59:59Z\"},\n "
			       "{\"name\":\"b\",\"href\":\"b\",\"type\":\"file\",\"size\":6,"
			       "\"mtime\":\"2023-11-14T22:13:20Z\"}\n]\n");
	g_free(page);
	listing = (struct autoindex_page){.path = "/"};
	page = g_string_free(autoindex_json(&listing, ROOM, &cut), FALSE);
	ck_assert_str_eq(page, "[]\n");
	ck_assert(!cut);
	g_free(page);
	page = g_string_free(autoindex_html(&listing, ROOM), FALSE);
	contains(page, "<p>0 folders, 0 files. Times are UTC.</p>");
	g_free(page);
}
END_TEST

/* A page over the limit: whole entries are left out, and it says so. */
START_TEST(test_bound)
{
	enum { ENTRIES = 5000 };
	struct autoindex_entry *entries = must_alloc(ENTRIES * sizeof(*entries));
	struct autoindex_page listing = {.path = "/", .entries = entries, .count = ENTRIES};
	char name[256];
	char *page;
	bool cut;

	memset(name, '"', 255);
	name[255] = '\0';
	for (unsigned i = 0; i < ENTRIES; i++)
		entries[i] = file(name, i, 0);
	page = g_string_free(autoindex_html(&listing, 65536), FALSE);
	ck_assert_uint_le(strlen(page), 65536);
	ck_assert_uint_gt(strlen(page), 60000);
	contains(page, "are not shown");
	contains(page, "</td></tr>\n</tbody></table>\n<p>");
	g_free(page);
	page = g_string_free(autoindex_json(&listing, 65536, &cut), FALSE);
	ck_assert_uint_le(strlen(page), 65536);
	ck_assert_uint_gt(strlen(page), 60000);
	ck_assert(cut);
	ck_assert(g_str_has_suffix(page, "\"}\n]\n"));
	g_free(page);
	free(entries);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_query);
	tcase_add_test(tcase, test_order);
	tcase_add_test(tcase, test_sort);
	tcase_add_test(tcase, test_names);
	tcase_add_test(tcase, test_path);
	tcase_add_test(tcase, test_sizes);
	tcase_add_test(tcase, test_page);
	tcase_add_test(tcase, test_bound);
}

RUN_SUITE("autoindex-render", fill)
