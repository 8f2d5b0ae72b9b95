/* SPDX-License-Identifier: MIT */
/*
 * segment.c - memfd segments: create, map, protect, seal, close.  No state; one
 * segment belongs to one structure, whose owner locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fragment.h"
#include "os/descriptor.h"
#include "os/pin.h"
#include "os/release.h"
#include "os/segment.h"

/* Linux 6.1; absent from Debian 12's header. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* Reserves addresses for size bytes and a huge page more. */
static char *reserve(size_t size)
{
	return mmap(NULL, size + NC_HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Returns what is mapped at the first huge page of the room, and frees the rest of it. */
static void *keep_aligned(char *room, void *base, size_t size)
{
	size_t before = -(uintptr_t)room % NC_HUGE_PAGE;

	if (base == MAP_FAILED) {
		munmap(room, size + NC_HUGE_PAGE);
		return MAP_FAILED;
	}
	if (before)
		munmap(room, before);
	munmap(room + before + size, NC_HUGE_PAGE - before);
	return base;
}

/* Maps where huge pages are possible: addresses aligned like the offsets in the file. */
static void *map_aligned(int fd, size_t size, int protection, int flags)
{
	char *room = reserve(size);
	size_t before = -(uintptr_t)room % NC_HUGE_PAGE;
	void *base;

	if (room == MAP_FAILED)
		return MAP_FAILED;
	base = mmap(room + before, size, protection, flags | MAP_FIXED, fd, 0);
	return keep_aligned(room, base, size);
}

/* Makes a mapping of old bytes one of size bytes, at such an address. */
static void *remap_aligned(void *base, size_t old, size_t size)
{
	char *room = reserve(size);
	size_t before = -(uintptr_t)room % NC_HUGE_PAGE;
	int flags = MREMAP_MAYMOVE | MREMAP_FIXED;

	if (room == MAP_FAILED)
		return MAP_FAILED;
	return keep_aligned(room, mremap(base, old, size, flags, room + before), size);
}

static int map(struct nc_segment *segment, int fd, size_t size, bool huge)
{
	void *base = huge ? map_aligned(fd, size, PROT_READ | PROT_WRITE, MAP_SHARED)
			  : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	/* Two processes must not allocate the same pages: a forked child has no mapping. */
	(void)madvise(base, size, MADV_DONTFORK);
	*segment = (struct nc_segment){.fd = fd, .base = base, .size = size, .huge = huge};
	return 0;
}

/* Linux 6.3; absent from Debian 12's header. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Some systems refuse executable memory files (vm.memfd_noexec). */
static int create_file(void)
{
	int fd = memfd_create("nabc", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("nabc", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("nabc", MFD_CLOEXEC);
	return nc_descriptor(fd);
}

bool nc_segment_can_seal(void)
{
	int fd = create_file();
	/* If no descriptor is free, that says nothing about seals. */
	bool can = fd < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0;

	if (fd >= 0)
		close(fd);
	return can;
}

/*
 * Beyond RLIMIT_FSIZE, the kernel does not only refuse a size, but also sends SIGXFSZ, which ends
 * a program that does not expect it.
 */
static bool may_have_size(size_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
	       size <= limit.rlim_cur;
}

static int set_size(int fd, size_t size)
{
	if (!may_have_size(size))
		return -EFBIG;
	return ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
}

#define SIZE_FIXED (F_SEAL_SHRINK | F_SEAL_GROW)

/* needed: a file without these seals is of no use. */
static int create(struct nc_segment *segment, size_t size, bool huge, int seals, bool needed)
{
	int error, fd = create_file();

	if (fd < 0)
		return fd;
	error = set_size(fd, size);
	if (!error && seals && fcntl(fd, F_ADD_SEALS, seals) < 0 && needed)
		error = errno == EINVAL ? -ENOTSUP : -errno;
	if (error) {
		close(fd);
		return error;
	}
	error = map(segment, fd, size, huge && size >= NC_HUGE_PAGE);
	if (error)
		close(fd);
	return error;
}

int nc_segment_create(struct nc_segment *segment, size_t size, bool huge, bool final)
{
	/*
	 * Seals protect other processes; they are optional for a segment that only
	 * this process uses.
	 */
	return create(segment, size, huge, SIZE_FIXED | (final ? F_SEAL_SEAL : 0), final);
}

int nc_segment_create_sizable(struct nc_segment *segment, size_t size, bool huge)
{
	return create(segment, size, huge, 0, false);
}

void nc_segment_fix_size(struct nc_segment *segment)
{
	/* Optional, as in nc_segment_create(). */
	(void)fcntl(segment->fd, F_ADD_SEALS, SIZE_FIXED);
}

int nc_segment_shrink(struct nc_segment *segment, size_t size)
{
	size_t behind = segment->size - size;

	if (segment->fd >= 0 && ftruncate(segment->fd, (off_t)size) < 0)
		return -errno;
	(void)munmap(segment->base + size, behind);
	if (segment->pin)
		nc_pin_closed(segment->pin, behind, segment->locked);
	segment->size = size;
	return 0;
}

int nc_segment_grow(struct nc_segment *segment, size_t size, bool huge)
{
	size_t old = segment->size;
	int error = set_size(segment->fd, size);
	void *base;

	if (error)
		return error;
	huge = huge && size >= NC_HUGE_PAGE;
	base = huge ? remap_aligned(segment->base, old, size)
		    : mremap(segment->base, old, size, MREMAP_MAYMOVE);
	if (base == MAP_FAILED) {
		error = -errno;
		(void)set_size(segment->fd, old);
		return error;
	}
	segment->base = base;
	segment->size = size;
	segment->huge = huge;
	if (segment->pin) {
		nc_pin_closed(segment->pin, old, segment->locked);
		segment->locked = nc_pin_lock(segment->pin, base, size, false);
	}
	return 0;
}

int nc_segment_create_private(struct nc_segment *segment, size_t size)
{
	void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED)
		return -errno;
	(void)madvise(base, size, MADV_DONTFORK);
	*segment = (struct nc_segment){.fd = -1, .base = base, .size = size};
	return 0;
}

void nc_segment_pin(struct nc_segment *segment, struct nc_pin *pin, bool filled)
{
	if (!pin)
		return;
	segment->pin = pin;
	segment->locked = nc_pin_lock(pin, segment->base, segment->size, filled);
}

int nc_segment_collapse(struct nc_segment *segment, size_t at)
{
	char *block = segment->base + at;

	/* Only a block that contains a page can be collapsed. */
	(void)*(volatile char *)block;
	if (madvise(block, NC_HUGE_PAGE, MADV_COLLAPSE) < 0)
		return -errno;
	atomic_store_explicit(&segment->collapsed, true, memory_order_relaxed);
	return 0;
}

bool nc_segment_huge_unasked(void)
{
	int fd = open("/sys/kernel/mm/transparent_hugepage/shmem_enabled", O_RDONLY | O_CLOEXEC);
	char text[128] = "";
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return length > 0 && (strstr(text, "[always]") || strstr(text, "[within_size]") ||
			      strstr(text, "[force]"));
}

/* Whether size bytes of a received file can be accessed without a fault. */
static int check_sent(int fd, size_t size)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat stat;

	if (fstat(fd, &stat) < 0)
		return -errno;
	return seals < 0 || !(seals & F_SEAL_SHRINK) || stat.st_size < 0 ||
			       (size_t)stat.st_size < size
		       ? -EPROTO
		       : 0;
}

int nc_segment_adopt(struct nc_segment *segment, int fd, size_t size)
{
	int error = check_sent(fd, size);

	return error ? error : map(segment, fd, size, false);
}

int nc_segment_adopt_readable(struct nc_segment *segment, int fd, size_t size)
{
	int error = check_sent(fd, size);
	void *base;

	if (error)
		return error;
	base = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	(void)madvise(base, size, MADV_DONTFORK);
	*segment = (struct nc_segment){.fd = fd, .base = base, .size = size};
	return 0;
}

int nc_segment_protect(struct nc_segment *segment, size_t offset, size_t length)
{
	return mprotect(segment->base + offset, length, PROT_READ) < 0 ? -errno : 0;
}

int nc_segment_unprotect(struct nc_segment *segment, size_t offset, size_t length)
{
	int protection = PROT_READ | PROT_WRITE;

	return mprotect(segment->base + offset, length, protection) < 0 ? -errno : 0;
}

int nc_segment_map_again(const struct nc_segment *segment, size_t offset, size_t length,
			 char **again)
{
	/*
	 * An old length of 0 copies a shared mapping.  mmap(2) could not make this one:
	 * it obeys the seal against future writes, from which existing mappings and their
	 * copies are exempt.
	 */
	char *copy = mremap(segment->base + offset, 0, length, MREMAP_MAYMOVE);
	int error;

	if (copy == MAP_FAILED)
		return -errno;
	if (mprotect(copy, length, PROT_READ | PROT_WRITE) < 0) {
		error = errno == EACCES ? -EINVAL : -errno;
		munmap(copy, length);
		return error;
	}
	*again = copy;
	return 0;
}

int nc_segment_seal(struct nc_segment *segment)
{
	return fcntl(segment->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0 ? -errno : 0;
}

#define FROZEN (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define FREEZE_COPIES 3

/*
 * Before Linux 6.7, a memfd that is sealed against writing cannot be mapped shared
 * at all; a private mapping that is never written shows the same pages.  The seal
 * permits private mappings, so this one can exist before it.
 */
static int map_frozen(struct nc_segment *segment, int fd, void *where, int flags)
{
	void *base = mmap(where, segment->size, PROT_READ, MAP_PRIVATE | flags, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	(void)madvise(base, segment->size, MADV_DONTFORK);
	segment->base = base;
	return 0;
}

static int seal_frozen(int fd)
{
	return fcntl(fd, F_ADD_SEALS, FROZEN | F_SEAL_SEAL) < 0 ? -errno : 0;
}

static int write_all(int fd, const char *data, size_t size)
{
	if (!may_have_size(size))
		return -EFBIG;
	for (size_t done = 0; done < size;) {
		ssize_t written = write(fd, data + done, size - done);

		if (written < 0 && errno != EINTR)
			return -errno;
		done += written > 0 ? (size_t)written : 0;
	}
	return 0;
}

/*
 * Replaces a file that another process could write, or whose pages are held, with a
 * copy of the same bytes.  A child that was forked just before MADV_DONTFORK has a
 * mapping until it executes its program; and memory reclaim or migration may hold
 * pages longer than the seal waits for them.
 */
static int freeze_copy(struct nc_segment *segment)
{
	int error, fd = create_file();

	if (fd < 0)
		return fd;
	error = write_all(fd, segment->base, segment->size);
	if (!error)
		error = seal_frozen(fd);
	if (!error)
		error = map_frozen(segment, fd, segment->base, MAP_FIXED);
	if (!error && dup3(fd, segment->fd, O_CLOEXEC) < 0)
		error = -errno;
	close(fd);
	return error;
}

static int freeze(struct nc_segment *segment)
{
	int error, protection = PROT_READ | PROT_WRITE;

	/*
	 * The seal requires that no writable mapping exists; if it fails, the
	 * memory is still readable.
	 */
	error = map_frozen(segment, segment->fd, segment->base, MAP_FIXED);
	if (error)
		return error;
	error = seal_frozen(segment->fd);
	if (!error)
		return 0;
	for (unsigned i = 0; error == -EBUSY && i < FREEZE_COPIES; i++)
		if (freeze_copy(segment) == 0)
			return 0;
	if (mmap(segment->base, segment->size, protection, MAP_SHARED | MAP_FIXED, segment->fd,
		 0) == MAP_FAILED)
		return -errno;
	(void)madvise(segment->base, segment->size, MADV_DONTFORK);
	return error == -EINVAL ? -ENOTSUP : error;
}

int nc_segment_freeze(struct nc_segment *segment)
{
	int error = freeze(segment);

	/* The new mapping replaced the locked one, on failure too. */
	if (segment->pin)
		segment->locked = nc_pin_lock_again(segment->pin, segment->base, segment->size,
						    segment->locked);
	return error;
}

int nc_segment_adopt_frozen(struct nc_segment *segment, int fd, size_t size)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat stat;

	if (seals < 0 || (seals & FROZEN) != FROZEN || size == 0 || size % NC_PAGE ||
	    fstat(fd, &stat) < 0 || stat.st_size < 0 || (size_t)stat.st_size != size)
		return -EPROTO;
	*segment = (struct nc_segment){.fd = fd, .size = size};
	return map_frozen(segment, fd, NULL, 0);
}

int nc_segment_reader(struct nc_segment *segment)
{
	int known = atomic_load_explicit(&segment->reader, memory_order_acquire), fd;
	char path[32];

	if (known)
		return known - 1;
	if (segment->fd < 0)
		return -EBADF;
	/* A duplicate would share the right to write. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", segment->fd);
	fd = nc_descriptor(open(path, O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return fd;
	if (atomic_compare_exchange_strong_explicit(&segment->reader, &known, fd + 1,
						    memory_order_acq_rel, memory_order_acquire))
		return fd;
	close(fd);
	return known - 1;
}

/* A private mapping that is never written: it does not prevent seals. */
static char *map_whole(struct nc_segment *segment)
{
	char *known = NULL;
	char *whole = map_aligned(segment->fd, segment->size, PROT_READ, MAP_PRIVATE);

	if (whole == MAP_FAILED)
		whole = segment->base;
	else
		(void)madvise(whole, segment->size, MADV_DONTFORK);
	if (atomic_compare_exchange_strong_explicit(&segment->whole, &known, whole,
						    memory_order_acq_rel, memory_order_acquire))
		return whole;
	if (whole != segment->base)
		munmap(whole, segment->size);
	return known;
}

char *nc_segment_whole(struct nc_segment *segment)
{
	char *whole = atomic_load_explicit(&segment->whole, memory_order_acquire);

	if (whole)
		return whole;
	if (!atomic_load_explicit(&segment->collapsed, memory_order_relaxed) || segment->fd < 0)
		return segment->base;
	return map_whole(segment);
}

void nc_segment_watch(struct nc_segment *segment, struct nc_segment_watch *watch)
{
	/* Pairs with the acquires in call_watches() and in find() of registered.c. */
	watch->next = atomic_load_explicit(&segment->watches, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&segment->watches, &watch->next, watch,
						      memory_order_release, memory_order_relaxed))
		;
}

static void call_watches(struct nc_segment *segment)
{
	struct nc_segment_watch *watch =
		atomic_load_explicit(&segment->watches, memory_order_acquire);

	while (watch) {
		struct nc_segment_watch *next = watch->next;

		watch->closed(watch);
		watch = next;
	}
}

void nc_segment_close(struct nc_segment *segment)
{
	int reader = atomic_load_explicit(&segment->reader, memory_order_relaxed);
	char *whole = atomic_load_explicit(&segment->whole, memory_order_relaxed);
	struct nc_release release;

	call_watches(segment);
	if (reader)
		close(reader - 1);
	release = (struct nc_release){
		.base = segment->base, .size = segment->size, .fd = segment->fd};
	if (whole != segment->base)
		release.second = whole;
	/* Locked memory is returned before anything else may need it. */
	if (segment->locked)
		nc_release_here(&release);
	else
		nc_release(&release);
	if (segment->pin)
		nc_pin_closed(segment->pin, segment->size, segment->locked);
	*segment = (struct nc_segment){.fd = -1};
}
