/* SPDX-License-Identifier: MIT */
/*
 * test-file-cache-change.c - unit tests of file-cache.c: files that change while they
 * are read, by a thread of the tests.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "files/file-cache.h"

#include "file-cache-fixture.h"
#include "loop-fixture.h"
#include "suite.h"

#define SPOILT 4

static _Atomic bool over;
static _Atomic unsigned fetched;
static _Atomic uint64_t began_ns, longest_ns; /* writes in place; 0: none now */

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Overwrites an open file with the letter, by one call. */
static void rewrite(int fd, char letter)
{
	static char data[200 * KIB];
	struct stat stat;
	uint64_t took;

	expect(fstat(fd, &stat) == 0 && (size_t)stat.st_size <= sizeof(data));
	memset(data, letter, (size_t)stat.st_size);
	atomic_store(&began_ns, monotonic_ns());
	expect(pwrite(fd, data, (size_t)stat.st_size, 0) == stat.st_size);
	took = monotonic_ns() - atomic_load(&began_ns);
	if (took > atomic_load(&longest_ns))
		atomic_store(&longest_ns, took);
	atomic_store(&began_ns, 0);
}

/*
 * Contains one version only.  Exception: a write that the scheduler interrupts for
 * longer than a file must rest looks like two writes.
 */
static void check_whole(const struct file_cache_result *result)
{
	const struct file_cache_view *view = file_cache_view(result->entry);
	uint64_t began;

	if (!view->id || uniform(view, 0))
		return;
	began = atomic_load(&began_ns);
	while (began && atomic_load(&began_ns) == began)
		sched_yield();
	ck_assert_msg(atomic_load(&longest_ns) > 10000000, "%s: two versions in one", view->path);
}

/* Changes files in every way; after each call they consist of one letter. */
static void *spoil(void *context)
{
	uint64_t state = 5;

	(void)context;
	for (unsigned i = 0; !atomic_load(&over); i++) {
		uint64_t random = random_next(&state);
		unsigned before = atomic_load(&fetched), pause = (unsigned)(random >> 40) % 4;
		char name[3] = {'s', (char)('0' + random % SPOILT), '\0'};
		char letter = (char)('a' + i % 26);
		int fd = open(at(name), O_WRONLY | O_CLOEXEC);

		if (fd < 0 || (random >> 32) % 8 == 0) {
			put("whole", letter, 1 + (random >> 8) % (200 * KIB));
			expect(rename(at("whole"), at(name)) == 0);
		} else if ((random >> 32) % 8 == 1) {
			expect(unlink(at(name)) == 0);
		} else if ((random >> 32) % 8 == 2) {
			struct stat stat;

			expect(fstat(fd, &stat) == 0);
			expect(ftruncate(fd, stat.st_size / 2) == 0);
		} else {
			rewrite(fd, letter);
		}
		if (fd >= 0)
			close(fd);
		while (!atomic_load(&over) && atomic_load(&fetched) < before + pause)
			sched_yield();
	}
	return NULL;
}

/* Any result is one version of the file. */
START_TEST(test_never_mixed)
{
	unsigned got[2] = {0}, rounds = scaled(300);
	pthread_t thread;

	open_all(8 << 20, 1 << 20, 2, 0);
	for (unsigned i = 0; i < SPOILT; i++) {
		char name[3] = {'s', (char)('0' + i), '\0'};

		put(name, 'a', 100 * KIB);
	}
	ck_assert_int_eq(pthread_create(&thread, NULL, spoil, NULL), 0);
	for (unsigned round = 0; round < rounds || !got[0]; round++) {
		static const char *const paths[] = {"/s0", "/s1", "/s2", "/s3"};
		struct asker askers[SPOILT * LOOPS];

		for (unsigned i = 0; i < SPOILT * LOOPS; i++)
			begin_asking(&askers[i], i % LOOPS, paths[i / LOOPS]);
		for (unsigned i = 0; i < SPOILT * LOOPS; i++) {
			const struct file_cache_result *result = &askers[i].waiter.result;

			AWAIT(askers[i].done);
			got[result->error != 0]++;
			atomic_fetch_add(&fetched, 1);
			if (result->error) {
				ck_assert_msg(result->error == -ENOENT || result->error == -EAGAIN,
					      "%d", result->error);
				continue;
			}
			check_whole(result);
			give_back(i % LOOPS, &askers[i]);
		}
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	printf("content: %u fetched, %u refused while files changed\n", got[0], got[1]);
	close_all();
}
END_TEST

/* A file that never rests is refused, or read during a pause: nothing else. */
static void *never_rest(void *context)
{
	for (unsigned i = 0; !atomic_load(&over); i++) {
		rewrite(*(int *)context, (char)('a' + i % 26));
		atomic_fetch_add(&fetched, 1);
	}
	return NULL;
}

START_TEST(test_never_at_rest)
{
	unsigned refused = 0;
	pthread_t thread;
	int fd;

	open_all(4 << 20, 1 << 20, 1, 0);
	put("log", 'a', 100 * KIB);
	fd = open(at("log"), O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, never_rest, &fd), 0);
	while (atomic_load(&fetched) < 100)
		sched_yield();
	for (unsigned i = 0; i < 5; i++) {
		struct asker asker = get(0, "/log");

		if (asker.waiter.result.error) {
			ck_assert_int_eq(asker.waiter.result.error, -EAGAIN);
			refused++;
		} else {
			check_whole(&asker.waiter.result);
			give_back(0, &asker);
		}
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	put("log", 'z', 100 * KIB);
	(void)check_file(0, "/log", 'z', 100 * KIB);
	printf("content: a file without rest was refused %u times of 5\n", refused);
	close(fd);
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_never_mixed);
	tcase_add_test(tcase, test_never_at_rest);
}

RUN_SUITE("file-cache-change", fill)
