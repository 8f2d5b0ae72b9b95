/* SPDX-License-Identifier: MIT */
/*
 * test-file-cache.c - unit tests of file-cache.c: files as units of the cache, from
 * two loops concurrently; files that change in every way; a cache that is too small.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event/loop.h"
#include "event/thread-pool.h"
#include "files/docroot.h"
#include "files/file-cache.h"
#include "files/filehead.h"

#include "file-cache-fixture.h"
#include "loop-fixture.h"
#include "suite.h"

/* --- unchanged files ------------------------------------------------------------------- */

START_TEST(test_files)
{
	static const size_t sizes[] = {1, 4095, 4096, 4097, 100000, 1 << 20};
	struct file_cache_stat stat = {0};

	open_all(32 << 20, 1 << 20, 2, 0);
	for (unsigned i = 0; i < 6; i++) {
		char name[16], path[16];

		snprintf(name, sizeof(name), "f%u", i);
		snprintf(path, sizeof(path), "/f%u", i);
		put(name, (char)('a' + i), sizes[i]);
		/* Read once, for both loops. */
		ck_assert(!check_file(i % 2, path, (char)('a' + i), sizes[i]));
		for (unsigned k = 0; k < 4; k++)
			ck_assert(check_file(k % 2, path, (char)('a' + i), sizes[i]));
		ck_assert_uint_eq(inserts(), i + 1);
	}
	file_cache_stat(content, &stat);
	ck_assert_uint_eq(stat.files, 6);
	ck_assert_uint_eq(stat.hits, 24);
	ck_assert_uint_eq(stat.misses, 6);
	ck_assert_uint_eq(stat.miss_bytes, 1 + 3 * 4096 + 100000 + (1 << 20));
	ck_assert_uint_eq(stat.hit_bytes, 4 * stat.miss_bytes);
	/* Added to the existing values. */
	file_cache_stat(content, &stat);
	ck_assert_uint_eq(stat.misses, 12);
	close_all();
}
END_TEST

START_TEST(test_head)
{
	struct timespec times[2] = {{.tv_sec = 784111777}, {.tv_sec = 784111777}};
	static const char expected[] = "Content-Type: text/html; charset=utf-8\r\n"
				       "Content-Length: 5\r\n"
				       "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
				       "ETag: \"";
	const struct file_cache_view *view;
	struct asker asker;

	open_all(4 << 20, 1 << 20, 1, 0);
	put("a.html", 'x', 5);
	ck_assert_int_eq(utimensat(AT_FDCWD, at("a.html"), times, 0), 0);
	asker = get(0, "/a.html");
	view = file_cache_view(asker.waiter.result.entry);
	ck_assert_uint_gt(view->head->length, sizeof(expected));
	ck_assert_mem_eq(view->head->text, expected, sizeof(expected) - 1);
	give_back(0, &asker);
	close_all();
}
END_TEST

/* Empty files, and too large ones: known all the same, without a unit. */
START_TEST(test_without_unit)
{
	struct file_cache_stat stat = {0};

	open_all(4 << 20, 10000, 1, 0);
	put("empty", 'x', 0);
	put("large", 'x', 10001);
	put("fits", 'x', 10000);
	for (unsigned i = 0; i < 3; i++) {
		struct asker empty = get(i % 2, "/empty"), large = get(i % 2, "/large");

		ck_assert_int_eq(empty.waiter.result.error, 0);
		ck_assert_int_eq(large.waiter.result.error, 0);
		ck_assert_uint_eq(file_cache_view(empty.waiter.result.entry)->id, 0);
		ck_assert_uint_eq(file_cache_view(large.waiter.result.entry)->id, 0);
		ck_assert_int_eq(file_cache_view(empty.waiter.result.entry)->version.size, 0);
		ck_assert_int_eq(file_cache_view(large.waiter.result.entry)->version.size, 10001);
		ck_assert(empty.at_once == (i > 0) && large.at_once == (i > 0));
		give_back(i % 2, &empty);
		give_back(i % 2, &large);
	}
	ck_assert_uint_eq(inserts(), 0);
	file_cache_stat(content, &stat);
	ck_assert_uint_eq(stat.hits, 4);
	ck_assert_uint_eq(stat.hit_bytes, 0);
	ck_assert_uint_eq(stat.miss_bytes, 3 * 10001);
	(void)check_file(0, "/fits", 'x', 10000);
	/* And a large one that has become small. */
	ck_assert_int_eq(truncate(at("large"), 9000), 0);
	(void)check_file(1, "/large", 'x', 9000);
	close_all();
}
END_TEST

/* Failures are reported and not cached. */
START_TEST(test_failures)
{
	struct file_cache_stat stat = {0};

	open_all(4 << 20, 1 << 20, 1, 0);
	ck_assert_int_eq(mkdir(at("folder"), 0755), 0);
	ck_assert_int_eq(mkfifo(at("fifo"), 0644), 0);
	ck_assert_int_eq(symlink("/etc/passwd", at("out")), 0);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_int_eq(error_of(i % 2, "/none"), -ENOENT);
		ck_assert_int_eq(error_of(i % 2, "/folder"), -EISDIR);
		ck_assert_int_eq(error_of(i % 2, "/fifo"), -EACCES);
		ck_assert_int_eq(error_of(i % 2, "/out"), has_openat2() ? -EACCES : -ELOOP);
		ck_assert_int_eq(error_of(i % 2, "/../x"), -EACCES);
	}
	file_cache_stat(content, &stat);
	ck_assert_uint_eq(stat.files, 0);
	ck_assert_uint_eq(stat.hits, 0);
	put("none", 'n', 100);
	(void)check_file(0, "/none", 'n', 100);
	close_all();
}
END_TEST

/* --- files that change ------------------------------------------------------------------ */

START_TEST(test_changes)
{
	struct timespec times[2];
	struct asker old;
	struct stat stat;

	open_all(16 << 20, 1 << 20, 2, 0);
	put("file", 'a', 50000);
	(void)check_file(0, "/file", 'a', 50000);
	/* In place, of the same size, with the old time of modification. */
	ck_assert_int_eq(lstat(at("file"), &stat), 0);
	old = get(0, "/file");
	put("file", 'b', 50000);
	times[0] = times[1] = stat.st_mtim;
	ck_assert_int_eq(utimensat(AT_FDCWD, at("file"), times, 0), 0);
	ck_assert(!check_file(1, "/file", 'b', 50000));
	ck_assert(check_file(0, "/file", 'b', 50000));
	/* Users of the old one can still use it. */
	ck_assert(uniform(file_cache_view(old.waiter.result.entry), 'a'));
	/* Another file with that name. */
	put("new", 'c', 50000);
	ck_assert_int_eq(rename(at("new"), at("file")), 0);
	ck_assert(!check_file(0, "/file", 'c', 50000));
	/* Longer, shorter, empty, removed, created again. */
	put("file", 'd', 60000);
	ck_assert(!check_file(1, "/file", 'd', 60000));
	ck_assert_int_eq(truncate(at("file"), 4097), 0);
	ck_assert(!check_file(0, "/file", 'd', 4097));
	ck_assert_int_eq(unlink(at("file")), 0);
	ck_assert_int_eq(error_of(1, "/file"), -ENOENT);
	ck_assert_int_eq(error_of(0, "/file"), -ENOENT);
	put("file", 'e', 100);
	ck_assert(!check_file(1, "/file", 'e', 100));
	ck_assert(uniform(file_cache_view(old.waiter.result.entry), 'a'));
	give_back(0, &old);
	close_all();
}
END_TEST

/* Links are followed as long as they lead to files beneath the root. */
START_TEST(test_links)
{
	open_all(16 << 20, 1 << 20, 2, 0);
	put("file", 'e', 100);
	put("other", 'f', 200);
	ck_assert_int_eq(symlink("file", at("link")), 0);
	(void)check_file(0, "/link", 'e', 100);
	/* It leads to another file. */
	ck_assert_int_eq(unlink(at("link")), 0);
	ck_assert_int_eq(symlink("other", at("link")), 0);
	ck_assert(!check_file(0, "/link", 'f', 200));
	/* And out of the root. */
	ck_assert_int_eq(unlink(at("link")), 0);
	ck_assert_int_eq(symlink("/etc/passwd", at("link")), 0);
	ck_assert_int_eq(error_of(1, "/link"), -EACCES);
	close_all();
}
END_TEST

/* Trusted for a while: no check of the disk, until the unit is destroyed. */
START_TEST(test_revalidate)
{
	const struct file_cache_view *view;
	struct asker asker;
	size_t id;

	open_all(4 << 20, 1 << 20, 1, UINT64_C(3600) * 1000000000);
	put("file", 'a', 5000);
	(void)check_file(0, "/file", 'a', 5000);
	put("file", 'b', 5000);
	ck_assert(check_file(0, "/file", 'a', 5000));
	ck_assert(check_file(1, "/file", 'a', 5000));
	ck_assert_int_eq(unlink(at("file")), 0);
	ck_assert(check_file(1, "/file", 'a', 5000));
	put("file", 'c', 5000);
	asker = get(0, "/file");
	view = file_cache_view(asker.waiter.result.entry);
	id = view->id;
	give_back(0, &asker);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	ck_assert(!check_file(1, "/file", 'c', 5000));
	close_all();
}
END_TEST

static void ask_and_destroy(void *argument)
{
	struct NC_stat unit = {0};
	size_t cursor;

	ask(argument);
	/* A helper has read it; this loop, which gets the result, waits here. */
	do {
		cursor = 0;
	} while (NC_list(cache, &cursor, &unit, sizeof(unit), 1) != 1 || unit.holds == 0);
	if (NC_destroy(NULL, unit.id) < 0)
		ck_abort_msg("NC_destroy");
}

/* A unit that is destroyed before any request gets it is read once more. */
START_TEST(test_destroyed_unseen)
{
	struct asker asker = {.path = "/file"};

	open_all(4 << 20, 1 << 20, 1, 0);
	put("file", 'a', 5000);
	asker.waiter.arrived = arrived;
	asker.waiter.loop = runners[0].loop;
	call(&runners[0], ask_and_destroy, &asker);
	AWAIT(asker.done);
	ck_assert_int_eq(asker.waiter.result.error, 0);
	ck_assert(uniform(file_cache_view(asker.waiter.result.entry), 'a'));
	ck_assert_uint_eq(inserts(), 2);
	give_back(0, &asker);
	close_all();
}
END_TEST

/* --- a cache that is too small ---------------------------------------------------------------- */

#define FILES 12

START_TEST(test_eviction)
{
	struct file_cache_stat table = {0};
	struct NC_cache_stat stat;
	struct asker kept;

	open_all(1 << 20, 256 * KIB, 2, 0);
	for (unsigned i = 0; i < FILES; i++) {
		char name[2] = {(char)('a' + i), '\0'};

		put(name, (char)('a' + i), 150 * KIB);
	}
	kept = get(0, "/a");
	ck_assert_int_eq(kept.waiter.result.error, 0);
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned i = 0; i < FILES; i++) {
			char path[3] = {'/', (char)('a' + i), '\0'};

			(void)check_file((round + i) % 2, path, (char)('a' + i), 150 * KIB);
		}
	}
	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	ck_assert_uint_gt(stat.evictions, 0);
	ck_assert_uint_le(stat.used, stat.size);
	file_cache_stat(content, &table);
	ck_assert_uint_eq(table.files, FILES);
	/* A held one stays. */
	ck_assert(uniform(file_cache_view(kept.waiter.result.entry), 'a'));
	ck_assert(check_file(1, "/a", 'a', 150 * KIB));
	give_back(0, &kept);
	close_all();
}
END_TEST

/* Requests a file and blocks its loop until the pipe is closed. */
struct busy {
	struct loop_task task; /* must be first */
	struct asker asker;
	int ends[2];
	bool asked;
};

static void busy_asks(struct loop_task *task)
{
	struct busy *busy = (struct busy *)task;
	char byte;

	ask(&busy->asker);
	EVENT(busy->asked = true);
	(void)!read(busy->ends[0], &byte, 1);
}

/* A file that was read for a waiter is there when its loop gets to it. */
START_TEST(test_eviction_before_arrival)
{
	struct busy busy = {.task.run = busy_asks, .asker.path = "/a"};

	open_all(1 << 20, 256 * KIB, 1, 0);
	for (unsigned i = 0; i < FILES; i++) {
		char name[2] = {(char)('a' + i), '\0'};

		put(name, (char)('a' + i), 150 * KIB);
	}
	ck_assert_int_eq(pipe2(busy.ends, O_CLOEXEC), 0);
	busy.asker.waiter = (struct file_cache_waiter){.arrived = arrived, .loop = runners[0].loop};
	loop_post(runners[0].loop, &busy.task);
	AWAIT(busy.asked);
	/* The only helper has read it before the others, which do not fit. */
	for (unsigned i = 1; i < FILES; i++) {
		char path[3] = {'/', (char)('a' + i), '\0'};

		(void)check_file(1, path, (char)('a' + i), 150 * KIB);
	}
	close(busy.ends[1]);
	AWAIT(busy.asker.done);
	ck_assert_int_eq(busy.asker.waiter.result.error, 0);
	ck_assert(uniform(file_cache_view(busy.asker.waiter.result.entry), 'a'));
	give_back(0, &busy.asker);
	close(busy.ends[0]);
	close_all();
}
END_TEST

/* All memory is held: no unit can be made until some is released. */
START_TEST(test_no_memory)
{
	struct asker askers[FILES];
	unsigned good = 0;

	open_all(1 << 20, 256 * KIB, 1, 0);
	for (unsigned i = 0; i < FILES; i++) {
		char name[2] = {(char)('a' + i), '\0'};
		static char paths[FILES][3];

		put(name, (char)('a' + i), 150 * KIB);
		snprintf(paths[i], sizeof(paths[i]), "/%s", name);
		askers[i] = get(0, paths[i]);
		ck_assert_int_eq(askers[i].waiter.result.error, 0);
		ck_assert_int_eq(file_cache_view(askers[i].waiter.result.entry)->version.size,
				 150 * KIB);
		if (file_cache_view(askers[i].waiter.result.entry)->id)
			ck_assert_uint_eq(good++, i);
	}
	ck_assert_uint_ge(good, 3);
	ck_assert_uint_lt(good, FILES);
	for (unsigned i = 0; i < FILES; i++) {
		const struct file_cache_view *view = file_cache_view(askers[i].waiter.result.entry);

		ck_assert(i >= good || uniform(view, (char)('a' + i)));
		give_back(0, &askers[i]);
	}
	(void)check_file(1, "/l", 'l', 150 * KIB);
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_files);
	tcase_add_test(tcase, test_head);
	tcase_add_test(tcase, test_without_unit);
	tcase_add_test(tcase, test_failures);
	tcase_add_test(tcase, test_changes);
	/* Not without openat2(): see docroot.c. */
	if (has_openat2())
		tcase_add_test(tcase, test_links);
	tcase_add_test(tcase, test_revalidate);
	tcase_add_test(tcase, test_destroyed_unseen);
	tcase_add_test(tcase, test_eviction);
	tcase_add_test(tcase, test_eviction_before_arrival);
	tcase_add_test(tcase, test_no_memory);
}

RUN_SUITE("file-cache", fill)
