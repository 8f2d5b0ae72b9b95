/* SPDX-License-Identifier: MIT */
/*
 * pagecache.c - see pagecache.h.  Any thread.
 *
 * splice(2) into a pipe waits until the pages are loaded, and takes references to
 * them without a copy; closing the pipe drops them. readahead(2) does not wait.
 *
 * Usually all pages are there already. cachestat(2), since Linux 6.5, detects that
 * in a fifth of the time of the references, but only for files that the user may
 * write.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "files/pagecache.h"

#define PAGE 4096u

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

/* As in <linux/mman.h> of newer systems. */
struct pages_range {
	uint64_t offset, length; /* bytes */
};

struct pages_count {
	uint64_t cached, dirty, writeback, evicted, evicted_recently;
};

/* Returns true if that byte can be read without waiting. */
static bool is_read(int fd, uint64_t offset)
{
	char byte;
	struct iovec iov = {&byte, 1};

	return preadv2(fd, &iov, 1, (off_t)offset, RWF_NOWAIT) == 1;
}

bool pagecache_has(int fd, uint64_t offset, size_t length, size_t step)
{
	struct pages_range range = {offset, length};
	uint64_t end = offset + length, pages = (end + PAGE - 1) / PAGE - offset / PAGE;
	struct pages_count count;

	if (syscall(SYS_cachestat, fd, &range, &count, 0) < 0 || count.cached < pages)
		return false;
	for (uint64_t at = offset; at < end; at += step)
		if (!is_read(fd, at))
			return false;
	return is_read(fd, end - 1);
}

/* Loads pages into a pipe until it is full.  Returns bytes, or -errno. */
static ssize_t load_pipe(int fd, uint64_t offset, size_t length)
{
	off64_t at = (off64_t)offset;
	size_t done = 0;
	ssize_t got = 0;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	/* Fails for users with many pipes: then more pipes are needed. */
	(void)fcntl(ends[1], F_SETPIPE_SZ, (int)PAGECACHE_WINDOW);
	while (done < length) {
		got = splice(fd, &at, ends[1], NULL, length - done, SPLICE_F_NONBLOCK);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	if (!done)
		done = (size_t)(got < 0 ? -errno : -ERANGE);
	close(ends[0]);
	close(ends[1]);
	return (ssize_t)done;
}

int pagecache_load(int fd, uint64_t offset, size_t length)
{
	if (length && pagecache_has(fd, offset, length, PAGECACHE_READ))
		return 0;
	while (length) {
		ssize_t got = load_pipe(fd, offset, length);

		if (got < 0)
			return (int)got;
		offset += (uint64_t)got;
		length -= (size_t)got;
	}
	return 0;
}
