/* SPDX-License-Identifier: MIT */
/*
 * filestream-read.c - reads the next window of a file: on a helper thread, or, if the page cache has
 * it, at once.  It counts only if the file has not changed.
 *
 * The comparison uses the time stamps of the kernel, also that of the last change of the inode, which
 * no program can restore: docroot_still().  A program that writes to mapped pages of the
 * file updates them rarely; a server cannot detect that.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/container.h"
#include "event/thread-pool.h"
#include "files/docroot.h"
#include "files/file-cache.h"
#include "files/pagecache.h"
#include "handler/filestream-internal.h"
#include "http/range.h"

#define PAGE ((size_t)4096)
/*
 * After WARM windows in a row that were in the page cache, a read from disk is unlikely: windows
 * become larger, and fewer bytes are checked.  Checking each read took a tenth of the server's CPU
 * time.
 */
#define WARM 4u
#define WARM_WINDOW (4 * PAGECACHE_WINDOW)
#define COPY_WINDOW ((size_t)256 << 10) /* bytes, while site->windows has that many left */

/* Takes memory for the larger window if there is enough. */
static size_t take_memory(struct filestream *stream, uint64_t left)
{
	struct window *window = &stream->ready;

	if (left <= FILESTREAM_HELD_BACK)
		return (size_t)left;
	if (!budget_take(stream->budget, COPY_WINDOW))
		return FILESTREAM_HELD_BACK;
	window->taken = COPY_WINDOW;
	return left < COPY_WINDOW ? (size_t)left : COPY_WINDOW;
}

void filestream_drop(struct filestream *stream, struct window *window)
{
	if (window->taken)
		budget_give(stream->budget, window->taken);
	free(window->bytes);
	*window = (struct window){0};
}

static int read_memory(struct window *window, int fd)
{
	size_t done = 0;

	window->bytes = malloc(window->length);
	if (!window->bytes)
		return -ENOMEM;
	while (done < window->length) {
		ssize_t got = pread(fd, window->bytes + done, window->length - done,
				    (off_t)(window->offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EAGAIN;
		done += (size_t)got;
	}
	return 0;
}

/* Returns how many last bytes of a range are held back: 0 of a spool, which never changes. */
static uint64_t held_back(const struct filestream *stream)
{
	return stream->spool ? 0 : FILESTREAM_HELD_BACK;
}

/* Ends at a page boundary; does not include the bytes that are held back. */
static size_t lend_length(const struct filestream *stream, uint64_t offset, uint64_t left,
			  size_t window)
{
	size_t most = window - (size_t)(offset % PAGE);

	left -= held_back(stream);
	return left < most ? (size_t)left : most;
}

/* A file that was renamed or unlinked is still sent to its end. */
static int check(struct filestream *stream, bool wait)
{
	const char *path = stream->entry ? file_cache_view(stream->entry)->path : stream->path;

	return stream->spool ? 0
			     : docroot_still(stream->fd, file_cache_root(stream->cache), path,
					     &stream->version, wait);
}

/* Whether the next window consists of lent pages. */
static bool lends_next(const struct filestream *stream)
{
	return stream->lends && filestream_left(stream) > held_back(stream);
}

static void place_window(struct filestream *stream)
{
	stream->ready.offset = stream->ranges.ranges[stream->part].first + stream->at;
	stream->ready.first = stream->at == 0;
}

/* Ends the read of a window.  wait: on a helper thread.  Returns 0 or -errno. */
static int end_window(struct filestream *stream, int error, bool wait)
{
	struct window *window = &stream->ready;

	if (!error)
		error = check(stream, wait);
	if (error == -ERANGE)
		error = -EAGAIN;
	if (error)
		filestream_drop(stream, window);
	else
		stream->at += window->length;
	return error;
}

static int read_window(struct filestream *stream)
{
	struct window *window = &stream->ready;
	uint64_t left = filestream_left(stream);
	int error;

	place_window(stream);
	if (lends_next(stream)) {
		window->length = lend_length(stream, window->offset, left, PAGECACHE_WINDOW);
		error = pagecache_load(stream->fd, window->offset, window->length);
	} else {
		window->length = take_memory(stream, left);
		error = read_memory(window, stream->fd);
	}
	return end_window(stream, error, true);
}

bool filestream_has_window(struct filestream *stream)
{
	struct window *window = &stream->ready;
	bool warm = stream->warm >= WARM;
	size_t length;

	if (!lends_next(stream))
		return false;
	place_window(stream);
	length = lend_length(stream, window->offset, filestream_left(stream),
			     warm ? WARM_WINDOW : PAGECACHE_WINDOW);
	if (!pagecache_has(stream->fd, window->offset, length,
			   warm ? PAGECACHE_WINDOW : PAGECACHE_READ)) {
		stream->warm = 0;
		return false;
	}
	stream->warm++;
	window->length = length;
	/* A helper thread may wait, and decides whether the file has changed. */
	return end_window(stream, 0, false) == 0;
}

/* If the version differs from the one that was looked up, it must not be changing now. */
static int open_file(struct filestream *stream)
{
	struct file_version now;

	stream->fd = docroot_open_file(file_cache_root(stream->cache),
				       file_cache_view(stream->entry)->path, &now);
	if (stream->fd < 0)
		return stream->fd;
	(void)posix_fadvise(stream->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	if (file_version_equal(&now, &stream->version))
		return 0;
	stream->version = now;
	stream->renewed = true;
	file_version_await_stable(&now);
	return check(stream, true);
}

void filestream_work(struct job *job)
{
	struct filestream *stream = container_of(job, struct filestream, job);

	if (stream->fd < 0) {
		stream->error = open_file(stream);
		/* For another version, the transaction's thread has to choose the ranges again. */
		if (stream->error || stream->renewed)
			return;
	}
	stream->error = job_cancelled(job) ? -ECANCELED : read_window(stream);
}
