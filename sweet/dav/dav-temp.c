/* SPDX-License-Identifier: MIT */
/*
 * dav-temp.c - see dav-temp.h.
 *
 * O_TMPFILE makes a file without a name; linkat(2) gives it one.  Since that replaces nothing, a
 * file that is to replace another gets a name of its own for a moment, which begins with a dot,
 * then the other's by rename(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "dav/dav-temp.h"

#define TRIES 8u
#define MODE 0666 /* less the umask */

static bool make_name(char *name, size_t size)
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return false;
	(void)snprintf(name, size, ".sweet-%016llx", (unsigned long long)number);
	return true;
}

static int open_named(struct dav_temp *temp)
{
	for (unsigned i = 0; i < TRIES; i++) {
		if (!make_name(temp->name, sizeof(temp->name)))
			return -EAGAIN;
		temp->fd = openat(temp->folder, temp->name,
				  O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, MODE);
		if (temp->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	temp->name[0] = '\0';
	return -errno;
}

int dav_temp_open(struct dav_temp *temp, int folder)
{
	temp->folder = folder;
	temp->name[0] = '\0';
	temp->fd = openat(folder, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, MODE);
	if (temp->fd >= 0) {
		if (access("/proc/self/fd", F_OK) == 0)
			return 0;
		/* It could not be linked. */
		close(temp->fd);
		return open_named(temp);
	}
	/* The file system, or the kernel, does not have it. */
	if (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL || errno == ENOENT)
		return open_named(temp);
	return -errno;
}

/* Links a file without a name. */
static int link_it(const struct dav_temp *temp, const char *name)
{
	char path[sizeof("/proc/self/fd/") + 12];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", temp->fd);
	if (linkat(AT_FDCWD, path, temp->folder, name, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	return -errno;
}

/* Moves the temporary name to the other. */
static int rename_it(struct dav_temp *temp, const char *name, bool replace)
{
	if (replace) {
		if (renameat(temp->folder, temp->name, temp->folder, name) < 0)
			return -errno;
	} else {
		if (linkat(temp->folder, temp->name, temp->folder, name, 0) < 0)
			return -errno;
		(void)unlinkat(temp->folder, temp->name, 0);
	}
	temp->name[0] = '\0';
	return 0;
}

int dav_temp_commit(struct dav_temp *temp, const char *name, bool replace)
{
	int error = -EAGAIN;

	if (temp->name[0])
		return rename_it(temp, name, replace);
	error = link_it(temp, name);
	if (error != -EEXIST || !replace)
		return error;
	for (unsigned i = 0; i < TRIES && error == -EEXIST; i++) {
		if (!make_name(temp->name, sizeof(temp->name)))
			error = -EAGAIN;
		else
			error = link_it(temp, temp->name);
	}
	if (error) {
		temp->name[0] = '\0';
		return error;
	}
	return rename_it(temp, name, true);
}

void dav_temp_close(struct dav_temp *temp)
{
	if (temp->name[0])
		(void)unlinkat(temp->folder, temp->name, 0);
	if (temp->fd >= 0)
		close(temp->fd);
	temp->fd = -1;
	temp->name[0] = '\0';
}
