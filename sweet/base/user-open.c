/* SPDX-License-Identifier: MIT */
/* user-open.c - see user-open.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/user-open.h"

#define FOLDER (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define STEPS_MAX 1000	/* names and links of a path */
#define GROUPS_MAX 1024 /* more are ignored: then some files need root's rights */

static struct {
	bool set;
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	int count;
} user;

void user_open_set(uid_t uid, gid_t gid, const gid_t *groups, int count)
{
	gid_t *copy = count > 0 ? malloc((size_t)count * sizeof(*copy)) : NULL;

	if (copy)
		memcpy(copy, groups, (size_t)count * sizeof(*copy));
	free(user.groups);
	user.set = true;
	user.uid = uid;
	user.gid = gid;
	user.groups = copy;
	user.count = copy ? count : 0;
}

static int plain(const char *path, int flags, mode_t mode)
{
	int fd = open(path, flags, mode);

	return fd < 0 ? -errno : fd;
}

/* --- with the user's rights ------------------------------------------------------------------- */

/* What this thread was before. */
struct root {
	gid_t groups[GROUPS_MAX];
	int count;
	gid_t gid;
	uid_t uid;
};

/* The C library would set the groups of all threads. */
static int set_groups(int count, const gid_t *groups)
{
	return syscall(SYS_setgroups, (size_t)count, groups) < 0 ? -errno : 0;
}

/* Gives this thread the user's rights to files; returns 0 or -errno. */
static int become_user(struct root *root)
{
	int error;

	root->count = getgroups(GROUPS_MAX, root->groups);
	error = root->count < 0 ? -errno : set_groups(user.count, user.groups);
	if (error)
		return error;
	root->gid = (gid_t)setfsgid(user.gid);
	/* Takes the capabilities for files, too. */
	root->uid = (uid_t)setfsuid(user.uid);
	return 0;
}

static void become_root(const struct root *root)
{
	(void)setfsuid(root->uid);
	(void)setfsgid(root->gid);
	(void)set_groups(root->count, root->groups);
}

static int as_user(const char *path, int flags, mode_t mode)
{
	struct root root;
	int result = become_user(&root);

	if (result)
		return result;
	result = plain(path, flags, mode);
	become_root(&root);
	return result;
}

/* --- with root's rights ----------------------------------------------------------------------- */

/* Whether the user can make names in the folder, or give itself the right to. */
static bool can_write(int folder)
{
	struct root root;
	struct stat stat;
	bool can;

	if (fstat(folder, &stat) < 0 || stat.st_uid == user.uid || become_user(&root))
		return true;
	/* Asks the kernel, which knows lists of access rights (acl(5)), too. */
	can = syscall(SYS_faccessat2, folder, "", W_OK, AT_EACCESS | AT_EMPTY_PATH) == 0 ||
	      (errno != EACCES && errno != EROFS);
	become_root(&root);
	return can;
}

/* A folder on the way. */
struct folder {
	int fd;
	bool writable; /* by the user */
	bool sticky;   /* who can write it can replace only what is its own */
};

/* Goes to another folder; returns 0 or -errno. */
static int enter(struct folder *folder, int fd)
{
	struct stat stat;

	if (folder->fd >= 0)
		close(folder->fd);
	folder->fd = fd;
	if (fd < 0 || fstat(fd, &stat) < 0)
		return -errno;
	folder->writable = can_write(fd);
	folder->sticky = stat.st_mode & S_ISVTX && stat.st_uid != user.uid;
	return 0;
}

/* Puts where the link leads before the rest of the path, and goes to its beginning. */
static int follow(struct folder *folder, const char *name, char *path, const char *rest)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(folder->fd, name, target, sizeof(target) - 1);

	if (length < 0)
		return -errno;
	target[length] = '\0';
	if (snprintf(path, PATH_MAX, "%s%s%s", target, *rest ? "/" : "", rest) >= PATH_MAX)
		return -ENAMETOOLONG;
	return *path == '/' ? enter(folder, open("/", FOLDER)) : 0;
}

/*
 * Takes the first name off the path, and opens it, goes there, or follows it.  Returns true if that
 * was all: *result is a descriptor, -errno or USER_OPEN_UNSAFE.
 */
static bool step(struct folder *folder, char *path, int flags, mode_t mode, int *result)
{
	char rest[PATH_MAX], name[PATH_MAX];
	size_t skip = strspn(path, "/"), length = strcspn(path + skip, "/");
	struct stat stat;
	bool there, last;

	memcpy(name, path + skip, length);
	name[length] = '\0';
	skip += length;
	strcpy(rest, path + skip + strspn(path + skip, "/"));
	last = !*rest;
	if (!length)
		strcpy(name, ".");
	there = fstatat(folder->fd, name, &stat, AT_SYMLINK_NOFOLLOW) == 0;
	if (folder->writable && !(folder->sticky && there && stat.st_uid != user.uid)) {
		*result = USER_OPEN_UNSAFE;
		return true;
	}
	if (there && S_ISLNK(stat.st_mode)) {
		*result = follow(folder, name, path, rest);
		return *result != 0;
	}
	*result = openat(folder->fd, name, last ? flags | O_NOFOLLOW : FOLDER, mode);
	if (*result < 0)
		*result = -errno;
	if (*result < 0 || last)
		return true;
	strcpy(path, rest);
	*result = enter(folder, *result);
	return *result != 0;
}

static int as_root(const char *name, int flags, mode_t mode)
{
	struct folder folder = {.fd = -1};
	char path[PATH_MAX];
	int result;
	bool over;

	if (snprintf(path, sizeof(path), "%s", name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	result = enter(&folder, open(*path == '/' ? "/" : ".", FOLDER));
	over = result != 0;
	for (unsigned i = 0; i < STEPS_MAX && !over; i++)
		over = step(&folder, path, flags, mode, &result);
	if (folder.fd >= 0)
		close(folder.fd);
	return over ? result : -ELOOP;
}

int user_open(const char *path, int flags, mode_t mode)
{
	int fd;

	if (!user.set || user.uid == 0 || geteuid() != 0)
		return plain(path, flags, mode);
	fd = as_user(path, flags, mode);
	if (fd != -EACCES && fd != -EPERM)
		return fd;
	return as_root(path, flags, mode);
}

const char *user_open_error(int error)
{
	if (error == USER_OPEN_UNSAFE)
		return "the user that the server becomes may not open it, but can write one of its "
		       "folders, so it may lead to any file";
	return strerror(-error);
}
