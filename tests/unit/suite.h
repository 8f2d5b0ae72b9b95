/* SPDX-License-Identifier: MIT */
/*
 * suite.h - shared by the libnabc suites: running a suite, reproducible random
 * numbers, self-checking patterns, loopback sockets.  Each program owns what it
 * makes; check runs every test in its own process unless CK_FORK=no.
 */
#ifndef SUITE_H
#define SUITE_H

#include <arpa/inet.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check-points.h"

/* Returns the number of threads of this process, without those of io_uring in the kernel. */
static inline int count_threads(void)
{
	DIR *threads = opendir("/proc/self/task");
	int count = 0;

	ck_assert_ptr_nonnull(threads);
	for (const struct dirent *entry; (entry = readdir(threads));) {
		char path[300], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (!file)
			continue;
		count += fgets(name, sizeof(name), file) && strncmp(name, "iou-", 4) != 0;
		fclose(file);
	}
	closedir(threads);
	return count;
}

/*
 * As fork(); with the address sanitizer, asserts that the process has one thread.
 * If another thread held the allocator's lock, the child would wait for it forever:
 * gcc 12's sanitizer, unlike the C library, does not take its lock around a fork.
 * Threads that only close descriptors end by themselves, and announce it to nobody.
 */
static inline pid_t fork_alone(void)
{
#ifdef __SANITIZE_ADDRESS__
	int count = count_threads();

	for (unsigned i = 0; count > 1 && i < 5000; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		count = count_threads();
	}
	ck_assert_msg(count == 1, "a process with %d threads forks", count);
#endif
	return fork();
}

/* As ck_assert(), for inner loops: it costs nothing if the condition holds. */
#define expect(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			ck_abort_msg("not true: %s", #condition);                                  \
	} while (0)

/* A main() that runs one suite with the tests that fill() adds. */
#define RUN_SUITE(name, fill)                                                                      \
	int main(void)                                                                             \
	{                                                                                          \
		return run_suite(name, fill);                                                      \
	}

static inline int run_suite(const char *name, void (*fill)(TCase *tcase))
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	SRunner *runner = srunner_create(suite);
	int failed;

	/* A closed peer is an error to check, and must not end the suite. */
	signal(SIGPIPE, SIG_IGN);
	tcase_set_timeout(tcase, 120);
	fill(tcase);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Iterations divided by $NABC_TEST_SCALE, for slow checkers such as valgrind. */
static inline unsigned scaled(unsigned count)
{
	const char *text = getenv("NABC_TEST_SCALE");
	unsigned long by = text ? strtoul(text, NULL, 10) : 1;

	return by > 1 && count > by ? (unsigned)(count / by) : by > 1 ? 1 : count;
}

/* xorshift64: the same numbers in every run. */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/*
 * Returns the 8 bytes from index at of the pattern seed, the first one in the lowest bits; at is a
 * multiple of 8.  Neighbours and seeds differ.
 */
static inline uint64_t pattern_word(uint64_t seed, size_t at)
{
	const uint64_t each = UINT64_C(0x0101010101010101), low = 0x7f * each;
	uint64_t mixed =
		(seed * UINT64_C(0x9e3779b97f4a7c15)) ^ (at >> 3) * UINT64_C(0xff51afd7ed558ccd);
	uint64_t indices = (at & 0xff) * each + UINT64_C(0x0706050403020100);

	mixed ^= mixed >> 29;
	/* Adds them byte by byte, without a carry from one to the next. */
	return ((mixed & low) + (indices & low)) ^ ((mixed ^ indices) & ~low);
}

static inline unsigned char pattern_at(uint64_t seed, size_t at)
{
	return (unsigned char)(pattern_word(seed, at & ~(size_t)7) >> (at & 7) * 8);
}

/* By words: checkers such as valgrind take fifty times as long for each instruction. */
static inline void pattern_fill(void *to, uint64_t seed, size_t at, size_t length)
{
	unsigned char *bytes = to;
	size_t i = 0;

	for (; i < length && (at + i) & 7; i++)
		bytes[i] = pattern_at(seed, at + i);
	for (; length - i >= 8; i += 8) {
		uint64_t word = htole64(pattern_word(seed, at + i));

		memcpy(bytes + i, &word, 8);
	}
	for (; i < length; i++)
		bytes[i] = pattern_at(seed, at + i);
}

/* Returns the offset of the first byte that differs from the pattern, or length. */
static inline size_t pattern_match(const void *from, uint64_t seed, size_t at, size_t length)
{
	const unsigned char *bytes = from;
	size_t i = 0;

	for (; i < length && (at + i) & 7; i++)
		if (bytes[i] != pattern_at(seed, at + i))
			return i;
	for (; length - i >= 8; i += 8) {
		uint64_t word;

		memcpy(&word, bytes + i, 8);
		if (le64toh(word) != pattern_word(seed, at + i))
			break;
	}
	for (; i < length; i++)
		if (bytes[i] != pattern_at(seed, at + i))
			return i;
	return length;
}

/* Whether all bytes, one at least, are the letter. */
static inline bool consists_of(const char *bytes, size_t length, char letter)
{
	return bytes[0] == letter && memcmp(bytes, bytes + 1, length - 1) == 0;
}

static inline void *must_alloc(size_t size)
{
	void *memory = malloc(size ? size : 1);

	ck_assert_ptr_nonnull(memory);
	return memory;
}

static inline void set_nonblocking(int fd)
{
	ck_assert_int_eq(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

/*
 * Makes a connected TCP pair, pair[0] to send and pair[1] to receive, from address
 * from to address to, both of this machine.  Sizes of the send and the receive
 * buffer; 0: the system's default.
 */
static inline void tcp_pair_between(int pair[2], const char *from, const char *to, int send_size,
				    int receive_size)
{
	struct sockaddr_in here = {.sin_family = AF_INET};
	struct sockaddr_in there = {.sin_family = AF_INET};
	socklen_t length = sizeof(there);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(inet_pton(AF_INET, from, &here.sin_addr), 1);
	ck_assert_int_eq(inet_pton(AF_INET, to, &there.sin_addr), 1);
	ck_assert_int_ge(listener, 0);
	/* Set before connecting, else the advertised window ignores them. */
	if (receive_size && setsockopt(listener, SOL_SOCKET, SO_RCVBUFFORCE, &receive_size,
				       sizeof(receive_size)) < 0)
		ck_assert_int_eq(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &receive_size,
					    sizeof(receive_size)),
				 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&there, sizeof(there)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&there, &length), 0);
	pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(pair[0], 0);
	if (send_size &&
	    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &send_size, sizeof(send_size)) < 0)
		ck_assert_int_eq(
			setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &send_size, sizeof(send_size)),
			0);
	ck_assert_int_eq(bind(pair[0], (struct sockaddr *)&here, sizeof(here)), 0);
	ck_assert_int_eq(connect(pair[0], (struct sockaddr *)&there, sizeof(there)), 0);
	pair[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(pair[1], 0);
	close(listener);
}

static inline void tcp_pair(int pair[2])
{
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 0, 0);
}

static inline void close_pair(const int pair[2])
{
	close(pair[0]);
	close(pair[1]);
}

/* Waits until fd is readable; fails the test if it never is. */
static inline void await(int fd, short events)
{
	struct pollfd wait = {.fd = fd, .events = events};
	int ready;

	do {
		ready = poll(&wait, 1, 60000);
	} while (ready < 0 && errno == EINTR);
	ck_assert_int_eq(ready, 1);
}

/* Returns true if fd is readable now. */
static inline bool readable(int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	return poll(&wait, 1, 0) == 1;
}

/* Reads exactly length bytes of a blocking descriptor. */
static inline void read_exactly(int fd, void *to, size_t length)
{
	size_t done = 0;

	while (done < length) {
		ssize_t got = read(fd, (char *)to + done, length - done);

		if (got < 0 && errno == EINTR)
			continue;
		ck_assert_msg(got > 0, "%zu of %zu bytes, then %zd (%s)", done, length, got,
			      got < 0 ? strerror(errno) : "end");
		done += (size_t)got;
	}
}

/* Reads until the other end closes; the result is valid until the next call. */
static inline const char *read_to_end(int fd)
{
	static char text[8192];
	size_t length = 0;
	ssize_t got;

	while ((got = read(fd, text + length, sizeof(text) - 1 - length)) > 0)
		length += (size_t)got;
	ck_assert_int_eq(got, 0);
	text[length] = '\0';
	return text;
}

/* Returns the number of open descriptors of this process. */
static inline unsigned open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	ck_assert_ptr_nonnull(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static sigjmp_buf suite_fault;

static inline void suite_faulted(int signal_number)
{
	(void)signal_number;
	siglongjmp(suite_fault, 1);
}

/* Returns true if a byte is writable, by writing its own value; single-threaded. */
static inline bool writable(volatile char *at)
{
	struct sigaction catch = {.sa_handler = suite_faulted}, before;
	volatile bool fine = false;

	ck_assert_int_eq(sigaction(SIGSEGV, &catch, &before), 0);
	if (sigsetjmp(suite_fault, 1) == 0) {
		*at = *at;
		fine = true;
	}
	ck_assert_int_eq(sigaction(SIGSEGV, &before, NULL), 0);
	return fine;
}

/* Returns true if the kernel gives huge pages to memory that requests them. */
static inline bool huge_pages(void)
{
	FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "re");
	char line[128] = "";
	bool given;

	if (!file)
		return false;
	given = fgets(line, sizeof(line), file) &&
		(strstr(line, "[advise]") || strstr(line, "[always]"));
	fclose(file);
	return given;
}

/* Returns true if openat2() is available: Valgrind 3.19 does not know it. */
static inline bool has_openat2(void)
{
	return syscall(SYS_openat2, -1, "", NULL, 0) >= 0 || errno != ENOSYS;
}

/* A directory for sockets, whose paths must be short. */
static inline void make_directory(char path[64])
{
	const char *folder = getenv("TMPDIR");

	if (!folder || strlen(folder) > 40)
		folder = "/tmp";
	snprintf(path, 64, "%s/nabc-test-XXXXXX", folder);
	ck_assert_ptr_nonnull(mkdtemp(path));
}

/*
 * Returns the path of a helper program: from the environment variable, else from
 * the first directory above the running program that contains it.
 */
static inline const char *helper_path(const char *variable, const char *name)
{
	static char path[4096];
	char self[2048], *slash;
	const char *given = getenv(variable);
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (given && *given)
		return given;
	self[length < 0 ? 0 : length] = '\0';
	while ((slash = strrchr(self, '/'))) {
		*slash = '\0';
		snprintf(path, sizeof(path), "%s/%s", self, name);
		if (access(path, X_OK) == 0)
			return path;
	}
	return name;
}

#endif
