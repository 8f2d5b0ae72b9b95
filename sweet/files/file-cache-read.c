/* SPDX-License-Identifier: MIT */
/*
 * file-cache-read.c - see file-cache-read.h.  One thread at a time uses a reading.
 *
 * Without waiting means: the kernel resolves the path with what it has in memory
 * (RESOLVE_CACHED), and copies the part of the file that is in the page cache
 * (RWF_NOWAIT), up to a limit, so that the loop can serve other requests.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>

#include "files/direct-read.h"
#include "files/file-cache-read.h"

#define NOW_MAX ((off_t)256 << 10) /* maximum bytes of a file that a loop reads itself */
#define IOVECS 64u

int reading_open(struct reading *reading, struct docroot root, const char *path, bool wait)
{
	int fd;

	if (reading->fd >= 0)
		return 0;
	fd = wait ? docroot_open_file(root, path, &reading->version)
		  : docroot_open_cached(root, path, &reading->version);
	if (fd < 0)
		return fd == -EAGAIN && !wait ? READING_LATER : fd;
	reading->fd = fd;
	reading->root = root;
	reading->path = path;
	return 0;
}

void reading_borrow(struct reading *reading, const struct reading *from, struct docroot root,
		    const char *path, const struct file_version *version)
{
	reading->fd = from->fd;
	reading->root = root;
	reading->path = path;
	reading->version = *version;
	reading->borrowed = true;
}

int reading_rest(struct reading *reading, bool wait)
{
	if (file_version_is_stable(&reading->version))
		return 0;
	if (!wait)
		return READING_LATER;
	file_version_await_stable(&reading->version);
	return docroot_still(reading->fd, reading->root, reading->path, &reading->version, true);
}

/* Gets where the next bytes go; merges adjacent fragments. */
static unsigned next_places(struct reading *reading, struct iovec *places)
{
	size_t size = (size_t)reading->version.size, fraglen = 1, at = reading->done;
	unsigned count = 0;

	(void)NC_fragment(&reading->handle, 0, &fraglen);
	while (at < size) {
		size_t length, skip = at % fraglen;
		char *bytes = NC_fragment(&reading->handle, at / fraglen, &length);

		if (!bytes)
			break;
		bytes += skip;
		length -= skip;
		at += length;
		if (count &&
		    (char *)places[count - 1].iov_base + places[count - 1].iov_len == bytes)
			places[count - 1].iov_len += length;
		else if (count < IOVECS)
			places[count++] = (struct iovec){.iov_base = bytes, .iov_len = length};
		else
			break;
	}
	return count;
}

/* Does not use the descriptor's offset, which other users may move.  Otherwise as NC_read(). */
static ssize_t read_in_place(struct reading *reading, int flags)
{
	size_t size = (size_t)reading->version.size;

	while (reading->done < size) {
		struct iovec places[IOVECS];
		unsigned count = next_places(reading, places);
		ssize_t got = preadv2(reading->fd, places, (int)count, (off_t)reading->done, flags);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got;
		reading->done += (size_t)got;
	}
	return 0;
}

/*
 * Reads past the page cache.  Returns 0, also if nothing or only a part can be read so:
 * a plain read continues from there.
 */
static int read_direct(struct reading *reading)
{
	int error = direct_read(reading->fd, &reading->handle, (size_t)reading->version.size,
				&reading->done);

	if (!direct_read_refused(error))
		return error;
	direct_read_report(reading->path, error);
	return 0;
}

/* Fills the unit; returns 0 when it is complete, or -errno. */
static int fill(struct reading *reading, enum reading_way way, bool wait)
{
	size_t size = (size_t)reading->version.size;
	ssize_t got;
	int error;

	if (!wait)
		/* Whatever the error, the step that may wait will find it. */
		return read_in_place(reading, RWF_NOWAIT) < 0 ? READING_LATER : 0;
	if (reading->borrowed)
		return read_in_place(reading, 0) < 0 ? -errno : 0;
	if (way == READING_DIRECT && !reading->done) {
		error = read_direct(reading);
		if (error || reading->done == size)
			return error;
	}
	if (reading->done && lseek(reading->fd, (off_t)reading->done, SEEK_SET) < 0)
		return -errno;
	got = NC_read(reading->fd, &reading->handle, reading->done, size - reading->done);
	if (got < 0)
		return -errno;
	reading->done += (size_t)got;
	return 0;
}

/* Inserts the unit into the cache, and holds it until all waiters have it. */
static int insert(struct reading *reading, size_t *id, struct NC_hold *hold)
{
	struct NC_insert_options options = NC_INSERT_OPTIONS_INIT(.hold = hold);

	if (NC_unit_insert_with(&reading->handle, NC_WHOLE, &options) < 0)
		return -errno;
	*id = NC_cache_id(&reading->handle);
	return 0;
}

/* What looks changed is decided by a thread that may wait. */
static int still(struct reading *reading, bool wait)
{
	int error =
		docroot_still(reading->fd, reading->root, reading->path, &reading->version, wait);

	return error == -EAGAIN && !wait ? READING_LATER : error;
}

int reading_unit(struct reading *reading, enum reading_way way, bool wait, size_t *id,
		 struct NC_hold *hold)
{
	bool passing = way == READING_PASSING;
	/* Sent once: short-lived memory without checksums, freed with the last hold. */
	enum NC_kind kind = passing ? NC_KIND_RECYCLED : NC_KIND_AUTO;
	unsigned flags = passing ? NC_UNIT_UNSUMMED : 0;
	int error;

	if (!wait && reading->version.size > NOW_MAX)
		return READING_LATER;
	if (!reading->filling && NC_unit_alloc(NULL, &reading->handle,
					       (size_t)reading->version.size, 0, kind, flags) < 0)
		return -errno;
	reading->filling = true;
	error = fill(reading, way, wait);
	if (error == READING_LATER)
		return error;
	if (!error && reading->done != (size_t)reading->version.size)
		error = -EAGAIN;
	if (!error)
		error = still(reading, wait);
	if (!error)
		error = insert(reading, id, hold);
	(void)NC_free(&reading->handle);
	reading->filling = false;
	reading->done = 0;
	return error;
}

void reading_drop_pages(const struct reading *reading)
{
	(void)posix_fadvise(reading->fd, 0, 0, POSIX_FADV_DONTNEED);
}

void reading_end(struct reading *reading)
{
	if (reading->filling)
		(void)NC_free(&reading->handle);
	if (reading->fd >= 0 && !reading->borrowed)
		close(reading->fd);
	*reading = READING_NONE;
}
