/* SPDX-License-Identifier: MIT */
/*
 * read-ways.c - the CPU time of reading a file into shared memory, as a cache fills its units: by
 * pread(), by io_uring's READ, and by its READ_FIXED into registered memory.
 *
 * The three take turns in short rounds, so that a disturbance of the machine meets all of them; the
 * median round counts.  Each is measured through the page cache and past it (O_DIRECT), and into
 * pages of 4 KB and of 2 MB.  Prints a line for each case: size, "cache" or "direct", "small" or
 * "huge", and microseconds of CPU time of one read.  A case that the system cannot do has no line,
 * but a reason on standard error.  One thread.
 *
 * Usage: read-ways FOLDER SIZE...
 *   FOLDER  for the file, which is removed
 *   SIZE    bytes, 1 to 2097152
 */
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <liburing.h>

#define ROUNDS 21u
#define ROUND_READS 50u
#define ROOM ((size_t)2 << 20)

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum way { WAY_PREAD, WAY_READ, WAY_READ_FIXED, WAYS };

static double cpu_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns shared memory that begins at a multiple of its size. */
static char *memory(void)
{
	int fd = memfd_create("read-ways", MFD_CLOEXEC);
	char *at;

	if (fd < 0 || ftruncate(fd, (off_t)ROOM) < 0)
		err(1, "memfd");
	at = mmap(NULL, 2 * ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at != MAP_FAILED) {
		at += ROOM - (size_t)at % ROOM;
		at = mmap(at, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	}
	if (at == MAP_FAILED)
		err(1, "mmap");
	close(fd);
	memset(at, 0, ROOM);
	return at;
}

static int file_of(const char *folder, size_t size, bool direct)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char *bytes = calloc(1, size);

	if (fd < 0 || !bytes || write(fd, bytes, size) != (ssize_t)size || fsync(fd) < 0)
		err(1, "%s: file of %zu bytes", folder, size);
	free(bytes);
	if (direct && fcntl(fd, F_SETFL, O_DIRECT) < 0) {
		warn("%s: O_DIRECT", folder);
		close(fd);
		return -1;
	}
	return fd;
}

static ssize_t read_by_ring(struct io_uring *ring, enum way way, int fd, char *to, size_t size)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct io_uring_cqe *cqe;
	ssize_t got;

	if (way == WAY_READ)
		io_uring_prep_read(sqe, fd, to, (unsigned)size, 0);
	else
		io_uring_prep_read_fixed(sqe, fd, to, (unsigned)size, 0, 0);
	if (io_uring_submit_and_wait(ring, 1) < 0 || io_uring_wait_cqe(ring, &cqe) < 0)
		errx(1, "io_uring failed");
	got = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return got;
}

/* Returns the CPU time of one read; below 0: it is impossible. */
static double measure(struct io_uring *ring, enum way way, int fd, char *to, size_t size)
{
	double begin = cpu_us();

	for (unsigned i = 0; i < ROUND_READS; i++) {
		ssize_t got = way == WAY_PREAD ? pread(fd, to, size, 0)
					       : read_by_ring(ring, way, fd, to, size);

		if (got != (ssize_t)size)
			return -1;
	}
	return (cpu_us() - begin) / ROUND_READS;
}

static void compare(const char *folder, size_t size, bool direct, bool huge)
{
	int fd = file_of(folder, size, direct);
	char *to = memory();
	struct iovec all = {to, ROOM};
	double times[WAYS][ROUNDS];
	struct io_uring ring;
	int error = io_uring_queue_init(4, &ring, 0);

	if (error)
		errx(1, "io_uring: %s", strerror(-error));
	if (fd < 0)
		goto out;
	if (huge && madvise(to, ROOM, MADV_COLLAPSE) < 0) {
		warn("pages of 2 MB");
		goto out;
	}
	error = io_uring_register_buffers(&ring, &all, 1);
	if (error) {
		warnx("registering %zu bytes: %s", ROOM, strerror(-error));
		goto out;
	}
	for (unsigned round = 0; round < ROUNDS; round++)
		for (enum way way = 0; way < WAYS; way++) {
			times[way][round] = measure(&ring, way, fd, to, size);
			if (times[way][round] < 0) {
				warnx("%zu bytes cannot be read%s", size,
				      direct ? " with O_DIRECT" : "");
				goto out;
			}
		}
	printf("%zu %s %s", size, direct ? "direct" : "cache", huge ? "huge" : "small");
	for (enum way way = 0; way < WAYS; way++) {
		qsort(times[way], ROUNDS, sizeof(times[way][0]), by_value);
		printf(" %.2f", times[way][ROUNDS / 2]);
	}
	putchar('\n');
out:
	io_uring_queue_exit(&ring);
	if (fd >= 0)
		close(fd);
	munmap(to, ROOM);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		errx(2, "usage: read-ways FOLDER SIZE...");
	for (int i = 2; i < argc; i++) {
		char *end;
		unsigned long size = strtoul(argv[i], &end, 10);

		if (*end || !size || size > ROOM)
			errx(2, "%s: not a number of bytes from 1 to %zu", argv[i], ROOM);
		for (int direct = 0; direct <= 1; direct++)
			for (int huge = 0; huge <= 1; huge++)
				compare(argv[1], size, direct, huge);
	}
	return 0;
}
