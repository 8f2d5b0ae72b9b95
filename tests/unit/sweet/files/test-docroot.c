/* SPDX-License-Identifier: MIT */
/*
 * test-docroot.c - unit tests of docroot.c: only files beneath the root are opened, by
 * whatever path; versions detect every change.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "files/docroot.h"

#include "docroot-fixture.h"
#include "suite.h"

static const struct {
	const char *path;
	const char *text; /* NULL: refused */
	int error;	  /* one of two */
	int other;
} paths[] = {
	{"/file", "file", 0, 0},
	{"file", "file", 0, 0},
	{"///file", "file", 0, 0},
	{"/empty", "", 0, 0},
	{"/sub/file", "sub", 0, 0},
	{"/sub//deep/./file", "deep", 0, 0},
	{"/sub/../file", "file", 0, 0},
	{"/ and \xc3\xa4?", "name", 0, 0},
	{"/to-file", "file", 0, 0},
	{"/to-link", "file", 0, 0},
	{"/to-sub/file", "sub", 0, 0},
	{"/to-sub/up", "file", 0, 0},
	{"/winding", "sub", 0, 0},
	{"/", NULL, -EISDIR, 0},
	{"", NULL, -EISDIR, 0},
	{"/.", NULL, -EISDIR, 0},
	{"/sub", NULL, -EISDIR, 0},
	{"/sub/", NULL, -EISDIR, 0},
	{"/sub/..", NULL, -EISDIR, 0},
	{"/to-sub", NULL, -EISDIR, 0},
	{"/nothing", NULL, -ENOENT, 0},
	{"/sub/nothing", NULL, -ENOENT, 0},
	{"/nothing/file", NULL, -ENOENT, 0},
	{"/dangling", NULL, -ENOENT, 0},
	{"/FILE", NULL, -ENOENT, 0},
	{"/file/", NULL, -ENOTDIR, 0},
	{"/file/x", NULL, -ENOTDIR, 0},
	{"/file/..", NULL, -ENOTDIR, 0},
	{"/loop-a", NULL, -ELOOP, 0},
	/* Ways out of the root. */
	{"/..", NULL, -EACCES, 0},
	{"/../secret", NULL, -EACCES, 0},
	{"/../root/file", NULL, -EACCES, 0},
	{"/../root-secret/file", NULL, -EACCES, 0},
	{"/sub/../../secret", NULL, -EACCES, 0},
	{"/sub/deep/../../../secret", NULL, -EACCES, 0},
	{"/out", NULL, -EACCES, 0},
	{"/sub/out", NULL, -EACCES, 0},
	{"/out-folder/secret", NULL, -EACCES, 0},
	{"/out-folder/root/file", NULL, -EACCES, 0},
	{"/to-sub/../../secret", NULL, -EACCES, 0},
	{"/absolute", NULL, -EACCES, 0},
	/* Links by a way around. */
	{"/absolute-inside", "file", 0, 0},
	{"/out-and-back", "file", 0, 0},
	{"/absolute-inside/file", NULL, -ENOTDIR, 0},
	{"/magic", NULL, -EACCES, -ELOOP},
	/* Not files. */
	{"/fifo", NULL, -EACCES, 0},
	{"/socket", NULL, -EACCES, 0},
};

/* Returns whether a path uses a symbolic link or "..": not followed without openat2(). */
static bool winds(const char *path)
{
	char here[512];
	struct stat stat;
	size_t length = 0;

	do {
		length += strspn(path + length, "/");
		if (strncmp(path + length, "..", 2) == 0)
			return true;
		length += strcspn(path + length, "/");
		snprintf(here, sizeof(here), "%s/root/%.*s", base, (int)length, path);
		if (lstat(here, &stat) == 0 && S_ISLNK(stat.st_mode))
			return true;
	} while (path[length]);
	return false;
}

/* _i: 0 with openat2(), 1 without. */
START_TEST(test_paths)
{
	unsigned descriptors = open_descriptors();
	bool walks = _i == 1 || !has_openat2();

	if (walks && has_openat2())
		hide_openat2();
	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct file_version version, again;
		int fd = docroot_open_file(root, paths[i].path, &version);
		char got[16] = "";

		if (walks && winds(paths[i].path)) {
			ck_assert_msg(fd == -EACCES || fd == -ELOOP || fd == -ENOTDIR, "%s: %d",
				      paths[i].path, fd);
			continue;
		}
		if (!paths[i].text) {
			ck_assert_msg(fd == paths[i].error ||
					      (paths[i].other && fd == paths[i].other),
				      "%s: %d, not %d", paths[i].path, fd, paths[i].error);
			continue;
		}
		ck_assert_msg(fd >= 0, "%s: %d", paths[i].path, fd);
		ck_assert_int_eq(read(fd, got, sizeof(got) - 1), (ssize_t)strlen(paths[i].text));
		ck_assert_str_eq(got, paths[i].text);
		ck_assert_int_eq(version.size, (off_t)strlen(paths[i].text));
		ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
		ck_assert_int_eq(docroot_version(fd, &again), 0);
		ck_assert(file_version_equal(&version, &again));
		ck_assert_int_eq(docroot_peek(root, paths[i].path, &again), 0);
		ck_assert(file_version_equal(&version, &again));
		close(fd);
	}
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/* From memory only: the same result, or none. _i as above. */
START_TEST(test_cached)
{
	unsigned descriptors = open_descriptors();

	if (_i == 1 && has_openat2())
		hide_openat2();
	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct file_version version, again;
		int wanted = docroot_open_file(root, paths[i].path, &version);
		int fd = docroot_open_cached(root, paths[i].path, &again);

		if (_i == 1 || !has_openat2())
			ck_assert_int_eq(fd, -EAGAIN);
		else if (fd != -EAGAIN)
			ck_assert_msg(wanted < 0 ? fd == wanted
						 : fd >= 0 && file_version_equal(&version, &again),
				      "%s: %d, not %d", paths[i].path, fd, wanted);
		if (wanted >= 0)
			close(wanted);
		if (fd >= 0)
			close(fd);
	}
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

START_TEST(test_stable)
{
	struct file_version version = {0};

	ck_assert(file_version_is_stable(&version));
	clock_gettime(CLOCK_REALTIME, &version.changed);
	file_version_await_stable(&version);
	ck_assert(file_version_is_stable(&version));
	/* In the future: the clock was set back, so waiting is useless. */
	version.changed.tv_sec += 1000;
	ck_assert(file_version_is_stable(&version));
}
END_TEST

START_TEST(test_long_paths)
{
	struct file_version version;
	char path[6000];

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[256] = '\0';
	ck_assert_int_eq(docroot_open_file(root, path, &version), -ENOENT);
	path[256] = 'x';
	path[257] = '\0';
	ck_assert_int_eq(docroot_open_file(root, path, &version), -ENAMETOOLONG);
	for (size_t i = 0; i < sizeof(path); i += 2)
		memcpy(path + i, "./", 2);
	memcpy(path + 5000, "file", 5);
	ck_assert_int_eq(docroot_open_file(root, path, &version), -ENAMETOOLONG);
}
END_TEST

START_TEST(test_root)
{
	int fd;

	ck_assert_int_eq(docroot_open(at("nothing")), -ENOENT);
	ck_assert_int_eq(docroot_open(at("root/file")), -ENOTDIR);
	ck_assert_int_eq(docroot_open(at("root/fifo")), -ENOTDIR);
	ck_assert_int_eq(docroot_open(""), -ENOENT);
	/* The path of the root itself may contain a link. */
	fd = docroot_open(at("root/to-sub"));
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}
END_TEST

/* A user without the permission to read it, if the tests can become one. */
START_TEST(test_permissions)
{
	bool can_become = geteuid() == 0;
	struct file_version version;

	ck_assert_int_eq(chmod(at("root/file"), 0), 0);
	ck_assert_int_eq(chmod(at("root/sub"), 0), 0);
	if (can_become)
		ck_assert_int_eq(seteuid(65534), 0);
	ck_assert_int_eq(chmod(base, 0755), can_become ? -1 : 0);
	ck_assert_int_eq(docroot_open_file(root, "/file", &version), -EACCES);
	ck_assert_int_eq(docroot_open_file(root, "/sub/file", &version), -EACCES);
	ck_assert_int_eq(docroot_peek(root, "/sub/file", &version), -EACCES);
	if (can_become)
		ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(chmod(at("root/file"), 0644), 0);
	ck_assert_int_eq(chmod(at("root/sub"), 0755), 0);
}
END_TEST

static struct file_version peek(const char *path)
{
	struct file_version version;

	ck_assert_int_eq(docroot_peek(root, path, &version), 0);
	return version;
}

START_TEST(test_versions)
{
	struct file_version first = peek("/file"), second, version = first;
	struct timespec times[2] = {first.modified, first.modified};

	ck_assert(file_version_equal(&first, &version));
#define DIFFERS(field, value)                                                                      \
	do {                                                                                       \
		version = first;                                                                   \
		version.field = (value);                                                           \
		ck_assert(!file_version_equal(&first, &version));                                  \
		ck_assert(!file_version_equal(&version, &first));                                  \
	} while (0)
	DIFFERS(device, first.device + 1);
	DIFFERS(inode, first.inode + 1);
	DIFFERS(size, first.size + 1);
	DIFFERS(modified.tv_sec, first.modified.tv_sec + 1);
	DIFFERS(modified.tv_nsec, first.modified.tv_nsec ^ 1);
	DIFFERS(changed.tv_sec, first.changed.tv_sec + 1);
	DIFFERS(changed.tv_nsec, first.changed.tv_nsec ^ 1);
#undef DIFFERS
	/* Another file of the same size with that name. */
	put("root/new", "FILE");
	ck_assert_int_eq(rename(at("root/new"), at("root/file")), 0);
	second = peek("/file");
	ck_assert(!file_version_equal(&first, &second));
	/* Its time of modification is forged: it is recognised all the same. */
	ck_assert_int_eq(utimensat(AT_FDCWD, at("root/file"), times, 0), 0);
	second = peek("/file");
	ck_assert_int_eq(second.modified.tv_nsec, first.modified.tv_nsec);
	ck_assert(!file_version_equal(&first, &second));
	put("root/file", "longer");
	first = peek("/file");
	ck_assert_int_eq(first.size, 6);
	ck_assert(!file_version_equal(&first, &second));
	ck_assert_int_eq(docroot_peek(root, "/nothing", &version), -ENOENT);
	ck_assert_int_eq(docroot_version(-1, &version), -EBADF);
}
END_TEST

/* What happens to an open file, and whether its bytes are known to be the same. */
static void rename_it(void)
{
	ck_assert_int_eq(rename(at("root/file"), at("root/other")), 0);
}

static void replace_it(void)
{
	put("root/other", "FILE");
	ck_assert_int_eq(rename(at("root/other"), at("root/file")), 0);
}

static void link_it(void)
{
	ck_assert_int_eq(link(at("root/file"), at("root/other")), 0);
}

static void hide_it(void)
{
	ck_assert_int_eq(chmod(at("root/file"), 0600), 0);
}

static void restore_it(int fd)
{
	struct stat before;
	struct timespec times[2];

	ck_assert_int_eq(fstat(fd, &before), 0);
	ck_assert_int_eq(pwrite(fd, "X", 1, 0), 1);
	times[0] = times[1] = before.st_mtim;
	ck_assert_int_eq(futimens(fd, times), 0);
}

START_TEST(test_still)
{
	static void (*const changes[])(void) = {rename_it, replace_it, link_it, hide_it};
	struct file_version version;
	int fd;

	(void)unlink(at("root/file"));
	(void)unlink(at("root/other"));
	put("root/file", "file");
	fd = open(at("root/file"), O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(docroot_version(fd, &version), 0);
	file_version_await_stable(&version);
	ck_assert_int_eq(docroot_still(fd, root, "/file", &version, true), 0);
	if (_i < 4)
		changes[_i]();
	if (_i == 0) {
		/* Who does not know its name cannot tell. */
		struct file_version nameless = version;

		ck_assert_int_eq(docroot_still(fd, root, NULL, &nameless, true), -EAGAIN);
	}
	ck_assert_int_eq(docroot_still(fd, root, "/file", &version, true), 0);
	/* It explains that change, and no later one. */
	file_version_await_stable(&version);
	restore_it(fd);
	ck_assert_int_eq(docroot_still(fd, root, "/file", &version, true), -EAGAIN);
	close(fd);
	(void)unlink(at("root/file"));
	(void)unlink(at("root/other"));
	put("root/file", "file");
}
END_TEST

static _Atomic bool over;
static _Atomic unsigned moves;

#define NAMES 5000u

/* Gives the file more and more names, and then less and less. */
static void *name_about(void *context)
{
	unsigned most = scaled(NAMES), names = 0;
	const char *complaint = NULL;
	char file[256], name[256];

	(void)context;
	snprintf(file, sizeof(file), "%s/root/file", base);
	for (; names < most && !complaint; names++) {
		snprintf(name, sizeof(name), "%s/root/name-%u", base, names);
		if (link(file, name))
			complaint = "link";
	}
	while (names--) {
		snprintf(name, sizeof(name), "%s/root/name-%u", base, names);
		if (unlink(name))
			complaint = "unlink";
	}
	atomic_store(&over, true);
	return (void *)(uintptr_t)complaint;
}

/* The time of a change is there before what explains it. */
START_TEST(test_still_while_it_changes)
{
	struct file_version version;
	pthread_t thread;
	void *complaint;
	int fd = docroot_open_file(root, "/file", &version), error = 0;

	ck_assert_int_ge(fd, 0);
	atomic_store(&over, false);
	ck_assert_int_eq(pthread_create(&thread, NULL, name_about, NULL), 0);
	while (!atomic_load(&over) && !error)
		error = docroot_still(fd, root, NULL, &version, true);
	pthread_join(thread, &complaint);
	ck_assert_msg(!complaint, "%s", (const char *)complaint);
	ck_assert_int_eq(error, 0);
	close(fd);
}
END_TEST

/* Moves a folder in and out of another, so that ".." changes its meaning all the time. */
static void *move_about(void *context)
{
	char inside[256], outside[256];

	(void)context;
	snprintf(inside, sizeof(inside), "%s/root/sub/deep", base);
	snprintf(outside, sizeof(outside), "%s/deep", base);
	while (!atomic_load(&over)) {
		if (rename(inside, outside) || rename(outside, inside))
			return "rename";
		atomic_fetch_add(&moves, 1);
	}
	return NULL;
}

/* No path gets out through a folder that is moved meanwhile. */
START_TEST(test_moving_folders)
{
	unsigned opened = 0, rounds = 0;
	pthread_t thread;
	void *complaint;

	/* Without openat2() no ".." is followed, so there is no race. */
	if (!has_openat2()) {
		printf("docroot: no openat2(), folders are not moved about\n");
		return;
	}
	ck_assert_int_eq(pthread_create(&thread, NULL, move_about, NULL), 0);
	while (rounds++ < scaled(20000) || atomic_load(&moves) < 10) {
		struct file_version version;
		int fd = docroot_open_file(root, "/sub/deep/../../../secret", &version);

		expect(fd == -EACCES || fd == -ENOENT);
		fd = docroot_open_file(root, "/sub/deep/../../secret", &version);
		expect(fd == -EACCES || fd == -ENOENT);
		fd = docroot_open_file(root, "/sub/deep/../file", &version);
		expect(fd >= 0 || fd == -EACCES || fd == -ENOENT);
		if (fd >= 0) {
			char got[4];

			expect(read(fd, got, 4) == 3 && memcmp(got, "sub", 3) == 0);
			close(fd);
			opened++;
		}
	}
	atomic_store(&over, true);
	pthread_join(thread, &complaint);
	ck_assert_msg(!complaint, "%s", (const char *)complaint);
	ck_assert_uint_gt(opened, 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_loop_test(tcase, test_paths, 0, 2);
	tcase_add_loop_test(tcase, test_cached, 0, 2);
	tcase_add_test(tcase, test_stable);
	tcase_add_test(tcase, test_long_paths);
	tcase_add_test(tcase, test_root);
	tcase_add_test(tcase, test_permissions);
	tcase_add_test(tcase, test_versions);
	tcase_add_loop_test(tcase, test_still, 0, 5);
	tcase_add_test(tcase, test_still_while_it_changes);
	tcase_add_test(tcase, test_moving_folders);
}

RUN_SUITE("docroot", fill)
