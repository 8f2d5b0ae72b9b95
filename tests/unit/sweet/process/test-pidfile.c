/* SPDX-License-Identifier: MIT */
/*
 * test-pidfile.c - unit tests of pidfile.c, in a folder of their own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process/pidfile.h"

#include "suite.h"

static char folder[64], path[80];

static void set_up(void)
{
	make_directory(folder);
	snprintf(path, sizeof(path), "%s/pid", folder);
}

static void tear_down(void)
{
	unlink(path);
	ck_assert_int_eq(rmdir(folder), 0);
}

static void put(const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (int)strlen(text));
	close(fd);
}

static void check_content(const char *expected)
{
	char text[64];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = read(fd, text, sizeof(text) - 1);

	ck_assert_int_ge(length, 0);
	text[length] = '\0';
	ck_assert_str_eq(text, expected);
	close(fd);
}

static bool is_there(void)
{
	struct stat file;

	return lstat(path, &file) == 0;
}

START_TEST(test_write_and_remove)
{
	unsigned descriptors = open_descriptors();
	char expected[32];

	snprintf(expected, sizeof(expected), "%d\n", (int)getpid());
	ck_assert_int_eq(pidfile_write(path), 0);
	check_content(expected);
	/* The longer content of an earlier process. */
	put("123456789012345678901234567890\n");
	ck_assert_int_eq(pidfile_write(path), 0);
	check_content(expected);
	pidfile_remove(path);
	ck_assert(!is_there());
	pidfile_remove(path);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/* The file of another process, and other kinds of files. */
START_TEST(test_not_ours)
{
	static const char *const others[] = {"", "1\n", "x", "-1\n"};

	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		put(others[i]);
		pidfile_remove(path);
		ck_assert(is_there());
	}
}
END_TEST

START_TEST(test_refused)
{
	char other[80];

	/* No link is followed, even to a harmless file: the file takes its place. */
	snprintf(other, sizeof(other), "%s/other", folder);
	ck_assert_int_eq(symlink(other, path), 0);
	pidfile_remove(path);
	ck_assert(is_there());
	ck_assert_int_eq(pidfile_write(path), 0);
	ck_assert_int_lt(access(other, F_OK), 0);
	pidfile_remove(path);
	ck_assert(!is_there());
	ck_assert_int_eq(pidfile_write("/no/such/folder/pid"), -ENOENT);
	ck_assert_int_eq(pidfile_write(folder), -EISDIR);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_write_and_remove);
	tcase_add_test(tcase, test_not_ours);
	tcase_add_test(tcase, test_refused);
}

RUN_SUITE("pidfile", fill)
