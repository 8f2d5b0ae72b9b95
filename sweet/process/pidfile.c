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
	/* The folder may be writable for others than root: follow no symbolic link. */
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	char text[32];
	int length = snprintf(text, sizeof(text), "%d\n", (int)getpid()), error = 0;
	ssize_t written;

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
