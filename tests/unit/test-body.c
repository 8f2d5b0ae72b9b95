/* SPDX-License-Identifier: MIT */
/*
 * test-body.c - unit tests of body.c: framing, limits, the budget of all
 * bodies, and the unit at the end.  Single-threaded; pieces are heap copies of
 * their exact size, so that memory checkers see a read too far.
 */
#include <nabc.h>

#include <body.h>

#include "suite.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

static struct body_budget budget;
static struct body body;

static void begin(uint64_t length, bool chunked)
{
	struct request request = {.content_length = length, .chunked = chunked};

	body_end(&body);
	body_begin(&body, &request, 1000);
}

static ssize_t take(const char *data, size_t length)
{
	char *copy = must_alloc(length);
	ssize_t used;

	memcpy(copy, data, length);
	used = body_take(&body, copy, length);
	free(copy);
	return used;
}

static ssize_t take_text(const char *text)
{
	return take(text, strlen(text));
}

START_TEST(test_none)
{
	size_t id = 1;

	begin(0, false);
	ck_assert(body_is_over(&body));
	ck_assert_int_eq(take_text("GET"), 0);
	ck_assert_int_eq(body_unit(&body, &id), 0);
	ck_assert_uint_eq(id, 0);
	body_end(&body);
}
END_TEST

START_TEST(test_dropped)
{
	begin(5, false);
	ck_assert(!body_is_over(&body) && !body_is_hopeless(&body));
	ck_assert_int_eq(take_text("abc"), 3);
	ck_assert(!body_is_over(&body));
	ck_assert_int_eq(take_text("deGET"), 2);
	ck_assert(body_is_over(&body));
	ck_assert_ptr_null(body.content);
	begin(0, true);
	ck_assert_int_eq(take_text("3\r\nab"), 5);
	ck_assert_int_eq(take_text("c\r\n0\r\n\r\nGET"), 8);
	ck_assert(body_is_over(&body));
	ck_assert_ptr_null(body.content);
	body_end(&body);
}
END_TEST

START_TEST(test_limits)
{
	char data[1001];

	budget = (struct body_budget){.most = MIB};
	memset(data, 'x', sizeof(data));
	begin(1001, false);
	ck_assert(body_is_hopeless(&body));
	begin(1000, false);
	ck_assert(!body_is_hopeless(&body));
	/* More than is dropped may be kept, and less. */
	begin(1001, false);
	ck_assert_int_eq(body_keep(&body, 1001, &budget), 0);
	begin(1001, false);
	ck_assert_int_eq(body_keep(&body, 1000, &budget), -413);
	begin(INT64_MAX, false);
	ck_assert_int_eq(body_keep(&body, 1000, &budget), -413);
	body_end(&body);
	/* Of unknown length: when it comes. */
	begin(0, true);
	ck_assert(!body_is_hopeless(&body));
	ck_assert_int_eq(body_keep(&body, 10, &budget), 0);
	ck_assert_int_eq(take_text("5\r\nabcde\r\n5\r\nabcde\r\n"), 20);
	ck_assert_int_eq(take_text("1\r\na"), -413);
	body_end(&body);
	begin(0, true);
	ck_assert_int_eq(take_text("3e9\r\n"), 5);
	ck_assert_int_eq(take(data, 1000), 1000);
	ck_assert_int_eq(take(data, 1), -413);
	begin(0, true);
	ck_assert_int_eq(take_text("x"), -400);
	ck_assert_uint_eq(budget.used, 0);
}
END_TEST

/* Memory follows what has come; the budget is all that there is, and comes back. */
START_TEST(test_budget)
{
	static char data[MIB];
	struct body first;

	budget = (struct body_budget){.most = 600 * KIB};
	begin(10 * MIB, false);
	ck_assert_int_eq(body_keep(&body, 100 * MIB, &budget), 0);
	ck_assert_uint_eq(budget.used, 0);
	ck_assert_int_eq(take(data, 1), 1);
	ck_assert_uint_le(budget.used, 4 * KIB);
	ck_assert_int_eq(take(data, 300 * KIB), 300 * KIB);
	ck_assert_uint_eq(budget.used, 512 * KIB);
	ck_assert_int_eq(take(data, 300 * KIB), -503);
	ck_assert_uint_eq(budget.used, 512 * KIB);
	/* A second one has the rest. */
	first = body;
	body = (struct body){0};
	begin(80 * KIB, false);
	ck_assert_int_eq(body_keep(&body, MIB, &budget), 0);
	ck_assert_int_eq(take(data, 70 * KIB), 70 * KIB);
	ck_assert_uint_eq(budget.used, 592 * KIB); /* no more room than the body needs */
	body_end(&body);
	ck_assert_uint_eq(budget.used, 512 * KIB);
	body_end(&first);
	ck_assert_uint_eq(budget.used, 0);
}
END_TEST

static void check_unit(size_t id, uint64_t seed, size_t length)
{
	char *bytes = must_alloc(length + 1);
	struct NC_stat stat;

	ck_assert_int_eq(NC_stat(id, &stat), 0);
	ck_assert_uint_eq(stat.size, length);
	ck_assert_int_eq(stat.kind, NC_KIND_SEALED);
	ck_assert_uint_eq(stat.holds, 1);
	ck_assert_int_eq(NC_pread(NULL, id, bytes, length + 1, 0), (ssize_t)length);
	ck_assert_uint_eq(pattern_match(bytes, seed, 0, length), length);
	free(bytes);
	ck_assert_int_eq(NC_release(id), 0);
	ck_assert_int_eq(NC_destroy(id), 0);
}

START_TEST(test_unit)
{
	static const size_t sizes[] = {1, 100, 4096, 5000, 300000};
	struct NC_cache_options options = {.size = 8 * MIB};
	NC_cache *cache = NC_cache_open(&options);
	static char data[300000];
	size_t id;

	ck_assert_ptr_nonnull(cache);
	budget = (struct body_budget){.most = MIB};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		pattern_fill(data, i, 0, sizes[i]);
		for (size_t piece = 1; piece <= sizes[i]; piece = piece * 9 + 1) {
			begin(sizes[i], false);
			ck_assert_int_eq(body_keep(&body, MIB, &budget), 0);
			for (size_t at = 0; at < sizes[i]; at += piece) {
				size_t now = sizes[i] - at < piece ? sizes[i] - at : piece;

				ck_assert_int_eq(take(data + at, now), (ssize_t)now);
			}
			ck_assert(body_is_over(&body));
			ck_assert_int_eq(body_unit(&body, &id), 0);
			body_end(&body);
			check_unit(id, i, sizes[i]);
		}
	}
	ck_assert_uint_eq(budget.used, 0);
	/* What the cache cannot hold. */
	budget.most = 4 * MIB;
	begin(3 * MIB, false);
	ck_assert_int_eq(body_keep(&body, 4 * MIB, &budget), 0);
	for (unsigned i = 0; i < 3 * MIB / sizeof(data) + 1; i++)
		(void)take(data, sizeof(data));
	ck_assert(body_is_over(&body));
	ck_assert_int_eq(body_unit(&body, &id), -EFBIG);
	body_end(&body);
	ck_assert_uint_eq(budget.used, 0);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_none);
	tcase_add_test(tcase, test_dropped);
	tcase_add_test(tcase, test_limits);
	tcase_add_test(tcase, test_budget);
	tcase_add_test(tcase, test_unit);
}

RUN_SUITE("body", fill)
