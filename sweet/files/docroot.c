/* SPDX-License-Identifier: MIT */
/*
 * docroot.c - see docroot.h.  Stateless, any thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/docroot-open.h"
#include "files/docroot.h"

#define STABLE_NS 20000000 /* the timestamps of files may have the resolution of a timer tick */
#define LOOKS_MORE 4u
#define LOOK_AGAIN_NS 1000000l /* before the first of them; doubles with each */

static struct file_version version_of(const struct stat *stat)
{
	return (struct file_version){.device = stat->st_dev,
				     .inode = stat->st_ino,
				     .size = stat->st_size,
				     .modified = stat->st_mtim,
				     .changed = stat->st_ctim,
				     .links = stat->st_nlink,
				     .mode = stat->st_mode,
				     .user = stat->st_uid,
				     .group = stat->st_gid};
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

/* On a helper thread alone: who calls it says that it may wait. */
static void rest(long ns)
{
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

void file_version_await_stable(const struct file_version *version)
{
	long ns = (long)unstable_ns(version);

	if (ns)
		rest(ns);
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

int docroot_follow(struct docroot root, const char *folder)
{
	struct stat ours, there;
	int fd, error = 0;

	if (fstat(root.fd, &ours) < 0 || stat(folder, &there) < 0)
		return -errno;
	if (ours.st_dev == there.st_dev && ours.st_ino == there.st_ino)
		return 0;
	fd = docroot_open(folder);
	if (fd < 0)
		return fd;
	/* Others may be using the number: it always is an open folder. */
	if (dup3(fd, root.fd, O_CLOEXEC) < 0)
		error = -errno;
	close(fd);
	return error ? error : 1;
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

int docroot_open_file(struct docroot root, const char *path, struct file_version *version)
{
	return file_opened(docroot_openat(root, beneath(path), OPEN_FLAGS), version);
}

int docroot_open_cached(struct docroot root, const char *path, struct file_version *version)
{
	return file_opened(docroot_openat_cached(root, beneath(path), OPEN_FLAGS), version);
}

int docroot_version(int fd, struct file_version *version)
{
	struct stat stat;

	if (fstat(fd, &stat) < 0)
		return -errno;
	*version = version_of(&stat);
	return 0;
}

int docroot_peek(struct docroot root, const char *path, struct file_version *version)
{
	struct stat stat;

	/*
	 * The path may leave the root, but this only compares; on any difference
	 * the file is opened again.
	 */
	if (fstatat(root.fd, beneath(path), &stat, 0) < 0)
		return -errno;
	*version = version_of(&stat);
	return 0;
}

static bool same_attributes(const struct file_version *a, const struct file_version *b)
{
	return a->links == b->links && a->mode == b->mode && a->user == b->user &&
	       a->group == b->group;
}

/* Whether the path names that file no more. */
static bool has_moved(struct docroot root, const char *path, const struct file_version *version)
{
	struct file_version there;

	return path && (docroot_peek(root, path, &there) < 0 || there.device != version->device ||
			there.inode != version->inode);
}

#define UNEXPLAINED 1

/* Returns as docroot_still(), or UNEXPLAINED if only st_ctime has changed. */
static int compare(int fd, struct docroot root, const char *path, struct file_version *version)
{
	struct file_version now;
	int error = docroot_version(fd, &now);

	if (error)
		return error;
	if (now.device != version->device || now.inode != version->inode ||
	    now.size != version->size || !same_time(&now.modified, &version->modified))
		return -EAGAIN;
	if (same_time(&now.changed, &version->changed))
		return 0;
	/* A new name explains one change: the path is compared only once. */
	now.moved = version->moved || has_moved(root, path, &now);
	if (now.moved == version->moved && same_attributes(&now, version))
		return UNEXPLAINED;
	*version = now;
	return 0;
}

/*
 * The kernel sets st_ctime before the attribute or name that explains it, and fstat() locks
 * nothing: it may come in between.  Meanwhile the kernel has the inode locked, and in most file
 * systems this seek waits for that lock, and then fails behind the end.  The rest get some time.
 */
static void await_explanation(int fd, unsigned looks)
{
	(void)lseek(fd, INT64_MAX, SEEK_HOLE);
	rest(LOOK_AGAIN_NS << looks);
}

int docroot_still(int fd, struct docroot root, const char *path, struct file_version *version,
		  bool wait)
{
	for (unsigned looks = 0;; looks++) {
		int error = compare(fd, root, path, version);

		if (error != UNEXPLAINED)
			return error;
		if (!wait || looks == LOOKS_MORE)
			return -EAGAIN;
		await_explanation(fd, looks);
	}
}

int docroot_open_folder(struct docroot root, const char *path)
{
	int fd = docroot_openat(root, beneath(path), FOLDER_FLAGS);

	if (fd < 0)
		return errno == EXDEV ? -EACCES : -errno;
	return fd;
}

int docroot_look(struct docroot root, const char *path, bool *folder, struct file_version *version)
{
	struct stat stat;
	int fd = docroot_openat(root, beneath(path), LOOK_FLAGS), error = 0;

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
	return error == -ELOOP ? "too many symbolic links, or one, with symlinks=deny"
			       : "no right to it, neither file nor folder, or a symbolic link that "
				 "symlinks does not permit";
}
