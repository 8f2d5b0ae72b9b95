/* SPDX-License-Identifier: MIT */
/*
 * direct-read.c - see direct-read.h.  Any thread; one at a time uses a descriptor.
 *
 * Memory, offset and length of a direct read must be aligned, mostly to a logical
 * block of the disk.  BLOCK is a multiple of all common ones; each unit begins on such
 * a boundary, and libnabc divides long reads at such boundaries.  So whole blocks are
 * read into the unit itself.
 *
 * The tail is read into a block of its own and copied.  It could be read directly as
 * well, because the unit's memory ends with a page; but if the file grows meanwhile,
 * that would write behind the bytes of the unit.  A plain read of the tail would load
 * its page and, as readahead, its neighbours into the page cache.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/direct-read.h"
#include "log/log.h"

#define BLOCK 4096u

/*
 * Returns false if the system states that direct reads are impossible, or that they
 * need more than the alignment to a block.  Linux 6.1 states it for some file systems.
 * Without this, ext4 would read files that it encrypts, or whose data it journals,
 * through the page cache without an error.
 */
static bool is_possible(int fd)
{
#ifdef STATX_DIOALIGN
	struct statx stat;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stat) == 0 &&
	    stat.stx_mask & STATX_DIOALIGN)
		return stat.stx_dio_offset_align && BLOCK % stat.stx_dio_offset_align == 0 &&
		       stat.stx_dio_mem_align && BLOCK % stat.stx_dio_mem_align == 0;
#else
	(void)fd;
#endif
	return true;
}

/* Reads whole blocks.  Returns 0 or -errno; fewer bytes if the file is shorter. */
static int read_blocks(int fd, NC_handle *handle, size_t length, size_t *done)
{
	while (*done < length) {
		ssize_t got = NC_read(fd, handle, *done, length - *done);

		if (got < 0)
			return -errno;
		*done += (size_t)got;
		/* No later read would be aligned. */
		if (got == 0 || *done % BLOCK != 0)
			break;
	}
	return 0;
}

/* Reads fewer bytes than a block, behind whole blocks. */
static int read_tail(int fd, NC_handle *handle, size_t length, size_t *done)
{
	_Alignas(BLOCK) char block[BLOCK];
	ssize_t got;

	do {
		got = pread(fd, block, sizeof(block), (off_t)*done);
	} while (got < 0 && errno == EINTR);
	if (got > 0)
		got = NC_write(handle, block, (size_t)got < length ? (size_t)got : length, *done);
	if (got < 0)
		return -errno;
	*done += (size_t)got;
	return 0;
}

int direct_read(int fd, NC_handle *handle, size_t size, size_t *done)
{
	size_t blocks = size - size % BLOCK;
	int flags = fcntl(fd, F_GETFL), error;

	*done = 0;
	if (flags < 0)
		return -errno;
	if (!is_possible(fd))
		return -EOPNOTSUPP;
	if (fcntl(fd, F_SETFL, flags | O_DIRECT) < 0)
		return -errno;
	error = read_blocks(fd, handle, blocks, done);
	if (!error && *done == blocks && blocks < size)
		error = read_tail(fd, handle, size - blocks, done);
	/* These were the flags before, so this cannot fail. */
	(void)fcntl(fd, F_SETFL, flags);
	return error;
}

bool direct_read_refused(int error)
{
	/* EFAULT: memory of a device, such as the kernel module's, cannot be pinned. */
	return error == -EINVAL || error == -EOPNOTSUPP || error == -EFAULT;
}

void direct_read_report(const char *path, int error)
{
	static atomic_flag reported = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set_explicit(&reported, memory_order_relaxed))
		log_warning("page-cache=bypass: cannot read with O_DIRECT: %s: %s (such files "
			    "are read as with page-cache=drop; logged once)",
			    path, g_strerror(-error));
}
