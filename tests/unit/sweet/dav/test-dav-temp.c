/* SPDX-License-Identifier: MIT */
/*
 * test-dav-temp.c - unit tests of dav-temp.c: a file gets its name at once or never, and leaves
 * nothing else; also where a file cannot be without a name.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dav/dav-temp.h"

#include "dav-fixture.h"
#include "suite.h"

static unsigned count_names(void)
{
	DIR *stream = opendir(base);
	unsigned count = 0;

	while (readdir(stream))
		count++;
	closedir(stream);
	return count - 2;
}

static void open_with(struct dav_temp *temp, const char *text, bool named)
{
	ck_assert_int_eq(dav_temp_open(temp, folder), 0);
	if (named && !temp->name[0]) {
		/* As the file system would be that cannot do this. */
		close(temp->fd);
		strcpy(temp->name, ".sweet-test");
		temp->fd = open_at(temp->name, O_RDWR | O_CREAT | O_EXCL);
	}
	ck_assert_int_eq(write(temp->fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void check_all(bool named)
{
	struct dav_temp temp;

	open_with(&temp, "one", named);
	ck_assert_uint_eq(count_names(), named);
	ck_assert_int_eq(dav_temp_commit(&temp, "a", false), 0);
	dav_temp_close(&temp);
	expect_text("a", "one");
	open_with(&temp, "two", named);
	ck_assert_int_eq(dav_temp_commit(&temp, "a", false), -EEXIST);
	expect_text("a", "one");
	ck_assert_int_eq(dav_temp_commit(&temp, "a", true), 0);
	dav_temp_close(&temp);
	expect_text("a", "two");
	open_with(&temp, "three", named);
	dav_temp_close(&temp);
	expect_text("a", "two");
	ck_assert_uint_eq(count_names(), 1);
	/* A folder is not replaced. */
	ck_assert_int_eq(mkdirat(folder, "f", 0755), 0);
	open_with(&temp, "four", named);
	ck_assert_int_eq(dav_temp_commit(&temp, "f", true), -EISDIR);
	dav_temp_close(&temp);
	ck_assert_uint_eq(count_names(), 2);
	/* A link is, and not what it leads to. */
	ck_assert_int_eq(symlinkat("a", folder, "l"), 0);
	open_with(&temp, "five", named);
	ck_assert_int_eq(dav_temp_commit(&temp, "l", true), 0);
	dav_temp_close(&temp);
	expect_text("a", "two");
	expect_text("l", "five");
}

START_TEST(test_without_name)
{
	check_all(false);
}
END_TEST

START_TEST(test_named)
{
	check_all(true);
}
END_TEST

START_TEST(test_no_folder)
{
	struct dav_temp temp;

	ck_assert_int_lt(dav_temp_open(&temp, -1), 0);
	dav_temp_close(&temp);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_without_name);
	tcase_add_test(tcase, test_named);
	tcase_add_test(tcase, test_no_folder);
}

RUN_SUITE("dav-temp", fill)
