/* SPDX-License-Identifier: MIT */
/*
 * dav-tree.c - see dav-tree.h.  Everything below an open folder is opened by its own name there,
 * without following links, so that a folder that is exchanged meanwhile leads nowhere else.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <nabc.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dav/dav-multistatus.h"
#include "dav/dav-place.h"
#include "dav/dav-properties.h"
#include "dav/dav-temp.h"
#include "dav/dav-tree.h"

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define CHUNK ((size_t)4 << 20) /* bytes that are copied before the next look at leaving */
#define BUFFER ((size_t)128 << 10)
#define ROUNDS 4u /* of removing what others put into a folder meanwhile */

static void add_failure(struct dav_tree *tree, int error)
{
	if (!tree->failures)
		tree->failures = dav_multistatus_begin();
	if (tree->failed++ < DAV_FAILURES_MAX)
		dav_multistatus_add(tree->failures, tree->path->str, dav_status(error), NULL);
}

static bool is_leaving(const struct dav_tree *tree)
{
	return atomic_load_explicit(tree->leaving, memory_order_relaxed);
}

static DIR *open_stream(int fd)
{
	DIR *stream = fdopendir(fd);
	int error = errno;

	if (!stream)
		close(fd);
	errno = error;
	return stream;
}

/* Calls visit() for each member; its result, unless that is 0, ends the loop and is returned. */
static int each_member(struct dav_tree *tree, DIR *stream,
		       int (*visit)(struct dav_tree *tree, int folder, const char *name,
				    void *context),
		       void *context)
{
	gsize path = tree->path->len, file = tree->file->len;
	struct dirent *at;
	int error = 0;

	for (errno = 0; !error && (at = readdir(stream)); errno = 0) {
		if (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0)
			continue;
		if (is_leaving(tree))
			return -ECANCELED;
		g_string_append_printf(tree->path, "/%s", at->d_name);
		g_string_append_printf(tree->file, "/%s", at->d_name);
		error = visit(tree, dirfd(stream), at->d_name, context);
		g_string_truncate(tree->path, path);
		g_string_truncate(tree->file, file);
	}
	return error ? error : -errno;
}

/* --- removing ---------------------------------------------------------------------------- */

struct removing {
	unsigned depth;
	bool failed; /* a member */
};

static int remove_at(struct dav_tree *tree, int folder, const char *name, unsigned depth);

static int remove_member(struct dav_tree *tree, int folder, const char *name, void *context)
{
	struct removing *removing = context;
	int error = remove_at(tree, folder, name, removing->depth);

	if (error == -ECANCELED)
		return error;
	if (error < 0 && error != -ENOENT)
		add_failure(tree, error);
	removing->failed |= error && error != -ENOENT;
	return 0;
}

static int remove_folder(struct dav_tree *tree, int folder, const char *name, unsigned depth)
{
	struct removing removing = {.depth = depth + 1};
	int fd, error = 0;
	DIR *stream;

	if (depth == DAV_TREE_DEPTH_MAX)
		return -ELOOP;
	fd = openat(folder, name, FOLDER_FLAGS);
	stream = fd < 0 ? NULL : open_stream(fd);
	if (!stream)
		return -errno;
	for (unsigned i = 0; i < ROUNDS; i++) {
		rewinddir(stream);
		error = each_member(tree, stream, remove_member, &removing);
		if (error || removing.failed)
			break;
		error = unlinkat(folder, name, AT_REMOVEDIR) < 0 ? -errno : 0;
		if (error != -ENOTEMPTY && error != -EEXIST)
			break;
	}
	closedir(stream);
	return error ? error : removing.failed;
}

static int remove_at(struct dav_tree *tree, int folder, const char *name, unsigned depth)
{
	struct stat stat;

	if (fstatat(folder, name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(stat.st_mode))
		return remove_folder(tree, folder, name, depth);
	return unlinkat(folder, name, 0) < 0 ? -errno : 0;
}

int dav_tree_remove(struct dav_tree *tree, int folder, const char *name)
{
	return remove_at(tree, folder, name, 0);
}

/* --- copying files -------------------------------------------------------------------------- */

static int write_all(int fd, const char *bytes, size_t length)
{
	while (length) {
		ssize_t written = write(fd, bytes, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		bytes += written;
		length -= (size_t)written;
	}
	return 0;
}

/* Where the kernel cannot copy by itself. */
static int copy_by_buffer(const struct dav_tree *tree, int from, int to)
{
	char *buffer = g_malloc(BUFFER);
	int error = 0;

	for (;;) {
		ssize_t length = read(from, buffer, BUFFER);

		if (length < 0 && errno == EINTR)
			continue;
		if (length <= 0 || is_leaving(tree)) {
			error = length < 0 ? -errno : length ? -ECANCELED : 0;
			break;
		}
		error = write_all(to, buffer, (size_t)length);
		if (error)
			break;
	}
	g_free(buffer);
	return error;
}

static int copy_bytes(const struct dav_tree *tree, int from, int to)
{
	bool began = false;

	for (;;) {
		ssize_t length = copy_file_range(from, NULL, to, NULL, CHUNK, 0);

		if (length < 0 && errno == EINTR)
			continue;
		/* Some files, as those of /proc, seem to be empty. */
		if ((length < 0 && errno != ENOSPC && errno != EDQUOT && errno != EIO) ||
		    (length == 0 && !began))
			return copy_by_buffer(tree, from, to);
		if (length < 0)
			return -errno;
		if (length == 0)
			return 0;
		if (is_leaving(tree))
			return -ECANCELED;
		began = true;
	}
}

/* sync: it may replace a file, which then is the old one or the new one, also after a crash. */
static int copy_file(const struct dav_tree *tree, int source, int folder, const char *name,
		     bool sync, bool replace)
{
	struct dav_temp temp;
	int error = dav_temp_open(&temp, folder);

	if (error)
		return error;
	error = copy_bytes(tree, source, temp.fd);
	if (!error)
		error = dav_properties_copy(source, temp.fd);
	if (!error && sync && fdatasync(temp.fd) < 0)
		error = -errno;
	if (!error)
		error = dav_temp_commit(&temp, name, replace);
	dav_temp_close(&temp);
	return error;
}

/* --- copying folders -------------------------------------------------------------------------- */

struct copying {
	int to;
	unsigned depth;
	dev_t device; /* of the new folder: a copy does not contain itself */
	ino_t inode;
	bool failed; /* a member */
};

static int copy_folder(struct dav_tree *tree, int source, int folder, const char *name,
		       struct copying *copying);

/* Opens what a link leads to, if a client would get that file. */
static int open_link(const struct dav_tree *tree)
{
	struct file_version version;

	return docroot_open_file(tree->reads, tree->file->str, &version);
}

static int copy_found(struct dav_tree *tree, int fd, const struct copying *copying,
		      const char *name)
{
	struct copying below = *copying;
	struct stat stat;

	if (fstat(fd, &stat) < 0)
		return -errno;
	if (S_ISREG(stat.st_mode))
		return copy_file(tree, fd, copying->to, name, false, true);
	if (!S_ISDIR(stat.st_mode))
		return -EACCES;
	if (stat.st_dev == copying->device && stat.st_ino == copying->inode)
		return 0;
	below.depth++;
	return copy_folder(tree, fd, copying->to, name, &below);
}

static int copy_member(struct dav_tree *tree, int folder, const char *name, void *context)
{
	struct copying *copying = context;
	int fd, error;

	if (name[0] == '.' && !tree->hidden)
		return 0;
	fd = openat(folder, name, FILE_FLAGS);
	if (fd < 0)
		fd = errno == ELOOP ? open_link(tree) : -errno;
	error = fd < 0 ? fd : copy_found(tree, fd, copying, name);
	if (fd >= 0)
		close(fd);
	if (error == -ECANCELED)
		return error;
	if (error < 0)
		add_failure(tree, error);
	copying->failed |= error != 0;
	return 0;
}

/* Fills a new folder that is open. */
static int fill_folder(struct dav_tree *tree, int source, int to, struct copying *copying)
{
	int fd = openat(source, ".", FOLDER_FLAGS), error;
	DIR *stream = fd < 0 ? NULL : open_stream(fd);
	struct stat stat;

	if (!stream)
		return -errno;
	error = dav_properties_copy(source, to);
	if (!copying->depth && fstat(to, &stat) == 0) {
		copying->device = stat.st_dev;
		copying->inode = stat.st_ino;
	}
	copying->to = to;
	copying->failed = false;
	if (!error && !(tree->shallow && !copying->depth))
		error = each_member(tree, stream, copy_member, copying);
	closedir(stream);
	return error ? error : copying->failed;
}

static int copy_folder(struct dav_tree *tree, int source, int folder, const char *name,
		       struct copying *copying)
{
	int to, error;

	if (copying->depth == DAV_TREE_DEPTH_MAX)
		return -ELOOP;
	if (mkdirat(folder, name, 0777) < 0)
		return -errno;
	to = openat(folder, name, FOLDER_FLAGS);
	if (to < 0)
		return -errno;
	error = fill_folder(tree, source, to, copying);
	close(to);
	return error;
}

int dav_tree_copy(struct dav_tree *tree, int source, bool is_folder, int folder, const char *name)
{
	struct copying copying = {.to = -1};

	return is_folder ? copy_folder(tree, source, folder, name, &copying)
			 : copy_file(tree, source, folder, name, true, tree->replace);
}
