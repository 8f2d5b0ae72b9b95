/* SPDX-License-Identifier: MIT */
/*
 * pagecache.c - see pagecache.h.  Any thread.
 *
 * splice(2) into a pipe waits until the pages are there and takes references to
 * them, without a copy; the end of the pipe drops them.  readahead(2) does not
 * wait, and mincore(2) tells the truth to the file's owner only.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <pagecache.h>

/* Into a pipe until it is full.  Bytes, or -errno. */
static ssize_t load_pipe(int fd, uint64_t offset, size_t length)
{
	off64_t at = (off64_t)offset;
	size_t done = 0;
	ssize_t got = 0;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	/* Refused to users with many pipes: then it takes more of them. */
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
	while (length) {
		ssize_t got = load_pipe(fd, offset, length);

		if (got < 0)
			return (int)got;
		offset += (uint64_t)got;
		length -= (size_t)got;
	}
	return 0;
}
