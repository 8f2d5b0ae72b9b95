/* SPDX-License-Identifier: MIT */
/*
 * test-etag.c - unit tests of etag.c: tags of versions, and lists of tags.
 */
#include <glib.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/etag.h"

#include "suite.h"

static const struct etag_source source = {
	.device = 2049,
	.inode = 1234567,
	.size = 1000,
	.modified_s = 1700000000,
	.modified_ns = 5,
	.changed_s = 1700000001,
	.changed_ns = 6,
};

START_TEST(test_format)
{
	char tag[ETAG_LENGTH + 1], again[ETAG_LENGTH];

	tag[ETAG_LENGTH] = 'x';
	etag_format(&source, tag);
	etag_format(&source, again);
	ck_assert_int_eq(tag[ETAG_LENGTH], 'x');
	ck_assert_mem_eq(tag, again, ETAG_LENGTH);
	ck_assert_int_eq(tag[0], '"');
	ck_assert_int_eq(tag[ETAG_LENGTH - 1], '"');
	for (unsigned i = 1; i < ETAG_LENGTH - 1; i++)
		ck_assert_msg(isalnum((unsigned char)tag[i]) || tag[i] == '-' || tag[i] == '_',
			      "%.18s", tag);
	/* The same forever: a restart must not invalidate the clients' caches. */
	ck_assert_mem_eq(tag, "\"Wu6ljIryzTtDTKJp\"", ETAG_LENGTH);
}
END_TEST

/* A change of each part of a version changes the tag, by its smallest step. */
START_TEST(test_each_part_counts)
{
	char tags[9][ETAG_LENGTH];

	etag_format(&source, tags[8]);
	for (unsigned i = 0; i < 8; i++) {
		struct etag_source other = source;
		uint64_t *parts[8] = {
			&other.device,
			&other.inode,
			&other.size,
			(uint64_t *)&other.modified_s,
			(uint64_t *)&other.modified_ns,
			(uint64_t *)&other.changed_s,
			(uint64_t *)&other.changed_ns,
			&other.coded,
		};

		*parts[i] ^= 1;
		etag_format(&other, tags[i]);
	}
	for (unsigned i = 0; i < 9; i++)
		for (unsigned j = 0; j < i; j++)
			ck_assert(memcmp(tags[i], tags[j], ETAG_LENGTH) != 0);
}
END_TEST

START_TEST(test_same)
{
	static const struct {
		const char *one, *other;
		bool same;
	} cases[] = {
		{"\"a\"", "\"a\"", true},
		{"W/\"a\"", "\"a\"", true},
		{"\"a\"", "W/\"a\"", true},
		{"W/\"a\"", "W/\"a\"", true},
		{"\"a\"", "\"b\"", false},
		{"W/\"a\"", "W/\"b\"", false},
		{"w/\"a\"", "\"a\"", false},
		{"W", "", false},
		{"W/", "", true},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct slice one = {cases[i].one, strlen(cases[i].one)},
			     other = {cases[i].other, strlen(cases[i].other)};

		ck_assert_msg(etag_is_same(one, other) == cases[i].same, "%s, %s", cases[i].one,
			      cases[i].other);
		ck_assert_msg(etag_is_same(other, one) == cases[i].same, "%s, %s", cases[i].other,
			      cases[i].one);
	}
}
END_TEST

static const struct {
	const char *list;
	bool strong, weak; /* whether the list contains "abc" */
} lists[] = {
	{"\"abc\"", true, true},
	{"*", true, true},
	{"W/\"abc\"", false, true},
	{"\"abd\"", false, false},
	{"\"ab\"", false, false},
	{"\"abcd\"", false, false},
	{"\"ABC\"", false, false},
	{"\"x\", \"abc\"", true, true},
	{"\"abc\", \"x\"", true, true},
	{"\"x\",\"abc\"", true, true},
	{"\"x\"\t ,\t \"abc\"\t", true, true},
	{"W/\"abc\", \"abc\"", true, true},
	{"\"abc\", W/\"abc\"", true, true},
	{"W/\"x\", W/\"abc\"", false, true},
	{", ,\"abc\",", true, true},
	{",,,", false, false},
	{"", false, false},
	{"abc", false, false},
	{"\"abc", false, false},
	{"abc\"", false, false},
	{"w/\"abc\"", false, false}, /* case-sensitive */
	{"W\"abc\"", false, false},
	{"W/ \"abc\"", false, false},
	{"W/", false, false},
	{"W/W/\"abc\"", false, false},
	{"*, \"abc\"", false, false}, /* "*" must be alone */
	{"\"abc\", *", true, true},   /* found before the error */
	{"\"x\", *", false, false},
	{"**", false, false},
	{"\"x\" \"abc\"", false, false},
	{"\"x\"\"abc\"", false, false},
	{"x, \"abc\"", false, false},
	{"\"a b\", \"abc\"", false, false}, /* a tag cannot contain a blank */
	{"\"a,b\", \"abc\"", true, true},   /* it can contain a comma */
	{"\"a\\\", \"abc\"", true, true},   /* and a backslash is an ordinary byte of it */
	{"\"\xc3\xa4\", \"abc\"", true, true},
	{"\"\", \"abc\"", true, true},
	{"\"\"", false, false},
	{"\"x\";\"abc\"", false, false},
	{"'abc'", false, false},
};

START_TEST(test_lists)
{
	const struct slice tag = {"\"abc\"", 5};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		size_t length = strlen(lists[i].list);
		char *copy = must_alloc(length);
		struct slice list = {copy, length};

		memcpy(copy, lists[i].list, length);
		ck_assert_msg(etag_listed(list, tag, true) == lists[i].strong, "strong: %s",
			      lists[i].list);
		ck_assert_msg(etag_listed(list, tag, false) == lists[i].weak, "weak: %s",
			      lists[i].list);
		free(copy);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_format);
	tcase_add_test(tcase, test_each_part_counts);
	tcase_add_test(tcase, test_same);
	tcase_add_test(tcase, test_lists);
}

RUN_SUITE("etag", fill)
