/* SPDX-License-Identifier: MIT */
/*
 * test-readonly.c - unit tests of readonly.c: with each method that works here, in a
 * child, since it cannot be undone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/readonly.h"

#include "process-fixture.h"
#include "suite.h"

#define CANNOT 77 /* exit status: unavailable here */

/* Two folders with a file each; the first stays writable. */
struct place {
	char folder[2][64];
	char file[2][80], fresh[2][80];
	int open; /* the second one's file, opened for writing before */
};

static int make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "old", 3), 3);
	return fd;
}

static void make_place(struct place *place)
{
	for (unsigned i = 0; i < 2; i++) {
		char folder[64];

		make_directory(folder);
		strcpy(place->folder[i], folder);
		snprintf(place->file[i], sizeof(place->file[i]), "%s/file", folder);
		snprintf(place->fresh[i], sizeof(place->fresh[i]), "%s/fresh", folder);
		if (i == 0)
			close(make_file(place->file[i]));
		else
			place->open = make_file(place->file[i]);
	}
}

static void remove_place(struct place *place)
{
	close(place->open);
	for (unsigned i = 0; i < 2; i++) {
		unlink(place->file[i]);
		unlink(place->fresh[i]);
		ck_assert_int_eq(rmdir(place->folder[i]), 0);
	}
}

static bool can_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void bound(const struct place *place)
{
	int memory = memfd_create("x", MFD_CLOEXEC);

	/* Reading still works everywhere. */
	for (unsigned i = 0; i < 2; i++)
		GOOD(can_open(place->file[i], O_RDONLY));
	GOOD(can_open("/proc/self/status", O_RDONLY));
	/* Nothing can be written, created, truncated, renamed or removed. */
	GOOD(!can_open(place->file[1], O_WRONLY));
	GOOD(!can_open(place->file[1], O_RDWR | O_APPEND));
	GOOD(!can_open(place->fresh[1], O_CREAT | O_WRONLY));
	GOOD(truncate(place->file[1], 0) < 0);
	GOOD(unlink(place->file[1]) < 0);
	GOOD(mkdir(place->fresh[1], 0700) < 0);
	GOOD(symlink("x", place->fresh[1]) < 0);
	GOOD(rename(place->file[1], place->fresh[1]) < 0);
	GOOD(rename(place->file[1], place->fresh[0]) < 0);
	GOOD(!can_open("/tmp/nabc-test-never", O_CREAT | O_WRONLY));
	/* Except there. */
	GOOD(can_open(place->file[0], O_WRONLY | O_TRUNC));
	GOOD(can_open(place->fresh[0], O_CREAT | O_EXCL | O_WRONLY));
	GOOD(unlink(place->fresh[0]) == 0);
	/* Open descriptors, and those that are no files, are unchanged. */
	GOOD(write(place->open, "new", 3) == 3);
	GOOD(can_open("/dev/null", O_WRONLY));
	GOOD(memory >= 0 && ftruncate(memory, 4096) == 0 && write(memory, "x", 1) == 1);
}

/* In a child; returns its exit status. */
static int enter(const struct readonly_method *method, const struct place *place)
{
	const char *const writable[] = {place->folder[0], "/no/such/folder", NULL};
	pid_t child = fork_alone();
	int status;

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		int error = method->enter(writable);

		if (error == -ENOSYS || error == -EOPNOTSUPP || error == -EPERM) {
			printf("readonly: no %s: %s\n", method->name, strerror(-error));
			fflush(stdout);
			_exit(CANNOT);
		}
		errno = -error;
		GOOD(!error);
		bound(place);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

START_TEST(test_methods)
{
	for (const struct readonly_method *method = readonly_methods; method->name; method++) {
		struct place place;
		int status;

		make_place(&place);
		status = enter(method, &place);
		ck_assert_msg(status == 0 || status == CANNOT, "%s", method->name);
		/* This process is not restricted. */
		ck_assert(can_open(place.file[1], O_WRONLY));
		remove_place(&place);
	}
}
END_TEST

START_TEST(test_enter)
{
	const char *const writable[] = {NULL};
	char how[200];
	pid_t child = fork_alone();
	int status;

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		bool good = readonly_enter(writable, how, sizeof(how));
		const char *text = strchr(how, ':');

		/* The name of a method, or why each has failed. */
		if (good)
			GOOD(!text && !can_open("/tmp/nabc-test-never", O_CREAT | O_WRONLY));
		else
			GOOD(text && strchr(text + 1, ';') && strchr(text + 1, ':'));
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_methods);
	tcase_add_test(tcase, test_enter);
}

RUN_SUITE("readonly", fill)
