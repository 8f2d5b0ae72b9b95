/* SPDX-License-Identifier: MIT */
/*
 * spool-folder.c - the folder for the files of spools.
 *
 * It is opened before privileges are dropped, and files are created relative to its
 * descriptor, so that neither a sandbox nor moving the folder matters.  Other users
 * cannot access the files: they have mode 0600 and no name.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <glib.h>

#include "files/spool-folder.h"
#include "files/spool.h"

#define NAMES_TRIED 16

/* linux/magic.h does not have all of them. */
#define MAGIC_TMPFS 0x01021994
#define MAGIC_RAMFS 0x858458f6

/* For file systems without O_TMPFILE: creates a file and unlinks it at once. */
static int make_named(int folder)
{
	for (unsigned i = 0; i < NAMES_TRIED; i++) {
		unsigned long long number;
		char name[40];
		int fd;

		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -errno;
		snprintf(name, sizeof(name), ".sweet-spool-%016llx", number);
		fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0)
			return -errno;
		if (unlinkat(folder, name, 0) == 0)
			return fd;
		close(fd);
		return -EIO;
	}
	return -EEXIST;
}

int spool_make_file(int folder)
{
	/* O_EXCL: it cannot get a name later. */
	int fd = openat(folder, ".", O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
		return -errno;
	return make_named(folder);
}

static const char *memory_name(long type)
{
	switch ((unsigned long)type & 0xffffffffu) {
	case MAGIC_TMPFS:
		return "tmpfs";
	case MAGIC_RAMFS:
		return "ramfs";
	default:
		return NULL;
	}
}

bool spool_folder_is_gone(int folder)
{
	struct stat now;

	return fstat(folder, &now) == 0 && now.st_nlink == 0;
}

int spool_renew_folder(int folder, const char *path, bool memory)
{
	int next = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), error = 0;
	struct stat old, new;
	struct statfs system;

	if (next < 0)
		return -errno;
	if (fstat(folder, &old) < 0 || fstat(next, &new) < 0 || fstatfs(next, &system) < 0)
		error = -errno;
	else if (old.st_uid != new.st_uid)
		error = -EPERM;
	else if (!memory && memory_name((long)system.f_type))
		error = -EMEDIUMTYPE;
	/* At once: others that use the descriptor get the one folder or the other. */
	else if (dup3(next, folder, O_CLOEXEC) < 0)
		error = -errno;
	close(next);
	return error;
}

/* Creates a file as the user that will create the others.  Returns 0 or -errno. */
static int try_folder(int folder, const struct spools_options *options)
{
	bool other_user = options->user != (uid_t)-1, other_group = options->group != (gid_t)-1;
	gid_t group = other_group ? (gid_t)setfsgid(options->group) : 0;
	uid_t user = other_user ? (uid_t)setfsuid(options->user) : 0;
	int fd = spool_make_file(folder);

	if (other_user)
		(void)setfsuid(user);
	if (other_group)
		(void)setfsgid(group);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Returns a descriptor, or -1 with a line in *why. */
static int open_folder(const char *path, const struct spools_options *options, char **why)
{
	struct statfs system;
	const char *memory;
	int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int error = folder < 0 || fstatfs(folder, &system) < 0 ? -errno : 0;

	if (!error && !options->memory && (memory = memory_name((long)system.f_type)))
		*why = g_strdup_printf("\"%s\": is in memory (%s), not on a disk "
				       "(spool-memory=on lets it be that)",
				       path, memory);
	else if (error || (error = try_folder(folder, options)))
		*why = g_strdup_printf("\"%s\": cannot make files there: %s", path,
				       strerror(-error));
	else
		return folder;
	if (folder >= 0)
		close(folder);
	return -1;
}

/* systemd separates several folders with colons. */
static char *cache_directory(void)
{
	const char *folders = getenv("CACHE_DIRECTORY");

	return folders && *folders == '/' ? g_strndup(folders, strcspn(folders, ":")) : NULL;
}

/* Opens the first usable folder; if there is none, *why lists all errors. */
static int open_default(const struct spools_options *options, char **path, char **why)
{
	char *candidates[] = {cache_directory(), g_strdup(SPOOL_FOLDER), g_strdup("/var/tmp")};
	GString *faults = g_string_new(NULL);
	int folder = -1;

	for (size_t i = 0; i < G_N_ELEMENTS(candidates); i++) {
		char *fault = NULL;

		if (!candidates[i])
			continue;
		if (folder < 0 && (folder = open_folder(candidates[i], options, &fault)) >= 0) {
			*path = g_steal_pointer(&candidates[i]);
			continue;
		}
		if (fault)
			g_string_append_printf(faults, "%s%s", faults->len ? "; " : "", fault);
		g_free(fault);
		g_free(candidates[i]);
	}
	*why = g_string_free(faults, folder >= 0);
	return folder;
}

int spool_open_folder(const struct spools_options *options, char **path, char **why)
{
	int folder;

	if (!options->folder)
		return open_default(options, path, why);
	folder = open_folder(options->folder, options, why);
	if (folder >= 0)
		*path = g_canonicalize_filename(options->folder, NULL);
	return folder;
}
