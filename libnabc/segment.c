/* SPDX-License-Identifier: MIT */
/*
 * segment.c - memfd segments: create, map, protect, seal, close.  No state of
 * its own; one segment belongs to one structure, whose owner locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fragment.h"
#include "segment.h"

#define HUGE_PAGE ((size_t)2 << 20)

/* Linux 6.1; absent from Debian 12's header. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* Where huge pages can be mapped: addresses that lie as offsets in the file do. */
static void *map_aligned(int fd, size_t size)
{
	char *room = mmap(NULL, size + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;
	void *base;

	if (room == MAP_FAILED)
		return MAP_FAILED;
	before = -(uintptr_t)room % HUGE_PAGE;
	base = mmap(room + before, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	if (base == MAP_FAILED) {
		munmap(room, size + HUGE_PAGE);
		return MAP_FAILED;
	}
	if (before)
		munmap(room, before);
	munmap(room + before + size, HUGE_PAGE - before);
	return base;
}

static int map(struct nc_segment *segment, int fd, size_t size, bool huge)
{
	void *base = huge ? map_aligned(fd, size)
			  : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	/* Two processes must not give out the same pages: a forked child has none. */
	(void)madvise(base, size, MADV_DONTFORK);
	*segment = (struct nc_segment){.fd = fd, .base = base, .size = size, .huge = huge};
	return 0;
}

int nc_segment_create(struct nc_segment *segment, size_t size, bool huge, bool final)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | (final ? F_SEAL_SEAL : 0);
	int error, fd = memfd_create("nabc", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0) {
		error = -errno;
		close(fd);
		return error;
	}
	error = map(segment, fd, size, huge && size >= HUGE_PAGE);
	if (error)
		close(fd);
	return error;
}

void nc_segment_prepare(const struct nc_segment *segment, size_t at, size_t length)
{
	size_t block = (at + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;

	if (!segment->huge)
		return;
	for (; block < at + length && block + HUGE_PAGE <= segment->size; block += HUGE_PAGE) {
		char *start = segment->base + block;

		/* Only a file that has a page here can be collapsed. */
		(void)*(volatile char *)start;
		if (madvise(start, HUGE_PAGE, MADV_COLLAPSE) < 0)
			return;
	}
}

int nc_segment_adopt(struct nc_segment *segment, int fd, size_t size)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat stat;

	if (fstat(fd, &stat) < 0)
		return -errno;
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || stat.st_size < 0 ||
	    (size_t)stat.st_size < size)
		return -EPROTO;
	return map(segment, fd, size, false);
}

int nc_segment_protect(struct nc_segment *segment, size_t offset, size_t length)
{
	return mprotect(segment->base + offset, length, PROT_READ) < 0 ? -errno : 0;
}

int nc_segment_seal(struct nc_segment *segment)
{
	return fcntl(segment->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0 ? -errno : 0;
}

void nc_segment_close(struct nc_segment *segment)
{
	if (segment->base)
		munmap(segment->base, segment->size);
	if (segment->fd >= 0)
		close(segment->fd);
	*segment = (struct nc_segment){.fd = -1};
}
