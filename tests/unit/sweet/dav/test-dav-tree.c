/* SPDX-License-Identifier: MIT */
/*
 * test-dav-tree.c - unit tests of dav-tree.c: whole folders are copied and removed, what fails is
 * named, and links lead nowhere else.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/symlinks.h"
#include "dav/dav-tree.h"

#include "dav-fixture.h"
#include "suite.h"

static _Atomic bool leaving;
static struct dav_tree tree;

static void open_tree(const char *path)
{
	atomic_store(&leaving, false);
	tree = (struct dav_tree){.leaving = &leaving,
				 .reads = {folder, SYMLINKS_INSIDE},
				 .path = g_string_new("/dav/"),
				 .file = g_string_new(path)};
	g_string_append(tree.path, path);
}

static void close_tree(void)
{
	/* It is as it was before. */
	ck_assert_uint_eq(tree.path->len, strlen("/dav/") + tree.file->len);
	g_string_free(tree.path, TRUE);
	g_string_free(tree.file, TRUE);
	if (tree.failures)
		g_string_free(tree.failures, TRUE);
}

static void make(const char *name)
{
	ck_assert_int_eq(mkdirat(folder, name, 0755), 0);
}

static void make_source(void)
{
	make("s");
	make("s/f");
	make("s/f/empty");
	put("s/a", "a");
	put("s/f/b", "b");
	put("s/.hidden", "h");
}

static int copy(const char *from, bool is_folder, const char *to)
{
	int source = open_at(from, O_RDONLY), error;

	error = dav_tree_copy(&tree, source, is_folder, folder, to);
	close(source);
	return error;
}

START_TEST(test_copy)
{
	make_source();
	open_tree("s");
	ck_assert_int_eq(copy("s", true, "t"), 0);
	expect_text("t/a", "a");
	expect_text("t/f/b", "b");
	ck_assert(exists("t/f/empty"));
	ck_assert(!exists("t/.hidden"));
	ck_assert_int_eq(copy("s", true, "t"), -EEXIST);
	tree.hidden = true;
	ck_assert_int_eq(copy("s", true, "h"), 0);
	expect_text("h/.hidden", "h");
	tree.shallow = true;
	ck_assert_int_eq(copy("s", true, "e"), 0);
	ck_assert(exists("e") && !exists("e/a"));
	ck_assert_ptr_null(tree.failures);
	close_tree();
}
END_TEST

START_TEST(test_copy_file)
{
	put("a", "new");
	put("b", "old");
	open_tree("a");
	ck_assert_int_eq(copy("a", false, "c"), 0);
	ck_assert_int_eq(copy("a", false, "b"), -EEXIST);
	expect_text("b", "old");
	tree.replace = true;
	ck_assert_int_eq(copy("a", false, "b"), 0);
	expect_text("b", "new");
	expect_text("c", "new");
	close_tree();
}
END_TEST

/* Links to files inside are copied as files; others fail, and are named. */
START_TEST(test_copy_links)
{
	make_source();
	ck_assert_int_eq(symlinkat("f/b", folder, "s/inside"), 0);
	ck_assert_int_eq(symlinkat("/etc/passwd", folder, "s/outside"), 0);
	ck_assert_int_eq(symlinkat("f", folder, "s/folder"), 0);
	ck_assert_int_eq(mkfifoat(folder, "s/pipe", 0644), 0);
	open_tree("s");
	ck_assert_int_eq(copy("s", true, "t"), 1);
	/* Without openat2(), as under Valgrind, no link is followed. */
	if (has_openat2())
		expect_text("t/inside", "b");
	expect_text("t/f/b", "b");
	ck_assert(!exists("t/outside") && !exists("t/folder") && !exists("t/pipe"));
	ck_assert_uint_eq(tree.failed, has_openat2() ? 3 : 4);
	ck_assert_ptr_nonnull(strstr(tree.failures->str, "/dav/s/outside"));
	ck_assert_ptr_nonnull(strstr(tree.failures->str, "/dav/s/folder"));
	ck_assert_ptr_nonnull(strstr(tree.failures->str, "/dav/s/pipe"));
	close_tree();
}
END_TEST

/* A copy does not contain itself. */
START_TEST(test_copy_into_itself)
{
	make_source();
	open_tree("s");
	ck_assert_int_eq(copy("s", true, "s/f/t"), 0);
	expect_text("s/f/t/a", "a");
	ck_assert(!exists("s/f/t/f/t"));
	close_tree();
}
END_TEST

START_TEST(test_remove)
{
	make_source();
	put("kept", "kept");
	ck_assert_int_eq(symlinkat("../kept", folder, "s/link"), 0);
	ck_assert_int_eq(symlinkat(".", folder, "s/f/loop"), 0);
	open_tree("s");
	ck_assert_int_eq(dav_tree_remove(&tree, folder, "s"), 0);
	ck_assert(!exists("s"));
	expect_text("kept", "kept");
	ck_assert_int_eq(dav_tree_remove(&tree, folder, "s"), -ENOENT);
	ck_assert_int_eq(dav_tree_remove(&tree, folder, "kept"), 0);
	ck_assert(!exists("kept"));
	close_tree();
}
END_TEST

/* Deeper folders than the limit are left alone, and named. */
START_TEST(test_depth)
{
	GString *path = g_string_new("s");

	for (unsigned i = 0; i < DAV_TREE_DEPTH_MAX + 1; i++) {
		make(path->str);
		g_string_append(path, "/d");
	}
	open_tree("s");
	ck_assert_int_eq(copy("s", true, "t"), 1);
	ck_assert_uint_eq(tree.failed, 1);
	ck_assert_int_eq(dav_tree_remove(&tree, folder, "s"), 1);
	ck_assert_uint_eq(tree.failed, 2);
	ck_assert(exists("s"));
	ck_assert_int_eq(dav_tree_remove(&tree, folder, "t"), 0);
	close_tree();
	g_string_free(path, TRUE);
}
END_TEST

START_TEST(test_leaving)
{
	make_source();
	open_tree("s");
	atomic_store(&leaving, true);
	ck_assert_int_eq(copy("s", true, "t"), -ECANCELED);
	ck_assert_int_eq(dav_tree_remove(&tree, folder, "s"), -ECANCELED);
	ck_assert(exists("s/f/b"));
	close_tree();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_copy);
	tcase_add_test(tcase, test_copy_file);
	tcase_add_test(tcase, test_copy_links);
	tcase_add_test(tcase, test_copy_into_itself);
	tcase_add_test(tcase, test_remove);
	tcase_add_test(tcase, test_depth);
	tcase_add_test(tcase, test_leaving);
}

RUN_SUITE("dav-tree", fill)
