/* SPDX-License-Identifier: MIT */
/*
 * docroot-open.c - see docroot-open.h.  Stateless, any thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/symlinks.h"
#include "files/docroot-open.h"

/* Opens a name of a folder. */
typedef int opener(int folder, const char *name, int flags);

static int open_itself(int folder, const char *name, int flags)
{
	return openat(folder, name, flags | O_NOFOLLOW);
}

/*
 * Opens one name of a folder; a link, if its owner also owns what it leads to.  Compared is what
 * was opened: a link that is exchanged meanwhile gains nothing.
 */
static int open_owned(int folder, const char *name, int flags)
{
	struct stat link, target;
	int fd;

	if (fstatat(folder, name, &link, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (!S_ISLNK(link.st_mode))
		return openat(folder, name, flags | O_NOFOLLOW);
	fd = openat(folder, name, flags);
	if (fd < 0 || (fstat(fd, &target) == 0 && target.st_uid == link.st_uid))
		return fd;
	close(fd);
	errno = EACCES;
	return -1;
}

/* Opens name by name. */
static int walk(int root, const char *path, int flags, opener *open_name)
{
	int folder = root;

	if (strlen(path) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (;;) {
		size_t length = strcspn(path, "/");
		const char *rest = path + length + strspn(path + length, "/");
		int last = path[length] ? flags | O_DIRECTORY : flags;
		char name[NAME_MAX + 1];
		int error, fd = -1;

		if (length > NAME_MAX) {
			errno = ENAMETOOLONG;
		} else {
			memcpy(name, path, length);
			name[length] = '\0';
			if (strcmp(name, "..") == 0)
				errno = EACCES;
			else
				fd = open_name(folder, name,
					       *rest ? O_PATH | O_DIRECTORY | O_CLOEXEC : last);
		}
		error = errno;
		if (folder != root)
			close(folder);
		errno = error;
		if (fd < 0 || !*rest)
			return fd;
		folder = fd;
		path = rest;
	}
}

/* Returns what openat2() checks. */
static unsigned resolve_of(enum symlinks symlinks)
{
	switch (symlinks) {
	case SYMLINKS_FOLLOW:
		return RESOLVE_NO_MAGICLINKS;
	case SYMLINKS_DENY:
		return RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
	default:
		return RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
	}
}

/* Whether a name is "..": links may lead out of the root, but names must not. */
static bool climbs(const char *path)
{
	while (*path) {
		size_t length = strcspn(path, "/");

		if (length == 2 && path[0] == '.' && path[1] == '.')
			return true;
		path += length;
		path += strspn(path, "/");
	}
	return false;
}

static int open_plain(struct docroot root, const char *path, int flags)
{
	int fd;

	do {
		fd = openat(root.fd, path, flags);
	} while (fd < 0 && errno == EINTR);
	return fd;
}

/* Without openat2(). */
static int without(struct docroot root, const char *path, int flags)
{
	return root.symlinks == SYMLINKS_FOLLOW ? open_plain(root, path, flags)
						: walk(root.fd, path, flags, open_itself);
}

static int open_resolving(int folder, const char *path, unsigned flags, unsigned resolve)
{
	struct open_how how = {.flags = flags, .resolve = resolve};
	int fd;

	do {
		/* EAGAIN: a rename raced with ".."; the kernel asks to try again. */
		fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
	} while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd;
}

/* Gets the path of an open file, in which no name is a link; false: it is unknown. */
static bool real_path(int fd, char out[PATH_MAX])
{
	char name[64];
	ssize_t length;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	length = readlink(name, out, PATH_MAX - 1);
	if (length <= 0 || out[0] != '/')
		return false;
	out[length] = '\0';
	return true;
}

/* Returns the path of an open file below the root, "." for the root itself; NULL: it is outside. */
static const char *path_below(int root, int fd, char top[PATH_MAX], char path[PATH_MAX])
{
	size_t length;

	if (!real_path(root, top) || !real_path(fd, path))
		return NULL;
	length = strcmp(top, "/") == 0 ? 0 : strlen(top);
	if (strncmp(path, top, length) != 0 || (path[length] && path[length] != '/'))
		return NULL;
	path += length;
	path += *path == '/';
	return *path ? path : ".";
}

/* Whether the name is a link; what exists behind that is not to be learned. */
static bool is_link(int root, const char *path)
{
	struct stat stat;

	return fstatat(root, path, &stat, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(stat.st_mode);
}

/*
 * Replaces a path of which the last name may be a link by that of what it leads to, without links.
 * Returns false with errno, EXDEV if that is outside.
 */
static bool resolve_last(int root, char path[PATH_MAX])
{
	int fd = open_resolving(root, path, O_PATH | O_CLOEXEC, RESOLVE_NO_MAGICLINKS);
	char top[PATH_MAX], target[PATH_MAX];
	const char *below = NULL;

	if (fd < 0 && !is_link(root, path))
		return false;
	if (fd >= 0) {
		below = path_below(root, fd, top, target);
		close(fd);
	}
	if (below)
		strcpy(path, below);
	errno = EXDEV;
	return below;
}

/*
 * Opens what a path names by links that are absolute, or lead out of the root and back, which
 * RESOLVE_BENEATH refuses.  Where each of them leads is only looked at: the file is opened without
 * any link, from the root.
 */
static int open_by_way_around(struct docroot root, const char *path, int flags)
{
	char real[PATH_MAX] = ".";

	while (*path) {
		size_t length = strcspn(path, "/"), before = strlen(real);

		if (length == 2 && memcmp(path, "..", 2) == 0) {
			errno = EXDEV;
			return -1;
		}
		if (before + 1 + length >= sizeof(real)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		real[before] = '/';
		memcpy(real + before + 1, path, length);
		real[before + 1 + length] = '\0';
		if (!resolve_last(root.fd, real))
			return -1;
		path += length;
		path += strspn(path, "/");
	}
	return open_resolving(root.fd, real, (unsigned)flags,
			      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

static int open_beneath(struct docroot root, const char *path, int flags)
{
	/* Before Linux 5.6, under Valgrind, and in containers that block it. */
	static _Atomic bool missing;
	int fd;

	if (atomic_load_explicit(&missing, memory_order_relaxed))
		return without(root, path, flags);
	fd = open_resolving(root.fd, path, (unsigned)flags, resolve_of(root.symlinks));
	if (fd < 0 && errno == EXDEV && root.symlinks == SYMLINKS_INSIDE)
		return open_by_way_around(root, path, flags);
	if (fd >= 0 || errno != ENOSYS)
		return fd;
	atomic_store_explicit(&missing, true, memory_order_relaxed);
	return without(root, path, flags);
}

int docroot_openat_cached(struct docroot root, const char *path, int flags)
{
	struct open_how how = {.flags = (unsigned)flags,
			       .resolve = resolve_of(root.symlinks) | RESOLVE_CACHED};
	static _Atomic bool missing;
	int fd = -1;

	if (root.symlinks == SYMLINKS_OWNER || (root.symlinks == SYMLINKS_FOLLOW && climbs(path)))
		errno = EAGAIN;
	else if (!atomic_load_explicit(&missing, memory_order_relaxed))
		fd = (int)syscall(SYS_openat2, root.fd, path, &how, sizeof(how));
	else
		errno = EAGAIN;
	if (fd < 0 && (errno == EINTR || (errno == EXDEV && root.symlinks == SYMLINKS_INSIDE)))
		errno = EAGAIN;
	/* The flag or the call is not supported. */
	if (fd < 0 && (errno == EINVAL || errno == ENOSYS)) {
		atomic_store_explicit(&missing, true, memory_order_relaxed);
		errno = EAGAIN;
	}
	return fd;
}

int docroot_openat(struct docroot root, const char *path, int flags)
{
	if (root.symlinks == SYMLINKS_OWNER)
		return walk(root.fd, path, flags, open_owned);
	if (root.symlinks == SYMLINKS_FOLLOW && climbs(path)) {
		errno = EACCES;
		return -1;
	}
	return open_beneath(root, path, flags);
}
