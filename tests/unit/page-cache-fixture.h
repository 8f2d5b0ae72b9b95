/* SPDX-License-Identifier: MIT */
/*
 * page-cache-fixture.h - a folder on a file system whose files have a page cache
 * beside their storage, counting the pages of a file there, and system calls that
 * refuse direct reads.
 */
#ifndef PAGE_CACHE_FIXTURE_H
#define PAGE_CACHE_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "suite.h"

/* Returns how many pages of the file are in the page cache. */
static inline unsigned pages_cached(int fd, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (size + page - 1) / page;
	unsigned char *seen = must_alloc(pages);
	void *at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	unsigned count = 0;

	ck_assert_ptr_ne(at, MAP_FAILED);
	ck_assert_int_eq(mincore(at, size, seen), 0);
	for (size_t i = 0; i < pages; i++)
		count += seen[i] & 1;
	munmap(at, size);
	free(seen);
	return count;
}

/* Empties the page cache of the file; returns true if that is possible. */
static inline bool uncache(int fd, size_t size)
{
	ck_assert_int_eq(fsync(fd), 0);
	ck_assert_int_eq(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	return pages_cached(fd, size) == 0;
}

/* Opens an unnamed file of the pattern in folder, for reading and writing. */
static inline int open_pattern(const char *folder, size_t size)
{
	char path[300];
	char *data = must_alloc(size);
	int fd;

	snprintf(path, sizeof(path), "%s/pattern-XXXXXX", folder);
	fd = mkostemp(path, O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	unlink(path);
	pattern_fill(data, size, 0, size);
	ck_assert_int_eq(pwrite(fd, data, size, 0), (ssize_t)size);
	free(data);
	return fd;
}

/*
 * Returns a folder on a disk: that of temporary files or the current one, or NULL, after
 * a line on standard output, if both are in memory.
 */
static inline const char *disk_folder(void)
{
	const char *temporary = getenv("TMPDIR"), *places[] = {temporary ? temporary : "/tmp", "."};

	for (unsigned i = 0; i < 2; i++) {
		int fd = open_pattern(places[i], 5000);
		bool possible = uncache(fd, 5000);

		close(fd);
		if (possible)
			return places[i];
	}
	printf("skipped: neither the temporary folder nor the current one is on a disk\n");
	return NULL;
}

static inline void refuse_calls(struct sock_filter *filter, unsigned short length)
{
	struct sock_fprog program = {.len = length, .filter = filter};

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* The call fails with the error from now on, in this process. */
static inline void refuse_call(unsigned number, unsigned error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	refuse_calls(filter, sizeof(filter) / sizeof(filter[0]));
}

/* No descriptor gets O_DIRECT from now on, as on some file systems. */
static inline void refuse_direct(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETFL, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_DIRECT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	refuse_calls(filter, sizeof(filter) / sizeof(filter[0]));
}

#endif
