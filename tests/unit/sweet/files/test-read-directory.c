/* SPDX-License-Identifier: MIT */
/*
 * test-read-directory.c - unit tests of read-directory.c, and of what docroot.c
 * provides for it: which names are listed, as which type, and how many.  A folder of
 * the test's own; single-threaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/docroot.h"
#include "files/read-directory.h"
#include "http/autoindex-render.h"

#include "suite.h"

static char base[64]; /* contains the root, and files outside of it */
static struct docroot root;

static const char *at(const char *name)
{
	static char paths[2][512];
	static unsigned turn;
	char *path = paths[turn++ % 2];

	snprintf(path, sizeof(paths[0]), "%s/%s", base, name);
	return path;
}

static void put(const char *name, size_t size)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
	close(fd);
}

static void set_up(void)
{
	make_directory(base);
	ck_assert_int_eq(mkdir(at("root"), 0755), 0);
	ck_assert_int_eq(mkdir(at("root/sub"), 0755), 0);
	put("secret", 1);
	root.fd = docroot_open(at("root"));
	ck_assert_int_ge(root.fd, 0);
}

static void tear_down(void)
{
	char command[128];

	close(root.fd);
	snprintf(command, sizeof(command), "rm -r %s", base);
	ck_assert_int_eq(system(command), 0);
}

/* Reads a folder; `got` has the names in order, each after '/' or '-'. */
static void check_listed(const char *path, bool hidden, unsigned max, const char *expected)
{
	struct autoindex_order order = {.column = AUTOINDEX_NAME};
	struct directory folder;
	char got[1024] = "";

	ck_assert_int_eq(directory_read(root, path, hidden, max, NULL, &folder), 0);
	autoindex_sort(folder.entries, folder.count, order);
	for (unsigned i = 0; i < folder.count; i++) {
		strcat(got, folder.entries[i].folder ? "/" : "-");
		strcat(got, folder.entries[i].name);
		strcat(got, " ");
	}
	ck_assert_msg(strcmp(got, expected) == 0, "%s: %s instead of %s", path, got, expected);
	directory_clear(&folder);
}

START_TEST(test_names)
{
	check_listed("/sub/", false, 100, "");
	put("root/file", 1234567);
	put("root/.hidden", 1);
	put("root/..odd", 1);
	put("root/sub/\xff\xfe name", 0);
	put("root/sub/line\nend", 0);
	put("root/sub/delete\x7f", 0);
	ck_assert_int_eq(mkdir(at("root/.git"), 0755), 0);
	ck_assert_int_eq(mkfifo(at("root/fifo"), 0644), 0);
	check_listed("/", false, 100, "/sub -file ");
	check_listed("/", true, 100, "/.git /sub -..odd -.hidden -file ");
	check_listed("/sub/", true, 100, "-\xff\xfe name ");
}
END_TEST

START_TEST(test_entry)
{
	struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1700000000, .tv_nsec = 999}};
	struct directory folder;

	put("root/sub/file", 1234567);
	ck_assert_int_eq(utimensat(AT_FDCWD, at("root/sub/file"), times, 0), 0);
	ck_assert_int_eq(directory_read(root, "/sub/", false, 100, NULL, &folder), 0);
	ck_assert_uint_eq(folder.count, 1);
	ck_assert(!folder.more && !folder.entries[0].folder);
	ck_assert_str_eq(folder.entries[0].name, "file");
	ck_assert_uint_eq(folder.entries[0].size, 1234567);
	ck_assert_int_eq(folder.entries[0].modified, 1700000000);
	directory_clear(&folder);
	ck_assert_ptr_null(folder.entries);
}
END_TEST

/* A link counts as its target, if a request would get that. */
START_TEST(test_links)
{
	struct directory folder;

	put("root/file", 777);
	ck_assert_int_eq(symlink("../file", at("root/sub/in")), 0);
	ck_assert_int_eq(symlink("../sub", at("root/sub/folder")), 0);
	ck_assert_int_eq(symlink("../../secret", at("root/sub/out")), 0);
	ck_assert_int_eq(symlink("/etc", at("root/sub/away")), 0);
	ck_assert_int_eq(symlink("none", at("root/sub/dangling")), 0);
	ck_assert_int_eq(symlink("loop", at("root/sub/loop")), 0);
	check_listed("/sub/", false, 100, has_openat2() ? "/folder -in " : "");
	ck_assert_int_eq(directory_read(root, "/sub/", false, 100, NULL, &folder), 0);
	for (unsigned i = 0; i < folder.count; i++)
		if (!folder.entries[i].folder)
			ck_assert_uint_eq(folder.entries[i].size, 777);
	directory_clear(&folder);
}
END_TEST

START_TEST(test_bound)
{
	struct directory folder;
	char name[64];

	for (unsigned i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "root/sub/%02u", i);
		put(name, i);
	}
	ck_assert_int_eq(directory_read(root, "/sub/", false, 50, NULL, &folder), 0);
	ck_assert(folder.count == 50 && !folder.more);
	directory_clear(&folder);
	ck_assert_int_eq(directory_read(root, "/sub/", false, 49, NULL, &folder), 0);
	ck_assert(folder.count == 49 && folder.more);
	directory_clear(&folder);
	/* Names that are not listed do not count. */
	put("root/sub/.hidden", 1);
	ck_assert_int_eq(directory_read(root, "/sub/", false, 50, NULL, &folder), 0);
	ck_assert(folder.count == 50 && !folder.more);
	directory_clear(&folder);
}
END_TEST

START_TEST(test_failures)
{
	unsigned before = open_descriptors();
	struct directory folder;
	bool is_folder;
	struct file_version version;

	put("root/file", 3);
	ck_assert_int_eq(symlink("/etc", at("root/away")), 0);
	ck_assert_int_eq(mkfifo(at("root/fifo"), 0644), 0);
	ck_assert_int_eq(directory_read(root, "/none/", false, 9, NULL, &folder), -ENOENT);
	ck_assert_int_eq(directory_read(root, "/file/", false, 9, NULL, &folder), -ENOTDIR);
	ck_assert_int_eq(directory_read(root, "/fifo/", false, 9, NULL, &folder), -ENOTDIR);
	if (has_openat2()) {
		ck_assert_int_eq(directory_read(root, "/away/", false, 9, NULL, &folder), -EACCES);
		ck_assert_int_eq(directory_read(root, "/../", false, 9, NULL, &folder), -EACCES);
		ck_assert_int_eq(docroot_look(root, "/away/passwd", &is_folder, &version), -EACCES);
	}
	ck_assert_int_eq(docroot_look(root, "/fifo", &is_folder, &version), -EACCES);
	ck_assert_int_eq(docroot_look(root, "/none", &is_folder, &version), -ENOENT);
	ck_assert_int_eq(docroot_look(root, "/sub", &is_folder, &version), 0);
	ck_assert(is_folder);
	ck_assert_int_eq(docroot_look(root, "/file", &is_folder, &version), 0);
	ck_assert(!is_folder && version.size == 3);
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_names);
	tcase_add_test(tcase, test_entry);
	tcase_add_test(tcase, test_links);
	tcase_add_test(tcase, test_bound);
	tcase_add_test(tcase, test_failures);
}

RUN_SUITE("read-directory", fill)
