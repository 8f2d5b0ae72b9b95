/* SPDX-License-Identifier: MIT */
/*
 * test-user-open.c - unit tests of user-open.c: what root opens for a server that another user will
 * be, and where that user can lead it.  Without root there is nothing to test.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/user-open.h"

#include "suite.h"

#define USER 54321
#define GROUP 54322 /* one more of the user's groups */
#define APPEND (O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC)

static char top[] = "/tmp/test-user-open-XXXXXX";

static const char *at(const char *name)
{
	static char paths[4][256];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", top, name);
	return path;
}

static void folder(const char *name, uid_t uid, gid_t gid, mode_t mode)
{
	ck_assert_int_eq(mkdir(at(name), 0700), 0);
	ck_assert_int_eq(chown(at(name), uid, gid), 0);
	ck_assert_int_eq(chmod(at(name), mode), 0);
}

static void file(const char *name, uid_t uid)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fchown(fd, uid, uid), 0);
	close(fd);
}

static void link_to(const char *target, const char *name)
{
	ck_assert_int_eq(symlink(target, at(name)), 0);
}

/* Returns the owner of what was opened, or an error. */
static long owner(const char *path, int flags)
{
	int fd = user_open(path, flags, 0640);
	struct stat stat;

	if (fd < 0)
		return fd;
	ck_assert_int_eq(fstat(fd, &stat), 0);
	close(fd);
	return (long)stat.st_uid;
}

static bool begin(void)
{
	const gid_t groups[] = {USER, GROUP};

	if (geteuid() != 0)
		return false;
	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_int_eq(chmod(top, 0755), 0);
	ck_assert_int_eq(chdir(top), 0);
	folder("root", 0, 0, 0755);
	folder("own", USER, USER, 0755);
	folder("group", 0, GROUP, 0770);
	folder("all", 0, 0, 01777);
	folder("root/secret", 0, 0, 0700);
	file("root/secret/file", 0);
	file("root/file", 0);
	file("own/file", USER);
	user_open_set(USER, USER, groups, 2);
	return true;
}

static void end(void)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf %s", top);
	ck_assert_int_eq(system(command), 0);
}

/* Each in its place: what the user makes is the user's. */
START_TEST(test_honest)
{
	if (!begin())
		return;
	ck_assert_int_eq(owner(at("own/file"), APPEND), USER);
	ck_assert_int_eq(owner(at("own/new"), APPEND), USER);
	ck_assert_int_eq(owner("own/new", APPEND), USER);
	ck_assert_int_eq(owner(at("group/new"), APPEND), USER);
	ck_assert_int_eq(owner(at("root/file"), APPEND), 0);
	ck_assert_int_eq(owner(at("root/new"), APPEND), 0);
	ck_assert_int_eq(owner("root//new2", APPEND), 0);
	ck_assert_int_eq(owner(at("root/secret/../secret/./new"), APPEND), 0);
	ck_assert_int_eq(owner(at("own/none"), O_RDONLY), -ENOENT);
	ck_assert_int_eq(owner(at("none/file"), APPEND), -ENOENT);
	ck_assert_int_eq(owner(at("root/secret/none"), O_RDONLY), -ENOENT);
	ck_assert_int_eq(owner(at("root/secret"), APPEND), -EISDIR);
	/* Links of root's, as of certificates. */
	link_to("../root/secret/file", "root/live");
	link_to(at("root"), "root/again");
	link_to("again/again/secret", "root/far");
	ck_assert_int_eq(owner(at("root/live"), O_RDONLY), 0);
	ck_assert_int_eq(owner(at("root/far/file"), O_RDONLY), 0);
	link_to("round", "root/round");
	ck_assert_int_eq(owner(at("root/round"), O_RDONLY), -ELOOP);
	/* Nobody but root replaces what is root's there. */
	file("all/roots", 0);
	ck_assert_int_eq(owner(at("all/roots"), APPEND), 0);
	/* The process is root still. */
	ck_assert_int_eq(access(at("root/secret/file"), R_OK), 0);
	ck_assert_int_eq(owner(at("root/secret/file"), O_RDONLY), 0);
	end();
}
END_TEST

#define UNSAFE(name) ck_assert_int_eq(owner(at(name), APPEND), USER_OPEN_UNSAFE)

/* The user made a link, or could have. */
START_TEST(test_led_elsewhere)
{
	struct stat stat;

	if (!begin())
		return;
	link_to("../root/secret/file", "own/old");
	link_to("../root/new", "own/new");
	link_to("../root", "own/folder");
	link_to("../root/secret/file", "group/old");
	link_to("../own/old", "root/through");
	link_to("../own/roots", "root/into");
	file("own/roots", 0);
	file("group/roots", 0);
	UNSAFE("own/old");
	UNSAFE("own/new");
	UNSAFE("own/folder/file");
	UNSAFE("own/folder/new");
	UNSAFE("own/roots");
	UNSAFE("group/old");
	UNSAFE("group/roots");
	UNSAFE("root/through");
	UNSAFE("root/into");
	ck_assert_int_eq(owner("own/old", APPEND), USER_OPEN_UNSAFE);
	ck_assert_int_eq(lstat(at("root/new"), &stat), -1);
	/* In a folder of everybody's, a link of the user's. */
	link_to("../root/secret/file", "all/old");
	ck_assert_int_eq(lchown(at("all/old"), USER, USER), 0);
	UNSAFE("all/old");
	/* A working folder of the user's. */
	ck_assert_int_eq(chdir(at("own")), 0);
	ck_assert_int_eq(owner("roots", APPEND), USER_OPEN_UNSAFE);
	ck_assert_int_eq(owner("../root/file", APPEND), USER_OPEN_UNSAFE);
	ck_assert_str_eq(user_open_error(-ENOENT), strerror(ENOENT));
	ck_assert_ptr_nonnull(strstr(user_open_error(USER_OPEN_UNSAFE), "any file"));
	ck_assert_int_eq(chdir("/"), 0);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_honest);
	tcase_add_test(tcase, test_led_elsewhere);
}

RUN_SUITE("user-open", fill)
