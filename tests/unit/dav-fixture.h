/* SPDX-License-Identifier: MIT */
/*
 * dav-fixture.h - a folder of the test's own, for those of WebDAV's files.
 */
#ifndef TEST_DAV_FIXTURE_H
#define TEST_DAV_FIXTURE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "suite.h"

static char base[64];
static int folder; /* the same, open */

static inline void set_up(void)
{
	make_directory(base);
	folder = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(folder, 0);
}

static inline void tear_down(void)
{
	char command[192];

	close(folder);
	(void)snprintf(command, sizeof(command), "chmod -R u+rwx %s; rm -rf %s", base, base);
	ck_assert_int_eq(system(command), 0);
}

static inline int open_at(const char *name, int flags)
{
	int fd = openat(folder, name, flags | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static inline void put(const char *name, const char *text)
{
	int fd = open_at(name, O_WRONLY | O_CREAT | O_TRUNC);

	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static inline void expect_text(const char *name, const char *text)
{
	int fd = open_at(name, O_RDONLY);
	char bytes[256];
	ssize_t length = read(fd, bytes, sizeof(bytes));

	ck_assert_int_eq(length, (ssize_t)strlen(text));
	ck_assert_mem_eq(bytes, text, (size_t)length);
	close(fd);
}

static inline bool exists(const char *name)
{
	struct stat stat;

	return fstatat(folder, name, &stat, AT_SYMLINK_NOFOLLOW) == 0;
}

#endif
