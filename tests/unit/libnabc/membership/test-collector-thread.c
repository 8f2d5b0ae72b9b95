/* SPDX-License-Identifier: MIT */
/*
 * test-collector-thread.c - unit tests of collector.c: the thread does due work,
 * sleeps otherwise, and does not exist in a child.
 */
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <nabc.h>

#include "collector-fixture.h"
#include "nabc-fixture.h"
#include "suite.h"
#include "unit-holds.h"

/* --- the thread -------------------------------------------------------------------- */

/* Returns the system call that a thread of this process makes, or -1. */
static long call_of(const char *task)
{
	char path[300];
	long number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/syscall", task);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%ld", &number) != 1)
		number = -1;
	if (file)
		fclose(file);
	return number;
}

/* Whether the kernel runs on the same processor as this program: not under qemu-user. */
static bool is_at_home(void)
{
	char self[16];

	snprintf(self, sizeof(self), "%d", gettid());
	return call_of(self) == SYS_read;
}

/* Returns whether a thread of this process waits in poll(): it has started, and holds no lock. */
static bool polls(const char *task)
{
	long number = call_of(task);

#ifdef SYS_poll
	if (number == SYS_poll)
		return true;
#endif
	return number == SYS_ppoll;
}

/* Returns the number of threads with that name; with poll_only, of those in poll(). */
static unsigned threads_that(const char *name, bool poll_only)
{
	DIR *directory = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned count = 0;

	ck_assert_ptr_nonnull(directory);
	while ((entry = readdir(directory))) {
		char path[300], text[64] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "re");
		if (file && fgets(text, sizeof(text), file)) {
			text[strcspn(text, "\n")] = '\0';
			count += !strcmp(text, name) && (!poll_only || polls(entry->d_name));
		}
		if (file)
			fclose(file);
	}
	closedir(directory);
	return count;
}

static unsigned threads(const char *name)
{
	return threads_that(name, false);
}

/* A thread that was joined is listed until the kernel has released it: soon. */
static bool has_ended(const char *name)
{
	for (unsigned ms = 0; threads(name) && ms < 20000; ms++)
		usleep(1000);
	return threads(name) == 0;
}

START_TEST(test_thread_comes_and_goes)
{
	unsigned descriptors;

	open_with((struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB));
	close_cache();
	descriptors = open_descriptors();
	for (unsigned i = 0; i < 20; i++) {
		open_with((struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB));
		ck_assert_uint_eq(threads("nabc-collector"), 1);
		close_cache();
		ck_assert(has_ended("nabc-collector"));
	}
	ck_assert_uint_eq(open_descriptors(), descriptors);
	open_with((struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB,
								 .flags = NC_CACHE_NO_THREAD));
	ck_assert_uint_eq(threads("nabc-collector"), 0);
	close_cache();
}
END_TEST

/* Each wake-up of a thread that sleeps is a voluntary switch. */
static long thread_switches(void)
{
	DIR *directory = opendir("/proc/self/task");
	struct dirent *entry;
	long switches = -1;

	ck_assert_ptr_nonnull(directory);
	while ((entry = readdir(directory))) {
		char path[300], line[256];
		bool ours = false;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		file = fopen(path, "re");
		while (file && fgets(line, sizeof(line), file)) {
			ours |= !strncmp(line, "Name:\tnabc-collector", 20);
			if (ours && !strncmp(line, "voluntary_ctxt_switches:", 24))
				switches = strtol(line + 24, NULL, 10);
		}
		if (file)
			fclose(file);
	}
	closedir(directory);
	return switches;
}

/* An idle cache never wakes the thread; a busy one below its watermarks hardly does. */
START_TEST(test_thread_sleeps)
{
	struct timespec pause = {.tv_nsec = 300 * 1000 * 1000};
	long before;
	size_t id;

	open_with((struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB));
	for (unsigned i = 0; i < 100; i++) {
		id = insert_kind(i, 5000, NC_KIND_RECYCLED);
		ck_assert_int_eq(NC_destroy(NULL, id), 0);
	}
	(void)insert_kind(1, 100, NC_KIND_APPENDED);
	/* Settled when two reads agree. */
	do {
		before = thread_switches();
		nanosleep(&pause, NULL);
	} while (thread_switches() != before);
	ck_assert_int_gt(before, 0);
	for (unsigned i = 0; i < 3; i++) {
		nanosleep(&pause, NULL);
		ck_assert_int_eq(thread_switches(), before);
	}
	close_cache();
}
END_TEST

/* The thread does all of it alone; a second one that dispatches does no harm. */
static void *also_dispatches(void *context)
{
	const _Atomic bool *stop = context;
	struct pollfd wait = {.fd = NC_cache_fd(cache), .events = POLLIN};

	while (!atomic_load(stop))
		if (poll(&wait, 1, 10) == 1 && NC_cache_dispatch(cache) < 0)
			return context;
	return NULL;
}

START_TEST(test_thread_collects)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB, .high_water = 75, .low_water = 50);
	unsigned count = 300 + scaled(2000);
	_Atomic bool stop = false;
	struct NC_cache_stat stat;
	void *result = NULL;
	size_t ids[64], id;
	pthread_t other;

	open_with(options);
	for (unsigned turn = 0; turn < 2; turn++) {
		if (turn)
			ck_assert_int_eq(pthread_create(&other, NULL, also_dispatches, &stop), 0);
		for (unsigned i = 0; i < 64; i++)
			ids[i] = insert_kind(i, 30 << 10, NC_KIND_APPENDED);
		for (unsigned i = 0; i < count; i++) {
			id = insert_kind(i, 1 + i * 7919 % 50000,
					 i % 3 ? NC_KIND_APPENDED : NC_KIND_RECYCLED);
			if (i % 5 == 0)
				(void)NC_set_lifetime(cache, id, 1);
			/* The hot ones are read continuously. */
			if (hold_id(NULL, ids[i % 64]) == 0) {
				check_bytes(ids[i % 64], i % 64, 30 << 10);
				ck_assert_int_eq(release_id(NULL, ids[i % 64]), 0);
			}
		}
		ck_assert_uint_le(stat_now().used, 8 * MIB);
		/* In the end it is below the watermark, and all lifetimes have expired. */
		do {
			struct timespec pause = {.tv_nsec = 1000 * 1000};

			nanosleep(&pause, NULL);
			stat = stat_now();
		} while (stat.used > 6 * MIB);
		ck_assert_uint_gt(stat.cleaned, 0);
		ck_assert_uint_eq(stat.failures, 0);
	}
	stop = true;
	pthread_join(other, &result);
	ck_assert_ptr_null(result);
	close_cache();
}
END_TEST

/* A child has neither the cache nor the thread; its exit changes nothing here. */
START_TEST(test_fork)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.flags = NC_CACHE_NO_THREAD);
	int status;
	pid_t pid;

	if (!is_at_home()) {
		puts("collector: fork: skipped: system calls of another processor");
		return;
	}
	open_with((struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB));
	/* Not while the thread may hold the lock of an allocator: see fork_alone(). */
	while (threads_that("nabc-collector", true) == 0)
		sched_yield();
	pid = fork();
	if (pid == 0) {
		NC_cache *own;

		if (threads("nabc-collector") != 0 || NC_cache_close(cache) == 0)
			_exit(1);
		/* The sanitizers do not support threads after such a fork. */
		own = NC_cache_open(&options);
		if (!own || NC_cache_close(own) != 0)
			_exit(2);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(threads("nabc-collector"), 1);
	close_cache();
}
END_TEST

/* The thread and this one need the checksums of the same units at the same time. */
START_TEST(test_thread_scrubs_beside)
{
	open_with((struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB,
								 .scrub_rate = 1024 * MIB));
	for (unsigned i = 0; i < scaled(300); i++) {
		size_t size = 4096 * (1 + i % 40);
		size_t id = insert_kind(i, size, i % 2 ? NC_KIND_APPENDED : NC_KIND_RECYCLED);
		uint32_t sums[2];

		ck_assert_int_eq(NC_checksum(NULL, id, &sums[0], NC_CHECKSUM_INET, size, 0), 0);
		ck_assert_int_eq(NC_verify(NULL, id), 0);
		ck_assert_int_eq(NC_checksum(NULL, id, &sums[1], NC_CHECKSUM_INET, size, 0), 0);
		ck_assert_uint_eq(sums[0], sums[1]);
		if (i % 4)
			ck_assert_int_eq(NC_destroy(NULL, id), 0);
	}
	ck_assert_uint_eq(stat_now().corrupt, 0);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_thread_comes_and_goes);
	tcase_add_test(tcase, test_thread_sleeps);
	tcase_add_test(tcase, test_thread_collects);
	tcase_add_test(tcase, test_fork);
	tcase_add_test(tcase, test_thread_scrubs_beside);
}

RUN_SUITE("collector-thread", fill)
