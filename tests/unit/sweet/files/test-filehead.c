/* SPDX-License-Identifier: MIT */
/*
 * test-filehead.c - unit tests of filehead.c: the lines, and where they are.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/slice.h"
#include "files/docroot.h"
#include "files/filehead.h"
#include "http/etag.h"

#include "suite.h"

#define NOW 1700000000

static const struct file_version version = {
	.device = 1,
	.inode = 2,
	.size = 1234567890123,
	.modified = {784111777, 999999999},
	.changed = {784111778, 0},
};

static bool is(struct slice slice, const char *text)
{
	return slice.length == strlen(text) && memcmp(slice.at, text, slice.length) == 0;
}

START_TEST(test_lines)
{
	struct filehead head;
	struct slice etag, common;
	char expected[FILEHEAD_MAX];

	filehead_write(&head, &version, ETAG_FILE, "text/plain", NOW);
	etag = filehead_etag(&head);
	ck_assert_int_eq(etag.at[0], '"');
	ck_assert_int_eq(etag.at[ETAG_LENGTH - 1], '"');
	ck_assert_str_eq(head.mime, "text/plain");
	ck_assert_int_eq(head.modified, 784111777);
	sprintf(expected,
		"Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nETag: %.*s\r\n"
		"Accept-Ranges: bytes\r\n",
		(int)etag.length, etag.at);
	common = filehead_common(&head);
	ck_assert(is(common, expected));
	ck_assert(is((struct slice){head.text, head.own},
		     "Content-Type: text/plain\r\nContent-Length: 1234567890123\r\n"));
	ck_assert_uint_eq(head.own + common.length, head.length);
}
END_TEST

static bool same_tag(const struct file_version *other, enum etag_kind kind)
{
	struct filehead one, two;

	filehead_write(&one, &version, kind, "a/b", NOW);
	filehead_write(&two, other, kind, "a/b", NOW);
	return memcmp(filehead_etag(&one).at, filehead_etag(&two).at, ETAG_LENGTH) == 0;
}

/* What a copy on another machine has, and what chmod changes. */
START_TEST(test_kinds)
{
	struct file_version copy = version;

	copy.device++;
	copy.inode++;
	copy.changed.tv_sec++;
	copy.mode = 0600;
	ck_assert(same_tag(&copy, ETAG_TIME) && !same_tag(&copy, ETAG_FILE));
	copy.modified.tv_nsec--;
	ck_assert(!same_tag(&copy, ETAG_TIME));
	copy.modified.tv_nsec++;
	copy.size--;
	ck_assert(!same_tag(&copy, ETAG_TIME));
}
END_TEST

/* A time of modification in the future counts as now. */
START_TEST(test_future)
{
	struct file_version later = version;
	struct filehead head;

	later.modified.tv_sec = NOW + 100;
	filehead_write(&head, &later, ETAG_FILE, "a/b", NOW);
	ck_assert_int_eq(head.modified, NOW);
	ck_assert(head.capped);
	ck_assert_ptr_nonnull(memmem(head.text, head.length, "Tue, 14 Nov 2023 22:13:20 GMT", 29));
	later.modified.tv_sec = NOW;
	filehead_write(&head, &later, ETAG_FILE, "a/b", NOW);
	ck_assert(!head.capped && head.modified == NOW);
}
END_TEST

/* The maximum length. */
START_TEST(test_largest)
{
	char type[200];
	struct file_version largest = version;
	struct filehead head;

	memset(type, 't', sizeof(type) - 1);
	type[sizeof(type) - 1] = '\0';
	largest.size = INT64_MAX;
	filehead_write(&head, &largest, ETAG_FILE, type, NOW);
	ck_assert_uint_lt(head.length, FILEHEAD_MAX);
	ck_assert_mem_eq(head.text + head.length - 2, "\r\n", 2);
	ck_assert_uint_eq(strspn(head.text + strlen("Content-Type: "), "t"), 128);
	ck_assert_int_eq(filehead_etag(&head).at[0], '"');
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_lines);
	tcase_add_test(tcase, test_kinds);
	tcase_add_test(tcase, test_future);
	tcase_add_test(tcase, test_largest);
}

RUN_SUITE("filehead", fill)
