/* SPDX-License-Identifier: MIT */
/*
 * read-directory.c - see read-directory.h.  Runs on a helper thread; the caller
 * owns the result.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event/thread-pool.h"
#include "files/docroot.h"
#include "files/read-directory.h"
#include "http/autoindex-render.h"

/* Returns true if a request can name it: uri.c refuses control characters. */
static bool can_be_asked_for(const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name < 0x20 || *name == 0x7f)
			return false;
	return true;
}

/* Describes a link by its target, if that is beneath the root. */
static bool describe_target(struct docroot root, const char *path, const char *name,
			    struct autoindex_entry *entry)
{
	char *whole = g_strconcat(path, name, NULL);
	struct file_version version;
	bool found = docroot_look(root, whole, &entry->folder, &version) == 0;

	g_free(whole);
	if (!found)
		return false;
	entry->size = (uint64_t)version.size;
	entry->modified = version.modified.tv_sec;
	return true;
}

/* Returns false if it is not to be listed, or was removed meanwhile. */
static bool describe(struct docroot root, const char *path, int fd, const char *name,
		     struct autoindex_entry *entry)
{
	struct stat stat;

	if (fstatat(fd, name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	if (S_ISLNK(stat.st_mode))
		return describe_target(root, path, name, entry);
	entry->folder = S_ISDIR(stat.st_mode);
	entry->size = (uint64_t)stat.st_size;
	entry->modified = stat.st_mtim.tv_sec;
	return entry->folder || S_ISREG(stat.st_mode);
}

static int read_names(struct docroot root, const char *path, DIR *stream, bool hidden, unsigned max,
		      const struct job *job, struct directory *directory)
{
	GArray *entries = g_array_new(FALSE, TRUE, sizeof(struct autoindex_entry));
	struct dirent *at;
	int error;

	directory->names = g_string_chunk_new(4096);
	for (errno = 0; (at = readdir(stream)); errno = 0) {
		struct autoindex_entry entry = {.folder = false};

		if (job && job_cancelled(job)) {
			errno = ECANCELED;
			break;
		}
		if (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0 ||
		    (at->d_name[0] == '.' && !hidden) || !can_be_asked_for(at->d_name) ||
		    !describe(root, path, dirfd(stream), at->d_name, &entry))
			continue;
		if (entries->len == max) {
			directory->more = true;
			errno = 0;
			break;
		}
		entry.name = g_string_chunk_insert(directory->names, at->d_name);
		g_array_append_val(entries, entry);
	}
	error = -errno;
	directory->count = entries->len;
	directory->entries = (struct autoindex_entry *)(void *)g_array_free(entries, FALSE);
	return error;
}

int directory_read(struct docroot root, const char *path, bool hidden, unsigned max,
		   const struct job *job, struct directory *directory)
{
	int error, fd = docroot_open_folder(root, path);
	DIR *stream;

	*directory = (struct directory){.count = 0};
	if (fd < 0)
		return fd;
	stream = fdopendir(fd);
	if (!stream) {
		error = -errno;
		close(fd);
		return error;
	}
	error = read_names(root, path, stream, hidden, max, job, directory);
	closedir(stream);
	if (error)
		directory_clear(directory);
	return error;
}

void directory_clear(struct directory *directory)
{
	g_free(directory->entries);
	if (directory->names)
		g_string_chunk_free(directory->names);
	*directory = (struct directory){.count = 0};
}
