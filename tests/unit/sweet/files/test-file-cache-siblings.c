/* SPDX-License-Identifier: MIT */
/*
 * test-file-cache-siblings.c - unit tests of file-cache-siblings.c: the
 * precompressed files beside a file, which exist, how long that is cached, and which
 * of two files is newer.
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event/loop.h"
#include "files/docroot.h"
#include "files/file-cache.h"
#include "http/accept.h"

#include "file-cache-fixture.h"
#include "loop-fixture.h"
#include "suite.h"

#define SECOND UINT64_C(1000000000)

/* Sets the time of modification to that long before 2030. */
static void set_time(const char *name, long seconds, long nanoseconds)
{
	struct timespec times[2] = {{.tv_sec = 1},
				    {.tv_sec = 1893456000 + seconds, .tv_nsec = nanoseconds}};

	ck_assert_int_eq(utimensat(AT_FDCWD, at(name), times, 0), 0);
}

struct look {
	struct file_cache_entry *entry;
	enum coding unfit; /* CODINGS: none */
	unsigned found;
	uint64_t now; /* the loop's */
};

static uint64_t looked_ns; /* at the last check */

static void look(void *argument)
{
	struct look *look = argument;

	if (look->unfit < CODINGS)
		file_cache_sibling_unfit(look->entry, look->unfit);
	look->now = loop_now_ns(runners[0].loop);
	look->found = file_cache_siblings(look->entry, runners[0].loop);
}

/* On the loop's thread, with its clock. */
static unsigned siblings(struct asker *asker, enum coding unfit)
{
	struct look order = {.entry = asker->waiter.result.entry, .unfit = unfit};

	call(&runners[0], look, &order);
	settle(&runners[0]);
	looked_ns = order.now;
	return order.found;
}

#define BR (1u << CODING_BR)
#define ZSTD (1u << CODING_ZSTD)
#define GZIP (1u << CODING_GZIP)

START_TEST(test_which)
{
	struct asker asker;

	open_all(4 << 20, 1 << 20, 1, 3600 * SECOND);
	put("file", 'a', 100);
	put("file.br", 'b', 10);
	put("file.zst", 'z', 10);
	put("file.gzip", 'x', 10);
	put("filegz", 'x', 10);
	put("file.gz", 'g', 10);
	set_time("file", 0, 500);
	set_time("file.br", 0, 500);
	set_time("file.zst", 0, 499);
	set_time("file.gz", 1, 0);
	asker = get(0, "/file");
	ck_assert_uint_eq(siblings(&asker, CODINGS), BR | GZIP);
	ck_assert_uint_eq(siblings(&asker, CODING_BR), GZIP);
	ck_assert_uint_eq(siblings(&asker, CODING_BR), GZIP);
	/* Cached: not checked. */
	set_time("file.zst", 5, 0);
	ck_assert_int_eq(unlink(at("file.gz")), 0);
	ck_assert_uint_eq(siblings(&asker, CODINGS), GZIP);
	give_back(0, &asker);
	close_all();
}
END_TEST

START_TEST(test_none)
{
	struct asker asker;

	open_all(4 << 20, 1 << 20, 1, 3600 * SECOND);
	put("file", 'a', 100);
	asker = get(0, "/file");
	ck_assert_uint_eq(siblings(&asker, CODINGS), 0);
	put("file.br", 'b', 10);
	ck_assert_uint_eq(siblings(&asker, CODINGS), 0);
	give_back(0, &asker);
	close_all();
}
END_TEST

/* Checked again after a second and no sooner, however often files are requested. */
START_TEST(test_again)
{
	struct asker asker;
	unsigned found = 0;
	uint64_t first;

	open_all(4 << 20, 1 << 20, 1, 0);
	put("file", 'a', 100);
	asker = get(0, "/file");
	ck_assert_uint_eq(siblings(&asker, CODINGS), 0);
	first = looked_ns;
	put("file.zst", 'z', 10);
	set_time("file.zst", 0, 0);
	while (!found)
		found = siblings(&asker, CODINGS);
	ck_assert_uint_ge(looked_ns - first, SECOND);
	ck_assert_uint_eq(found, ZSTD);
	give_back(0, &asker);
	close_all();
}
END_TEST

/* A version that was read again has its own siblings. */
START_TEST(test_new_version)
{
	struct asker asker;

	open_all(4 << 20, 1 << 20, 1, 0);
	put("file", 'a', 100);
	put("file.gz", 'g', 10);
	set_time("file", 0, 0);
	set_time("file.gz", 0, 0);
	asker = get(0, "/file");
	ck_assert_uint_eq(siblings(&asker, CODINGS), GZIP);
	give_back(0, &asker);
	put("file", 'b', 100);
	set_time("file", 7, 0);
	asker = get(0, "/file");
	ck_assert_uint_eq(siblings(&asker, CODINGS), 0);
	give_back(0, &asker);
	close_all();
}
END_TEST

static struct file_version made_at(long second, long nanosecond, long changed)
{
	return (struct file_version){.modified = {second, nanosecond}, .changed = {changed, 5}};
}

START_TEST(test_follows)
{
	struct file_version from = made_at(100, 500, 200), made;

	made = made_at(100, 500, 0);
	ck_assert(file_version_follows(&made, &from));
	made = made_at(100, 501, 0);
	ck_assert(file_version_follows(&made, &from));
	made = made_at(101, 0, 0);
	ck_assert(file_version_follows(&made, &from));
	made = made_at(100, 499, 1000);
	ck_assert(!file_version_follows(&made, &from));
	made = made_at(99, 999, 1000);
	ck_assert(!file_version_follows(&made, &from));
	/* The time without fractions of a second: only from a file touched later. */
	made = made_at(100, 0, 201);
	ck_assert(file_version_follows(&made, &from));
	made = made_at(100, 0, 200);
	ck_assert(!file_version_follows(&made, &from));
	made = made_at(100, 0, 199);
	ck_assert(!file_version_follows(&made, &from));
	made = made_at(99, 0, 1000);
	ck_assert(!file_version_follows(&made, &from));
}
END_TEST

/* A sibling has the type of its file. */
START_TEST(test_type)
{
	const struct file_cache_view *view;
	struct asker asker;

	open_all(4 << 20, 1 << 20, 1, 0);
	put("a.css", 'a', 100);
	asker = get(0, "/a.css");
	view = file_cache_view(asker.waiter.result.entry);
	ck_assert_str_eq(view->type, "text/css; charset=utf-8");
	give_back(0, &asker);
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_which);
	tcase_add_test(tcase, test_none);
	tcase_add_test(tcase, test_again);
	tcase_add_test(tcase, test_new_version);
	tcase_add_test(tcase, test_follows);
	tcase_add_test(tcase, test_type);
}

RUN_SUITE("file-cache-siblings", fill)
