/* SPDX-License-Identifier: MIT */
/*
 * test-docroot-open.c - unit tests of docroot-open.c: which symbolic links are followed, with
 * openat2() and without it.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/symlinks.h"
#include "files/docroot.h"

#include "docroot-fixture.h"
#include "suite.h"

/* What each path of symbolic links gets, by symlinks: its text, or NULL. */
static const struct {
	const char *path, *follow, *owner, *deny;
} links[] = {
	{"/file", "file", "file", "file"},
	{"/sub/deep/file", "deep", "deep", "deep"},
	{"/to-file", "file", "file", NULL},
	{"/to-sub/file", "sub", "sub", NULL},
	{"/to-link", "file", "file", NULL},
	{"/out", "secret", "secret", NULL},
	{"/out-folder/secret", "secret", "secret", NULL},
	{"/sub/out", "secret", "secret", NULL},
	{"/absolute-inside", "file", "file", NULL},
	/* Names never lead out, whatever links may do. */
	{"/../secret", NULL, NULL, NULL},
	{"/sub/../../secret", NULL, NULL, NULL},
	{"/out-folder/..", NULL, NULL, NULL},
	{"/loop-a", NULL, NULL, NULL},
	{"/dangling", NULL, NULL, NULL},
	{"/fifo", NULL, NULL, NULL},
};

static void opens(enum symlinks symlinks, const char *path, const char *text)
{
	struct docroot as = {root.fd, symlinks};
	struct file_version version, cached;
	bool folder = true;
	char got[16] = "";
	int fd = docroot_open_file(as, path, &version), other;

	if (!text) {
		ck_assert_msg(fd < 0, "%s: %d", path, (int)symlinks);
		ck_assert_int_lt(docroot_open_cached(as, path, &cached), 0);
		if (strcmp(path, "/fifo") != 0)
			ck_assert_int_lt(docroot_look(as, path, &folder, &version), 0);
		return;
	}
	ck_assert_msg(fd >= 0, "%s: %d: %d", path, (int)symlinks, fd);
	ck_assert_int_eq(read(fd, got, sizeof(got) - 1), (ssize_t)strlen(text));
	ck_assert_str_eq(got, text);
	close(fd);
	ck_assert_int_eq(docroot_look(as, path, &folder, &cached), 0);
	ck_assert(!folder && file_version_equal(&version, &cached));
	other = docroot_open_cached(as, path, &cached);
	ck_assert(other == -EAGAIN || file_version_equal(&version, &cached));
	if (other >= 0)
		close(other);
}

/* _i: 0 with openat2(), 1 without. */
START_TEST(test_symlinks)
{
	unsigned descriptors = open_descriptors();

	if (_i == 1 && has_openat2())
		hide_openat2();
	for (unsigned i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		opens(SYMLINKS_FOLLOW, links[i].path, links[i].follow);
		opens(SYMLINKS_OWNER, links[i].path, links[i].owner);
		opens(SYMLINKS_DENY, links[i].path, links[i].deny);
	}
	/* A link of another user leads nowhere. */
	if (geteuid() == 0) {
		ck_assert_int_eq(lchown(at("root/to-file"), 65534, 65534), 0);
		ck_assert_int_eq(lchown(at("root/out-folder"), 65534, 65534), 0);
		opens(SYMLINKS_OWNER, "/to-file", NULL);
		opens(SYMLINKS_OWNER, "/to-link", "file");
		opens(SYMLINKS_OWNER, "/out-folder/secret", NULL);
		opens(SYMLINKS_FOLLOW, "/out-folder/secret", "secret");
		ck_assert_int_eq(lchown(at("root/file"), 65534, 65534), 0);
		opens(SYMLINKS_OWNER, "/to-file", "file");
	}
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_loop_test(tcase, test_symlinks, 0, 2);
}

RUN_SUITE("docroot-open", fill)
