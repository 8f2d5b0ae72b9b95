/* SPDX-License-Identifier: MIT */
/*
 * test-segment.c - unit tests of segment.c: seals, protection, adoption, the view of a
 * forked child, and that a socket's bytes outlive the segment.  Owns its segments;
 * single-threaded.
 */
#include <nabc.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/release.h"
#include "os/segment.h"

#include "process-memory.h"
#include "suite.h"

#define PAGE ((size_t)4096)

START_TEST(test_create)
{
	struct nc_segment segment;
	struct stat stat;
	int seals;

	for (int final = 0; final < 2; final++) {
		ck_assert_int_eq(nc_segment_create(&segment, 8 * PAGE, false, final), 0);
		ck_assert_uint_eq(segment.size, 8 * PAGE);
		ck_assert_int_eq(fstat(segment.fd, &stat), 0);
		ck_assert_int_eq(stat.st_size, 8 * PAGE);
		ck_assert_int_eq(fcntl(segment.fd, F_GETFD), FD_CLOEXEC);
		for (size_t i = 0; i < segment.size; i++)
			expect(segment.base[i] == 0);
		pattern_fill(segment.base, 1, 0, segment.size);
		ck_assert_uint_eq(pattern_match(segment.base, 1, 0, segment.size), segment.size);
		/* No holder of the descriptor can cause an access fault. */
		seals = fcntl(segment.fd, F_GET_SEALS);
		ck_assert_int_eq(seals & (F_SEAL_SHRINK | F_SEAL_GROW),
				 F_SEAL_SHRINK | F_SEAL_GROW);
		ck_assert_int_lt(ftruncate(segment.fd, PAGE), 0);
		ck_assert_int_eq(errno, EPERM);
		ck_assert_int_lt(ftruncate(segment.fd, 9 * PAGE), 0);
		ck_assert_int_eq(fcntl(segment.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE),
				 final ? -1 : 0);
		nc_segment_close(&segment);
		ck_assert_int_eq(segment.fd, -1);
		ck_assert_ptr_null(segment.base);
		nc_segment_close(&segment);
	}
}
END_TEST

START_TEST(test_create_fails_whole)
{
	struct nc_segment segment;
	struct rlimit before, none;
	unsigned descriptors = open_descriptors();

	ck_assert_int_lt(nc_segment_create(&segment, SIZE_MAX / 2 / PAGE * PAGE, false, false), 0);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert_int_eq(nc_segment_create(&segment, PAGE, false, false), -EMFILE);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

START_TEST(test_protect)
{
	struct nc_segment segment;

	ck_assert_int_eq(nc_segment_create(&segment, 4 * PAGE, false, false), 0);
	memset(segment.base, 'a', segment.size);
	ck_assert_int_eq(nc_segment_protect(&segment, PAGE, 2 * PAGE), 0);
	ck_assert(writable(segment.base + PAGE - 1));
	ck_assert(!writable(segment.base + PAGE));
	ck_assert(!writable(segment.base + 3 * PAGE - 1));
	ck_assert(writable(segment.base + 3 * PAGE));
	ck_assert_int_eq(segment.base[PAGE], 'a');
	nc_segment_close(&segment);
}
END_TEST

START_TEST(test_seal)
{
	struct nc_segment segment;
	char byte;

	ck_assert_int_eq(nc_segment_create(&segment, 2 * PAGE, false, false), 0);
	segment.base[0] = 'a';
	ck_assert_int_eq(nc_segment_seal(&segment), 0);
	ck_assert_ptr_eq(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, segment.fd, 0),
			 MAP_FAILED);
	ck_assert_int_lt(pwrite(segment.fd, "b", 1, 0), 0);
	ck_assert_int_lt(fallocate(segment.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE),
			 0);
	ck_assert_int_eq(pread(segment.fd, &byte, 1, 0), 1);
	ck_assert_int_eq(byte, 'a');
	/* Processes with a mapping can still write to their memory. */
	ck_assert(writable(segment.base + PAGE));
	nc_segment_close(&segment);
}
END_TEST

START_TEST(test_adopt)
{
	struct nc_segment segment, again;
	int fd;

	ck_assert_int_eq(nc_segment_create(&segment, 4 * PAGE, false, true), 0);
	fd = fcntl(segment.fd, F_DUPFD_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	/* A smaller size may be requested, a larger one may not. */
	ck_assert_int_eq(nc_segment_adopt(&again, fd, 5 * PAGE), -EPROTO);
	ck_assert_int_eq(nc_segment_adopt(&again, fd, SIZE_MAX), -EPROTO);
	ck_assert_int_eq(nc_segment_adopt(&again, fd, 2 * PAGE), 0);
	ck_assert_uint_eq(again.size, 2 * PAGE);
	ck_assert_int_eq(again.fd, fd);
	segment.base[PAGE] = 'x';
	ck_assert_int_eq(again.base[PAGE], 'x');
	nc_segment_close(&again);
	ck_assert_int_lt(fcntl(fd, F_GETFD), 0);
	nc_segment_close(&segment);
}
END_TEST

/* Writable by another process, readable here: never writable here, with any seals. */
START_TEST(test_adopt_readable)
{
	struct nc_segment segment, seen;
	unsigned descriptors;
	int fd;

	ck_assert_int_eq(nc_segment_create(&segment, 2 * PAGE, false, false), 0);
	fd = fcntl(segment.fd, F_DUPFD_CLOEXEC, 0);
	descriptors = open_descriptors();
	ck_assert_int_eq(nc_segment_adopt_readable(&seen, fd, 3 * PAGE), -EPROTO);
	ck_assert_int_eq(nc_segment_adopt_readable(&seen, fd, SIZE_MAX), -EPROTO);
	ck_assert_int_lt(nc_segment_adopt_readable(&seen, fd, 0), 0);
	ck_assert_int_eq(nc_segment_adopt_readable(&seen, STDIN_FILENO, PAGE), -EPROTO);
	ck_assert_int_eq(nc_segment_adopt_readable(&seen, -1, PAGE), -EBADF);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	/* While its owner may still write, and afterwards. */
	ck_assert_int_eq(nc_segment_adopt_readable(&seen, fd, 2 * PAGE), 0);
	segment.base[PAGE] = 'x';
	ck_assert_int_eq(seen.base[PAGE], 'x');
	ck_assert(!writable(seen.base + PAGE));
	ck_assert_int_eq(nc_segment_seal(&segment), 0);
	segment.base[PAGE] = 'y';
	ck_assert_int_eq(seen.base[PAGE], 'y');
	nc_segment_close(&seen);
	ck_assert_int_lt(fcntl(fd, F_GETFD), 0);
	fd = fcntl(segment.fd, F_DUPFD_CLOEXEC, 0);
	ck_assert_int_eq(nc_segment_adopt_readable(&seen, fd, 2 * PAGE), 0);
	ck_assert_int_eq(seen.base[PAGE], 'y');
	nc_segment_close(&seen);
	nc_segment_close(&segment);
	/* It could be shortened: not mapped, and the caller keeps the descriptor. */
	fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ck_assert_int_eq(ftruncate(fd, PAGE), 0);
	ck_assert_int_eq(nc_segment_adopt_readable(&seen, fd, PAGE), -EPROTO);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}
END_TEST

/* A frozen segment stays frozen, however it is opened again. */
START_TEST(test_frozen_for_good)
{
	static const int modes[] = {O_RDWR, O_WRONLY, O_RDWR | O_APPEND, O_RDWR | O_TRUNC};
	struct nc_segment segment;
	char path[64], byte = 'x';
	void *base;

	ck_assert_int_eq(nc_segment_create(&segment, 2 * PAGE, false, false), 0);
	pattern_fill(segment.base, 5, 0, segment.size);
	ck_assert_int_eq(nc_segment_freeze(&segment), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", segment.fd);
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		int fd = open(path, modes[i] | O_CLOEXEC);

		if (fd < 0)
			continue;
		ck_assert_int_lt(write(fd, &byte, 1), 0);
		ck_assert_int_lt(pwrite(fd, &byte, 1, 100), 0);
		ck_assert_int_lt(ftruncate(fd, 0), 0);
		ck_assert_int_lt(ftruncate(fd, 10 * PAGE), 0);
		ck_assert_int_lt(fallocate(fd, 0, 0, 10 * PAGE), 0);
		ck_assert_int_lt(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE),
				 0);
		ck_assert_int_lt(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
		ck_assert_ptr_eq(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
				 MAP_FAILED);
		base = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
		if (base != MAP_FAILED) {
			ck_assert_int_lt(mprotect(base, PAGE, PROT_READ | PROT_WRITE), 0);
			ck_assert_int_lt(madvise(base, PAGE, MADV_REMOVE), 0);
			munmap(base, PAGE);
		}
		/* A private mapping can be written, and no other process sees it. */
		base = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
		if (base != MAP_FAILED) {
			memset(base, 'x', PAGE);
			munmap(base, PAGE);
		}
		close(fd);
	}
	ck_assert_uint_eq(pattern_match(segment.base, 5, 0, segment.size), segment.size);
	nc_segment_close(&segment);
}
END_TEST

/* A file that could be shortened is not mapped; the caller keeps the descriptor. */
START_TEST(test_adopt_refused)
{
	struct nc_segment segment;
	int ends[2], fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, PAGE), 0);
	ck_assert_int_eq(nc_segment_adopt(&segment, fd, PAGE), -EPROTO);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	ck_assert_int_eq(nc_segment_adopt(&segment, fd, PAGE), -EPROTO);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	ck_assert_int_lt(nc_segment_adopt(&segment, fd, 0), 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(nc_segment_adopt(&segment, ends[0], PAGE), -EPROTO);
	close_pair(ends);
	ck_assert_int_eq(nc_segment_adopt(&segment, ends[0], PAGE), -EBADF);
}
END_TEST

/* After the freeze no process can write, by any means; bytes and address stay. */
START_TEST(test_freeze)
{
	struct nc_segment segment, again;
	char *base, byte;
	int fd;

	ck_assert_int_eq(nc_segment_create(&segment, 2 * PAGE, false, false), 0);
	base = segment.base;
	pattern_fill(base, 5, 0, segment.size);
	ck_assert_int_eq(nc_segment_freeze(&segment), 0);
	ck_assert_ptr_eq(segment.base, base);
	ck_assert_uint_eq(pattern_match(base, 5, 0, segment.size), segment.size);
	ck_assert(!writable(base));
	ck_assert(!writable(base + 2 * PAGE - 1));
	ck_assert_ptr_eq(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, segment.fd, 0),
			 MAP_FAILED);
	ck_assert_int_lt(pwrite(segment.fd, "b", 1, 0), 0);
	ck_assert_int_lt(ftruncate(segment.fd, PAGE), 0);
	ck_assert_int_lt(ftruncate(segment.fd, 3 * PAGE), 0);
	ck_assert_int_lt(fallocate(segment.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE),
			 0);
	ck_assert_int_eq(pread(segment.fd, &byte, 1, 0), 1);
	ck_assert_int_eq(byte, base[0]);

	/* Another process gets the same bytes, which it cannot write either. */
	fd = fcntl(segment.fd, F_DUPFD_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(nc_segment_adopt_frozen(&again, fd, PAGE), -EPROTO);
	ck_assert_int_eq(nc_segment_adopt_frozen(&again, fd, 3 * PAGE), -EPROTO);
	ck_assert_int_eq(nc_segment_adopt_frozen(&again, fd, 0), -EPROTO);
	ck_assert_int_eq(nc_segment_adopt_frozen(&again, fd, 2 * PAGE - 1), -EPROTO);
	ck_assert_int_eq(nc_segment_adopt_frozen(&again, fd, 2 * PAGE), 0);
	nc_segment_close(&segment);
	ck_assert_uint_eq(pattern_match(again.base, 5, 0, again.size), again.size);
	ck_assert(!writable(again.base));
	nc_segment_close(&again);
}
END_TEST

/* If another process could still write, the sealed one is a copy: same address, same descriptor. */
START_TEST(test_freeze_copy)
{
	struct nc_segment segment, again;
	char *other, *base;
	int fd;

	ck_assert_int_eq(nc_segment_create(&segment, 3 * PAGE, false, false), 0);
	fd = segment.fd;
	base = segment.base;
	other = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, segment.fd, 0);
	ck_assert_ptr_ne(other, MAP_FAILED);
	pattern_fill(segment.base, 6, 0, segment.size);
	ck_assert_int_eq(nc_segment_freeze(&segment), 0);
	other[0] = (char)~other[0];
	ck_assert(segment.fd == fd && segment.base == base && segment.size == 3 * PAGE);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert_uint_eq(pattern_match(segment.base, 6, 0, segment.size), segment.size);
	ck_assert(!writable(segment.base));
	fd = fcntl(segment.fd, F_DUPFD_CLOEXEC, 0);
	ck_assert_int_eq(nc_segment_adopt_frozen(&again, fd, 3 * PAGE), 0);
	ck_assert_uint_eq(pattern_match(again.base, 6, 0, again.size), again.size);
	nc_segment_close(&again);
	nc_segment_close(&segment);
	ck_assert_int_eq(munmap(other, PAGE), 0);
}
END_TEST

/* Without a descriptor for a copy, nothing changes. */
START_TEST(test_freeze_refused)
{
	struct nc_segment segment;
	struct rlimit before, none;
	char *other;

	ck_assert_int_eq(nc_segment_create(&segment, PAGE, false, false), 0);
	other = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, segment.fd, 0);
	ck_assert_ptr_ne(other, MAP_FAILED);
	segment.base[0] = 'a';
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert_int_eq(nc_segment_freeze(&segment), -EBUSY);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_int_eq(segment.base[0], 'a');
	segment.base[0] = 'b';
	ck_assert_int_eq(other[0], 'b');
	/* A segment of another process that is not completely sealed is refused. */
	ck_assert_int_eq(munmap(other, PAGE), 0);
	ck_assert_int_eq(nc_segment_seal(&segment), 0);
	ck_assert_int_eq(nc_segment_adopt_frozen(&segment, segment.fd, PAGE), -EPROTO);
	ck_assert_int_eq(nc_segment_freeze(&segment), 0);
	nc_segment_close(&segment);
}
END_TEST

START_TEST(test_child_has_no_mapping)
{
	struct nc_segment segment;
	int ends[2], status;
	pid_t child;

	ck_assert_int_eq(nc_segment_create(&segment, PAGE, false, false), 0);
	segment.base[0] = 'a';
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(write(ends[1], segment.base, 1), 1);
	child = fork_alone();
	if (child == 0)
		_exit(write(ends[1], segment.base, 1) < 0 && errno == EFAULT ? 42 : 1);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 42);
	close_pair(ends);
	nc_segment_close(&segment);
}
END_TEST

/*
 * Invariant 1 at its root: pages that a socket references keep their bytes when the
 * segment is closed and others are filled, until the peer has read them.
 */
static void check_bytes_outlive(size_t size, bool huge)
{
	struct nc_segment segment, other[4];
	int pair[2];
	off_t from = 0;
	ssize_t sent;
	char *got;

	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
	set_nonblocking(pair[0]);
	ck_assert_int_eq(nc_segment_create(&segment, size, huge, false), 0);
	pattern_fill(segment.base, 1, 0, size);
	sent = sendfile(pair[0], segment.fd, &from, 256 << 10);
	ck_assert_int_ge(sent, 64 << 10);
	nc_segment_close(&segment);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_int_eq(nc_segment_create(&other[i], size, huge, false), 0);
		memset(other[i].base, 0xee, size);
	}
	got = must_alloc((size_t)sent);
	read_exactly(pair[1], got, (size_t)sent);
	ck_assert_uint_eq(pattern_match(got, 1, 0, (size_t)sent), (size_t)sent);
	free(got);
	for (unsigned i = 0; i < 4; i++)
		nc_segment_close(&other[i]);
	close_pair(pair);
}

START_TEST(test_bytes_outlive_small_pages)
{
	check_bytes_outlive(1 << 20, false);
}
END_TEST

START_TEST(test_bytes_outlive_huge_pages)
{
	printf("segment: huge pages %s\n", huge_pages() ? "given" : "not given by this system");
	fflush(stdout);
	check_bytes_outlive(4 << 20, true);
}
END_TEST

/* A second mapping where huge pages are split by protection; it prevents no seal. */
START_TEST(test_whole)
{
	const size_t size = 2 * NC_HUGE_PAGE;
	struct nc_segment segment;
	char *whole;

	ck_assert_int_eq(nc_segment_create(&segment, size, true, false), 0);
	ck_assert_ptr_eq(nc_segment_whole(&segment), segment.base);
	/* What a collapse sets, also where the system has no huge pages. */
	atomic_store(&segment.collapsed, true);
	pattern_fill(segment.base, 1, 0, size);
	ck_assert_int_eq(nc_segment_protect(&segment, 0, 4096), 0);
	whole = nc_segment_whole(&segment);
	ck_assert_ptr_ne(whole, segment.base);
	ck_assert_ptr_eq(nc_segment_whole(&segment), whole);
	ck_assert_uint_eq((uintptr_t)whole % NC_HUGE_PAGE, 0);
	ck_assert_uint_eq(pattern_match(whole, 1, 0, size), size);
	/* Later bytes are there, too; nothing can be written. */
	pattern_fill(segment.base + 4096, 2, 0, 4096);
	ck_assert_uint_eq(pattern_match(whole + 4096, 2, 0, 4096), 4096);
	ck_assert(!kernel_writes(whole + 4096));
	if (nc_segment_can_seal()) {
		ck_assert_int_eq(nc_segment_freeze(&segment), 0);
		ck_assert_uint_eq(pattern_match(whole + 4096, 2, 0, 4096), 4096);
	}
	nc_segment_close(&segment);
	ck_assert_int_eq(nc_segment_create_private(&segment, NC_HUGE_PAGE), 0);
	atomic_store(&segment.collapsed, true);
	ck_assert_ptr_eq(nc_segment_whole(&segment), segment.base);
	nc_segment_close(&segment);
}
END_TEST

static uint64_t own_ns(void)
{
	struct timespec time;

	ck_assert_int_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Returns what the caller spends on closing a segment of that size, all of whose pages exist. */
static uint64_t closing_ns(size_t size)
{
	struct nc_segment segment;
	uint64_t before;

	ck_assert_int_eq(nc_segment_create(&segment, size, false, false), 0);
	memset(segment.base, 1, size);
	before = own_ns();
	nc_segment_close(&segment);
	return own_ns() - before;
}

/* A large segment is closed by another thread: a caller with twice the memory spends less time. */
START_TEST(test_large_is_closed_aside)
{
	const size_t size = NC_RELEASE_HERE;
	unsigned descriptors = open_descriptors();
	uint64_t here = closing_ns(size), aside = closing_ns(2 * size);

	if (scaled(100) == 100) /* a slow checker's own work would be measured */
		ck_assert_uint_lt(aside, here / 2);
	for (unsigned i = 0; i < 6000 && open_descriptors() != descriptors; i++)
		usleep(10000);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_whole);
	tcase_add_test(tcase, test_create);
	tcase_add_test(tcase, test_create_fails_whole);
	tcase_add_test(tcase, test_protect);
	tcase_add_test(tcase, test_seal);
	tcase_add_test(tcase, test_adopt);
	tcase_add_test(tcase, test_adopt_refused);
	tcase_add_test(tcase, test_adopt_readable);
	tcase_add_test(tcase, test_frozen_for_good);
	tcase_add_test(tcase, test_freeze);
	tcase_add_test(tcase, test_freeze_copy);
	tcase_add_test(tcase, test_freeze_refused);
	tcase_add_test(tcase, test_child_has_no_mapping);
	tcase_add_test(tcase, test_bytes_outlive_small_pages);
	tcase_add_test(tcase, test_bytes_outlive_huge_pages);
	tcase_add_test(tcase, test_large_is_closed_aside);
}

RUN_SUITE("segment", fill)
