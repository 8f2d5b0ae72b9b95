/* SPDX-License-Identifier: MIT */
/*
 * test-dav-properties.c - unit tests of dav-properties.c: properties as extended attributes, what
 * other programs put there, and file systems without them.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "dav/dav-properties.h"

#include "dav-fixture.h"
#include "suite.h"

static int file;

/* Returns false where the file system has no such attributes. */
static bool begin(void)
{
	put("a", "");
	file = open_at("a", O_RDONLY);
	if (fsetxattr(file, "user.test", "1", 1, 0) == 0)
		return true;
	ck_assert_int_eq(errno, EOPNOTSUPP);
	ck_assert_int_eq(dav_property_set(file, "u", "a", "<a xmlns='u'/>"), -EOPNOTSUPP);
	ck_assert_int_eq(dav_property_remove(file, "u", "a"), 0);
	ck_assert_ptr_null(dav_property_get(file, "u", "a"));
	puts("no extended attributes on this file system");
	return false;
}

static void expect_value(int fd, const char *space, const char *local, const char *xml)
{
	char *value = dav_property_get(fd, space, local);

	ck_assert_msg(g_strcmp0(value, xml) == 0, "%s %s: %s", space, local, value);
	g_free(value);
}

static void see(const char *space, const char *local, const char *xml, void *context)
{
	g_string_append_printf(context, "%s|%s|%s;", space, local, xml);
}

static void expect_all(int fd, const char *expected)
{
	GString *text = g_string_new(NULL);

	dav_properties_each(fd, see, text);
	ck_assert_str_eq(text->str, expected);
	g_string_free(text, TRUE);
}

START_TEST(test_set)
{
	if (!begin())
		return;
	expect_value(file, "u", "a", NULL);
	ck_assert_int_eq(dav_property_set(file, "u", "a", "<a xmlns=\"u\">1</a>"), 0);
	ck_assert_int_eq(dav_property_set(file, "", "a", "<a/>"), 0);
	expect_value(file, "u", "a", "<a xmlns=\"u\">1</a>");
	expect_value(file, "", "a", "<a/>");
	expect_value(file, "v", "a", NULL);
	ck_assert_int_eq(dav_property_set(file, "u", "a", "<a xmlns=\"u\">2</a>"), 0);
	expect_value(file, "u", "a", "<a xmlns=\"u\">2</a>");
	ck_assert_int_eq(dav_property_remove(file, "", "a"), 0);
	ck_assert_int_eq(dav_property_remove(file, "", "a"), 0);
	expect_all(file, "u|a|<a xmlns=\"u\">2</a>;");
	close(file);
}
END_TEST

START_TEST(test_too_long)
{
	char *xml = must_alloc(DAV_PROPERTY_MAX + 1);

	if (begin()) {
		memset(xml, 'x', DAV_PROPERTY_MAX);
		xml[DAV_PROPERTY_MAX] = '\0';
		ck_assert_int_eq(dav_property_set(file, "u", "a", xml), -E2BIG);
		close(file);
	}
	free(xml);
}
END_TEST

/* What is not what we write is not shown. */
START_TEST(test_strange)
{
	static const char *const values[] = {
		"",
		"x",
		"u\na",
		"u\na\n",
		"u\na\n<a",
		"u\na\n<b xmlns='u'/>",
		"u\na\n<a/>",
		"u\na\n<a xmlns='u'>\xff</a>",
		"u\na\n<!DOCTYPE a><a xmlns='u'/>",
	};

	if (!begin())
		return;
	for (unsigned i = 0; i < G_N_ELEMENTS(values); i++) {
		ck_assert_int_eq(
			fsetxattr(file, "user.sweet.dav.x", values[i], strlen(values[i]), 0), 0);
		expect_all(file, "");
	}
	ck_assert_int_eq(fsetxattr(file, "user.sweet.dav.x", "u\na\n<a xmlns='u'/>\0", 19, 0), 0);
	expect_all(file, "");
	close(file);
}
END_TEST

START_TEST(test_copy)
{
	int other;

	if (!begin())
		return;
	put("b", "");
	other = open_at("b", O_RDONLY);
	ck_assert_int_eq(dav_property_set(file, "u", "a", "<a xmlns=\"u\"/>"), 0);
	ck_assert_int_eq(dav_properties_copy(file, other), 0);
	expect_all(other, "u|a|<a xmlns=\"u\"/>;");
	/* Those of other programs are not copied. */
	ck_assert_int_lt(fgetxattr(other, "user.test", NULL, 0), 0);
	close(other);
	close(file);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_set);
	tcase_add_test(tcase, test_too_long);
	tcase_add_test(tcase, test_strange);
	tcase_add_test(tcase, test_copy);
}

RUN_SUITE("dav-properties", fill)
