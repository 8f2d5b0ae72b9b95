/* SPDX-License-Identifier: MIT */
/*
 * pidfile.c - see pidfile.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/pidfile.h"

int pidfile_write(const char *path)
{
	char text[32];
	int length = snprintf(text, sizeof(text), "%d\n", (int)getpid()), error = 0;
	ssize_t written;
	int fd;

	/*
	 * Others than root may write the folder.  A new file is no link, and nobody else's; it
	 * stays root's: who reads it as root sends signals to that process.
	 */
	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	written = write(fd, text, (size_t)length);
	if (written != length)
		error = written < 0 ? -errno : -ENOSPC;
	close(fd);
	return error;
}

void pidfile_remove(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[32];
	ssize_t length;

	if (fd < 0)
		return;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return;
	text[length] = '\0';
	if (atol(text) == (long)getpid())
		(void)unlink(path);
}
