/* SPDX-License-Identifier: MIT */
/*
 * test-file-cache-modes.c - unit tests of file-cache*.c with each of the caches on and
 * off, and reading on the loop's thread on and off: all give the same results; and
 * what each of them keeps.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <nabc.h>

#include "files/docroot.h"
#include "files/file-cache.h"
#include "files/filehead.h"

#include "file-cache-fixture.h"
#include "suite.h"

#define WAYS 16 /* _i: bit 0: no paths, 1: no heads, 2: no contents, 3: on the loop's thread */
#define BYPASS_WAYS 24 /* also 4: past the page cache, without the loop's thread */

static struct file_cache_options way(int number)
{
	return (struct file_cache_options){.max_unit = 1 << 20,
					   .no_paths = number & 1,
					   .no_heads = number & 2,
					   .no_contents = number & 4,
					   .try_now = number & 8,
					   .pages = number & 16 ? PAGE_CACHE_BYPASS
								: PAGE_CACHE_KEEP};
}

static struct file_cache_stat stat_now(void)
{
	struct file_cache_stat stat = {0};

	file_cache_stat(content, &stat);
	return stat;
}

static uint64_t units(void)
{
	struct NC_cache_stat stat;

	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	return stat.units;
}

/* Recently written files are not read at once. */
static void await_stable(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 40000000}, NULL);
}

START_TEST(test_answers)
{
	static const size_t sizes[] = {1, 4096, 4097, 100000, 1 << 20};

	open_with(32 << 20, way(_i), 2);
	for (unsigned i = 0; i < 5; i++) {
		char name[16], path[16];

		snprintf(name, sizeof(name), "f%u", i);
		snprintf(path, sizeof(path), "/f%u", i);
		put(name, (char)('a' + i), sizes[i]);
		for (unsigned k = 0; k < 4; k++)
			(void)check_file(k % 2, path, (char)('a' + i), sizes[i]);
		/* In place; another file with its name; removed; and created again. */
		put(name, (char)('k' + i), sizes[i]);
		(void)check_file(0, path, (char)('k' + i), sizes[i]);
		put("new", (char)('p' + i), sizes[i]);
		ck_assert_int_eq(rename(at("new"), at(name)), 0);
		(void)check_file(1, path, (char)('p' + i), sizes[i]);
		ck_assert_int_eq(unlink(at(name)), 0);
		ck_assert_int_eq(error_of(0, path), -ENOENT);
		put(name, (char)('a' + i), sizes[i]);
		(void)check_file(0, path, (char)('a' + i), sizes[i]);
	}
	close_all();
}
END_TEST

START_TEST(test_without_unit)
{
	struct file_cache_options options = way(_i);

	options.max_unit = 10000;
	open_with(4 << 20, options, 1);
	put("empty", 'x', 0);
	put("large", 'x', 10001);
	for (unsigned i = 0; i < 3; i++) {
		struct asker empty = get(i % 2, "/empty"), large = get(i % 2, "/large");

		ck_assert_int_eq(empty.waiter.result.error, 0);
		ck_assert_int_eq(large.waiter.result.error, 0);
		ck_assert_uint_eq(file_cache_view(empty.waiter.result.entry)->id, 0);
		ck_assert_uint_eq(file_cache_view(large.waiter.result.entry)->id, 0);
		ck_assert_int_eq(file_cache_view(large.waiter.result.entry)->version.size, 10001);
		ck_assert_str_eq(file_cache_view(large.waiter.result.entry)->path, "/large");
		give_back(i % 2, &empty);
		give_back(i % 2, &large);
	}
	ck_assert_uint_eq(inserts(), 0);
	close_all();
}
END_TEST

/* The size of a file that is read for one request is limited, whatever fits into the cache. */
START_TEST(test_bound)
{
	struct file_cache_options options = way(_i);
	struct asker asker;

	options.max_unit = 4 << 20;
	open_with(16 << 20, options, 1);
	put("file", 'x', (1 << 20) + 1);
	asker = get(0, "/file");
	ck_assert_int_eq(asker.waiter.result.error, 0);
	ck_assert(options.no_contents == !file_cache_view(asker.waiter.result.entry)->id);
	give_back(0, &asker);
	close_all();
}
END_TEST

START_TEST(test_failures)
{
	open_with(4 << 20, way(_i), 1);
	ck_assert_int_eq(mkdir(at("folder"), 0755), 0);
	ck_assert_int_eq(mkfifo(at("fifo"), 0644), 0);
	ck_assert_int_eq(symlink("/etc/passwd", at("out")), 0);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(error_of(i % 2, "/none"), -ENOENT);
		ck_assert_int_eq(error_of(i % 2, "/folder"), -EISDIR);
		ck_assert_int_eq(error_of(i % 2, "/fifo"), -EACCES);
		ck_assert_int_eq(error_of(i % 2, "/out"), has_openat2() ? -EACCES : -ELOOP);
		ck_assert_int_eq(error_of(i % 2, "/../x"), -EACCES);
	}
	ck_assert_uint_eq(stat_now().files, 0);
	close_all();
}
END_TEST

/* A head is cached or written, and is the same. */
START_TEST(test_heads)
{
	struct asker one, other;
	struct filehead first, second;
	const struct filehead *head, *again;

	open_with(4 << 20, way(_i), 1);
	put("a.css", 'x', 500);
	one = get(0, "/a.css");
	other = get(1, "/a.css");
	head = file_cache_head(one.waiter.result.entry, &first);
	again = file_cache_head(other.waiter.result.entry, &second);
	ck_assert(way(_i).no_heads == (head == &first));
	ck_assert(way(_i).no_heads == !file_cache_view(one.waiter.result.entry)->head);
	/* Cached once, unless nothing of the file is cached. */
	ck_assert(way(_i).no_heads || head == again);
	ck_assert_uint_eq(head->length, again->length);
	ck_assert_mem_eq(head->text, again->text, head->length);
	ck_assert_str_eq(file_cache_view(one.waiter.result.entry)->type, "text/css; charset=utf-8");
	give_back(0, &one);
	give_back(1, &other);
	close_all();
}
END_TEST

START_TEST(test_contents)
{
	struct asker one, other;

	open_with(4 << 20, way(_i), 1);
	put("file", 'x', 5000);
	one = get(0, "/file");
	other = get(1, "/file");
	if (way(_i).no_contents) {
		/* Each request has its own unit, without a valid id, and destroys it. */
		ck_assert_uint_ne(file_cache_view(one.waiter.result.entry)->id,
				  file_cache_view(other.waiter.result.entry)->id);
		ck_assert_uint_eq(units(), 0);
		ck_assert_uint_eq(inserts(), 2);
	} else {
		ck_assert_uint_eq(file_cache_view(one.waiter.result.entry)->id,
				  file_cache_view(other.waiter.result.entry)->id);
		ck_assert_uint_eq(units(), 1);
		ck_assert_uint_eq(inserts(), 1);
	}
	/* The held one outlives the file. */
	put("file", 'y', 5000);
	(void)check_file(1, "/file", 'y', 5000);
	ck_assert(uniform(file_cache_view(one.waiter.result.entry), 'x'));
	give_back(0, &one);
	give_back(1, &other);
	ck_assert_uint_eq(units(), !way(_i).no_contents);
	close_all();
}
END_TEST

START_TEST(test_counts)
{
	bool none = (_i & 7) == 7, found = !none;
	struct file_cache_stat stat;

	open_with(4 << 20, way(_i), 1);
	put("file", 'x', 5000);
	for (unsigned i = 0; i < 4; i++)
		(void)check_file(0, "/file", 'x', 5000);
	stat = stat_now();
	/* No heads and no contents: without paths nothing can be cached. */
	if (way(_i).no_paths && way(_i).no_heads && way(_i).no_contents)
		found = false;
	ck_assert_uint_eq(stat.files, found);
	ck_assert_uint_eq(stat.hits, found ? 3 : 0);
	ck_assert_uint_eq(stat.misses, found ? 1 : 4);
	ck_assert_uint_eq(stat.hit_bytes + stat.miss_bytes, 20000);
	ck_assert_uint_eq(stat.hit_bytes, way(_i).no_contents ? 0 : 15000);
	ck_assert(way(_i).try_now || stat.by_loops == 0);
	ck_assert_uint_ge(stat.by_loops + stat.by_helpers, way(_i).no_contents ? 4 : 1);
	close_all();
}
END_TEST

/* A helper reads a file that was just written. */
static void check_young(void)
{
	char name[16], path[16];
	struct asker asker;
	bool at_once;
	unsigned i = 0;

	do {
		snprintf(name, sizeof(name), "young%u", i);
		snprintf(path, sizeof(path), "/young%u", i++);
		put(name, 'y', 100);
		asker = get(0, path);
		ck_assert_int_eq(asker.waiter.result.error, 0);
		at_once = asker.at_once;
		/* On a busy machine the file may be old enough by now: try another. */
		if (at_once)
			ck_assert(file_version_is_stable(
				&file_cache_view(asker.waiter.result.entry)->version));
		give_back(0, &asker);
	} while (at_once);
}

/* Data in memory needs no helper: here all are busy. */
START_TEST(test_on_the_loop)
{
	struct file_cache_options options = way(_i | 8);
	uint64_t helped;

	open_with(4 << 20, options, 1);
	if (!reads_at_once()) {
		close_all();
		return;
	}
	put("file", 'x', 50000);
	await_stable();
	for (unsigned i = 0; i < 3; i++)
		ck_assert(check_file(i % 2, "/file", 'x', 50000));
	ck_assert_uint_eq(stat_now().by_helpers, 0);
	/* A missing file may require a look at the disk; then that is cached. */
	ck_assert_int_eq(error_of(0, "/none"), -ENOENT);
	helped = stat_now().by_helpers;
	ck_assert_int_eq(error_of(0, "/none"), -ENOENT);
	ck_assert_uint_eq(stat_now().by_helpers, helped);
	/* Helpers read files that are too recent or too large. */
	check_young();
	put("large", 'z', 512 * KIB);
	(void)check_file(1, "/large", 'z', 512 * KIB);
	ck_assert_uint_ge(stat_now().by_helpers, helped + 2);
	close_all();
}
END_TEST

/* Two paths of one file are two files to clients, of two types. */
START_TEST(test_links)
{
	struct asker text, style, other;

	open_with(4 << 20, way(_i), 1);
	put("a.txt", 'x', 500);
	ck_assert_int_eq(link(at("a.txt"), at("b.txt")), 0);
	ck_assert_int_eq(link(at("a.txt"), at("a.css")), 0);
	text = get(0, "/a.txt");
	style = get(0, "/a.css");
	other = get(0, "/b.txt");
	ck_assert_str_eq(file_cache_view(text.waiter.result.entry)->path, "/a.txt");
	ck_assert_str_eq(file_cache_view(other.waiter.result.entry)->path, "/b.txt");
	ck_assert_str_eq(file_cache_view(style.waiter.result.entry)->type,
			 "text/css; charset=utf-8");
	ck_assert_str_eq(file_cache_view(other.waiter.result.entry)->type,
			 "text/plain; charset=utf-8");
	give_back(0, &text);
	give_back(0, &style);
	give_back(0, &other);
	close_all();
}
END_TEST

/* No memory: sent in another way; afterwards there is memory again. */
START_TEST(test_no_memory)
{
	struct file_cache_options options = way(_i);
	struct asker askers[12];
	unsigned without = 0;

	options.max_unit = 256 * KIB;
	open_with(1 << 20, options, 1);
	put("file", 'a', 150 * KIB);
	put("other", 'b', 150 * KIB);
	for (unsigned i = 0; i < 12; i++) {
		askers[i] = get(0, "/file");
		ck_assert_int_eq(askers[i].waiter.result.error, 0);
		without += file_cache_view(askers[i].waiter.result.entry)->id == 0;
	}
	ck_assert(options.no_contents == (without > 0));
	for (unsigned i = 0; i < 12; i++)
		give_back(0, &askers[i]);
	(void)check_file(1, "/other", 'b', 150 * KIB);
	(void)check_file(0, "/file", 'a', 150 * KIB);
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_answers, 0, BYPASS_WAYS);
	tcase_add_loop_test(tcase, test_without_unit, 0, WAYS);
	tcase_add_loop_test(tcase, test_bound, 0, WAYS);
	tcase_add_loop_test(tcase, test_failures, 0, WAYS);
	tcase_add_loop_test(tcase, test_heads, 0, WAYS);
	tcase_add_loop_test(tcase, test_contents, 0, WAYS);
	tcase_add_loop_test(tcase, test_counts, 0, WAYS);
	/* Only openat2() tells what is in memory. */
	if (has_openat2())
		tcase_add_loop_test(tcase, test_on_the_loop, 0, WAYS / 2);
	tcase_add_loop_test(tcase, test_links, 0, WAYS);
	tcase_add_loop_test(tcase, test_no_memory, 0, WAYS);
}

RUN_SUITE("file-cache-modes", fill)
