/* SPDX-License-Identifier: MIT */
/*
 * docroot.c - see docroot.h.  Stateless, any thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files/docroot.h"

#define STABLE_NS 20000000 /* the timestamps of files may have the resolution of a timer tick */

static struct file_version version_of(const struct stat *stat)
{
	return (struct file_version){.device = stat->st_dev,
				     .inode = stat->st_ino,
				     .size = stat->st_size,
				     .modified = stat->st_mtim,
				     .changed = stat->st_ctim};
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool file_version_equal(const struct file_version *a, const struct file_version *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       same_time(&a->modified, &b->modified) && same_time(&a->changed, &b->changed);
}

static bool before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

bool file_version_follows(const struct file_version *made, const struct file_version *from)
{
	if (!before(&made->modified, &from->modified))
		return true;
	return made->modified.tv_sec == from->modified.tv_sec && made->modified.tv_nsec == 0 &&
	       before(&from->changed, &made->changed);
}

bool file_version_same_bytes(const struct file_version *a, const struct file_version *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       same_time(&a->modified, &b->modified);
}

static int64_t nanoseconds(const struct timespec *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* Returns the time until the version is stable; 0: it is. */
static int64_t unstable_ns(const struct file_version *version)
{
	struct timespec time;
	int64_t age;

	clock_gettime(CLOCK_REALTIME, &time);
	age = nanoseconds(&time) - nanoseconds(&version->changed);
	return age >= 0 && age < STABLE_NS ? STABLE_NS - age : 0;
}

void file_version_await_stable(const struct file_version *version)
{
	struct timespec time = {.tv_nsec = (long)unstable_ns(version)};

	if (time.tv_nsec)
		nanosleep(&time, NULL);
}

bool file_version_is_stable(const struct file_version *version)
{
	return unstable_ns(version) == 0;
}

int docroot_open(const char *folder)
{
	int fd;

	do {
		fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	} while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

/* Makes the path relative to the root: "/a" becomes "a", "/" becomes ".". */
static const char *beneath(const char *path)
{
	while (*path == '/')
		path++;
	return *path ? path : ".";
}

/* O_NONBLOCK: a FIFO in the root must not block a helper forever. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
#define FOLDER_FLAGS (O_RDONLY | O_CLOEXEC | O_DIRECTORY)
#define LOOK_FLAGS (O_PATH | O_CLOEXEC)

/* Without openat2(): opens name by name, and follows no symbolic link. */
static int walk(int root, const char *path, int flags)
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
				fd = openat(folder, name,
					    (*rest ? O_PATH | O_DIRECTORY | O_CLOEXEC : last) |
						    O_NOFOLLOW);
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

static int open_beneath(int root, const char *path, int flags)
{
	struct open_how how = {.flags = (unsigned)flags,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	/* Before Linux 5.6, under Valgrind, and in containers that block it. */
	static _Atomic bool missing;
	int fd;

	if (atomic_load_explicit(&missing, memory_order_relaxed))
		return walk(root, path, flags);
	do {
		/* EAGAIN: a rename raced with ".."; the kernel asks to try again. */
		fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	} while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	if (fd >= 0 || errno != ENOSYS)
		return fd;
	atomic_store_explicit(&missing, true, memory_order_relaxed);
	return walk(root, path, flags);
}

/* Uses only what the kernel has in memory; errno EAGAIN: that is not enough. */
static int open_cached(int root, const char *path, int flags)
{
	struct open_how how = {.flags = (unsigned)flags,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED};
	static _Atomic bool missing;
	int fd = -1;

	if (!atomic_load_explicit(&missing, memory_order_relaxed))
		fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	else
		errno = EAGAIN;
	if (fd < 0 && errno == EINTR)
		errno = EAGAIN;
	/* The flag or the call is not supported. */
	if (fd < 0 && (errno == EINVAL || errno == ENOSYS)) {
		atomic_store_explicit(&missing, true, memory_order_relaxed);
		errno = EAGAIN;
	}
	return fd;
}

/* Returns the result of opening a file. */
static int file_opened(int fd, struct file_version *version)
{
	struct stat stat;

	if (fd < 0)
		return errno == EXDEV || errno == ENXIO ? -EACCES : -errno;
	if (fstat(fd, &stat) < 0) {
		int error = -errno;

		close(fd);
		return error;
	}
	if (!S_ISREG(stat.st_mode)) {
		close(fd);
		return S_ISDIR(stat.st_mode) ? -EISDIR : -EACCES;
	}
	*version = version_of(&stat);
	return fd;
}

int docroot_open_file(int root, const char *path, struct file_version *version)
{
	return file_opened(open_beneath(root, beneath(path), OPEN_FLAGS), version);
}

int docroot_open_cached(int root, const char *path, struct file_version *version)
{
	return file_opened(open_cached(root, beneath(path), OPEN_FLAGS), version);
}

int docroot_version(int fd, struct file_version *version)
{
	struct stat stat;

	if (fstat(fd, &stat) < 0)
		return -errno;
	*version = version_of(&stat);
	return 0;
}

int docroot_peek(int root, const char *path, struct file_version *version)
{
	struct stat stat;

	/*
	 * The path may leave the root, but this only compares; on any difference
	 * the file is opened again.
	 */
	if (fstatat(root, beneath(path), &stat, 0) < 0)
		return -errno;
	*version = version_of(&stat);
	return 0;
}

int docroot_open_folder(int root, const char *path)
{
	int fd = open_beneath(root, beneath(path), FOLDER_FLAGS);

	if (fd < 0)
		return errno == EXDEV ? -EACCES : -errno;
	return fd;
}

int docroot_look(int root, const char *path, bool *folder, struct file_version *version)
{
	struct stat stat;
	int fd = open_beneath(root, beneath(path), LOOK_FLAGS), error = 0;

	if (fd < 0)
		return errno == EXDEV ? -EACCES : -errno;
	if (fstat(fd, &stat) < 0)
		error = -errno;
	else if (!S_ISREG(stat.st_mode) && !S_ISDIR(stat.st_mode))
		error = -EACCES;
	close(fd);
	if (error)
		return error;
	*folder = S_ISDIR(stat.st_mode);
	*version = version_of(&stat);
	return 0;
}

const char *docroot_denied(int error)
{
	return error == -ELOOP ? "too many symbolic links"
			       : "no right to it, neither file nor folder, or a symbolic link that "
				 "leads out of the root";
}
