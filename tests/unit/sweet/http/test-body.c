/* SPDX-License-Identifier: MIT */
/*
 * test-body.c - unit tests of body.c: framing, limits, the budget of all bodies, and
 * units, of the whole body and of one window at a time.  Single-threaded; pieces are
 * heap copies of their exact size, so that memory checkers detect a read beyond.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <nabc.h>

#include "base/budget.h"
#include "http/body.h"
#include "http/request.h"

#include "suite.h"
#include "unit-holds.h"

/* body_unit(); its hold is found by the unit's id. */
static int unit_of(struct body *body, size_t *id)
{
	struct NC_hold hold = {0};
	int error = body_unit(body, id, &hold);

	if (*id)
		remember_hold(NULL, *id, hold);
	return error;
}

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

static struct budget budget;
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
	ck_assert_int_eq(unit_of(&body, &id), 0);
	ck_assert_uint_eq(id, 0);
	body_end(&body);
}
END_TEST

START_TEST(test_dropped)
{
	begin(5, false);
	ck_assert(!body_is_over(&body) && !body_is_too_long(&body));
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

	budget = (struct budget){.most = MIB};
	memset(data, 'x', sizeof(data));
	begin(1001, false);
	ck_assert(body_is_too_long(&body));
	begin(1000, false);
	ck_assert(!body_is_too_long(&body));
	/* More than the limit for dropping may be kept, and less. */
	begin(1001, false);
	ck_assert_int_eq(body_keep(&body, 1001, BODY_WHOLE, &budget), 0);
	begin(1001, false);
	ck_assert_int_eq(body_keep(&body, 1000, BODY_WHOLE, &budget), -413);
	begin(INT64_MAX, false);
	ck_assert_int_eq(body_keep(&body, 1000, BODY_WHOLE, &budget), -413);
	body_end(&body);
	/* Of unknown length: as soon as it arrives. */
	begin(0, true);
	ck_assert(!body_is_too_long(&body));
	ck_assert_int_eq(body_keep(&body, 10, BODY_WHOLE, &budget), 0);
	ck_assert_int_eq(take_text("5\r\nabcde\r\n5\r\nabcde\r\n"), 20);
	ck_assert_int_eq(take_text("1\r\na"), -413);
	body_end(&body);
	begin(0, true);
	ck_assert_int_eq(take_text("3e8\r\n"), 5);
	ck_assert_int_eq(take(data, 1000), 1000);
	ck_assert_int_eq(take_text("\r\n"), 2);
	ck_assert(!body_is_too_long(&body));
	ck_assert_int_eq(take_text("1\r\n"), -413);
	/* As soon as the size of a chunk has arrived, before its content. */
	begin(0, true);
	ck_assert_int_eq(take_text("3e9\r"), 4);
	ck_assert(!body_is_too_long(&body));
	ck_assert_int_eq(take_text("\n"), -413);
	ck_assert(body_is_too_long(&body));
	begin(0, true);
	ck_assert_int_eq(body_keep(&body, 10, BODY_WHOLE, &budget), 0);
	ck_assert_int_eq(take_text("5\r\nabcde\r\n"), 10);
	ck_assert_int_eq(take_text("6\r\n"), -413);
	body_end(&body);
	begin(0, true);
	ck_assert_int_eq(body_keep(&body, MIB, BODY_WHOLE, &budget), 0);
	ck_assert_int_eq(take_text("100000000;a=b\r\n"), -413);
	body_end(&body);
	begin(0, true);
	ck_assert_int_eq(body_keep(&body, UINT64_MAX, BODY_WHOLE, &budget), 0);
	ck_assert_int_eq(take_text("fffffffffffffff\r\na"), 18);
	/* In the middle of a chunk whose rest exceeds the limit for dropping. */
	ck_assert(!body_is_too_long(&body));
	body_drop(&body, 1000);
	ck_assert(body_is_too_long(&body));
	ck_assert_int_eq(take_text("b"), -413);
	body_end(&body);
	begin(0, true);
	ck_assert_int_eq(take_text("x"), -400);
	ck_assert_uint_eq(budget.used, 0);
}
END_TEST

/* Memory grows with the received data; the budget is the limit, and is returned. */
START_TEST(test_budget)
{
	static char data[MIB];
	struct body first;

	budget = (struct budget){.most = 600 * KIB};
	begin(10 * MIB, false);
	ck_assert_int_eq(body_keep(&body, 100 * MIB, BODY_WHOLE, &budget), 0);
	ck_assert_uint_eq(budget.used, 0);
	ck_assert_int_eq(take(data, 1), 1);
	ck_assert_uint_le(budget.used, 4 * KIB);
	ck_assert_int_eq(take(data, 300 * KIB), 300 * KIB);
	ck_assert_uint_eq(budget.used, 512 * KIB);
	ck_assert_int_eq(take(data, 300 * KIB), -503);
	ck_assert_uint_eq(budget.used, 512 * KIB);
	/* A second body gets the rest. */
	first = body;
	body = (struct body){0};
	begin(80 * KIB, false);
	ck_assert_int_eq(body_keep(&body, MIB, BODY_WHOLE, &budget), 0);
	ck_assert_int_eq(take(data, 70 * KIB), 70 * KIB);
	ck_assert_uint_eq(budget.used, 592 * KIB); /* only as much as the body needs */
	body_end(&body);
	ck_assert_uint_eq(budget.used, 512 * KIB);
	body_end(&first);
	ck_assert_uint_eq(budget.used, 0);
}
END_TEST

/* If memory is short, a body that may arrive in pieces gets smaller ones. */
START_TEST(test_short)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB);
	NC_cache *cache = NC_cache_open(&options);
	static char data[MIB];
	size_t content = 0, id;

	ck_assert_ptr_nonnull(cache);
	for (unsigned chunked = 0; chunked < 2; chunked++) {
		/* Others use all of it, except for a first page. */
		budget = (struct budget){.most = 600 * KIB, .used = 600 * KIB};
		begin(chunked ? 0 : 100 * KIB, chunked);
		ck_assert_int_eq(body_keep(&body, MIB, 64 * KIB, &budget), 0);
		if (chunked)
			ck_assert_int_eq(take_text("19000\r\n"), 7);
		ck_assert_int_eq(take(data, 100 * KIB), 4 * KIB);
		ck_assert_int_eq(take(data, 96 * KIB), 0);
		ck_assert(body_is_ready(&body) && !body_is_over(&body));
		ck_assert_int_eq(unit_of(&body, &id), 0);
		ck_assert_int_eq(release_id(NULL, id), 0);
		ck_assert_int_eq(NC_destroy(NULL, id), 0);
		/* The next piece may be larger again. */
		budget.used -= 300 * KIB;
		ck_assert_int_eq(body_keep(&body, MIB, 64 * KIB, &budget), 0);
		ck_assert_int_eq(take(data, 96 * KIB), 64 * KIB);
		ck_assert(body_is_ready(&body));
		content = body.length;
		body_end(&body);
		ck_assert_uint_eq(budget.used, 300 * KIB);
		ck_assert_uint_eq(content, 68 * KIB);
	}
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

static void check_unit(size_t id, uint64_t seed, size_t length)
{
	char *bytes = must_alloc(length + 1);
	struct NC_stat stat;

	ck_assert_int_eq(NC_stat(NULL, id, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.size, length);
	ck_assert_int_eq(stat.kind, NC_KIND_SEALED);
	ck_assert_uint_eq(stat.holds, 1);
	ck_assert_int_eq(NC_pread(NULL, id, bytes, length + 1, 0), (ssize_t)length);
	ck_assert_uint_eq(pattern_match(bytes, seed, 0, length), length);
	free(bytes);
	ck_assert_int_eq(release_id(NULL, id), 0);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
}

START_TEST(test_unit)
{
	static const size_t sizes[] = {1, 100, 4096, 5000, 300000};
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB);
	NC_cache *cache = NC_cache_open(&options);
	static char data[300000];
	size_t id;

	ck_assert_ptr_nonnull(cache);
	budget = (struct budget){.most = MIB};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		pattern_fill(data, i, 0, sizes[i]);
		for (size_t piece = 1; piece <= sizes[i]; piece = piece * 9 + 1) {
			begin(sizes[i], false);
			ck_assert_int_eq(body_keep(&body, MIB, BODY_WHOLE, &budget), 0);
			for (size_t at = 0; at < sizes[i]; at += piece) {
				size_t now = sizes[i] - at < piece ? sizes[i] - at : piece;

				ck_assert_int_eq(take(data + at, now), (ssize_t)now);
			}
			ck_assert(body_is_over(&body));
			ck_assert_int_eq(unit_of(&body, &id), 0);
			body_end(&body);
			check_unit(id, i, sizes[i]);
		}
	}
	ck_assert_uint_eq(budget.used, 0);
	/* More than the cache can hold. */
	budget.most = 4 * MIB;
	begin(3 * MIB, false);
	ck_assert_int_eq(body_keep(&body, 4 * MIB, BODY_WHOLE, &budget), 0);
	for (unsigned i = 0; i < 3 * MIB / sizeof(data) + 1; i++)
		(void)take(data, sizeof(data));
	ck_assert(body_is_over(&body));
	ck_assert_int_eq(unit_of(&body, &id), -EFBIG);
	body_end(&body);
	ck_assert_uint_eq(budget.used, 0);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

/* Takes the rest of data, in pieces, until the window is full or the body ends. */
static size_t take_window(const char *data, size_t length, size_t piece)
{
	size_t at = 0;

	while (at < length && !body_is_ready(&body)) {
		size_t now = length - at < piece ? length - at : piece;
		ssize_t used = take(data + at, now);

		ck_assert_int_gt(used, 0);
		ck_assert(used == (ssize_t)now || body_is_ready(&body));
		at += (size_t)used;
	}
	/* A full window accepts nothing. */
	if (!body_is_over(&body) && body_is_ready(&body))
		ck_assert_int_eq(take(data + at, length - at), 0);
	return at;
}

/* Takes data (`length` bytes, framed) in windows; the content of each must be right. */
static void check_windows(const char *data, size_t framed, size_t length, size_t window,
			  size_t piece)
{
	size_t at = 0, content = 0;

	do {
		char *bytes;
		size_t id, now = length - content < window ? length - content : window;

		at += take_window(data + at, framed - at, piece);
		ck_assert(body_is_ready(&body));
		ck_assert_uint_eq(body.length, content + now);
		ck_assert_uint_le(budget.used, window);
		ck_assert_int_eq(unit_of(&body, &id), 0);
		ck_assert_uint_eq(id != 0, now != 0);
		bytes = must_alloc(now);
		if (id)
			ck_assert_int_eq(NC_pread(NULL, id, bytes, now, 0), (ssize_t)now);
		ck_assert_uint_eq(pattern_match(bytes, 7, content, now), now);
		free(bytes);
		if (id) {
			ck_assert_int_eq(release_id(NULL, id), 0);
			ck_assert_int_eq(NC_destroy(NULL, id), 0);
		}
		content += now;
	} while (!body_is_over(&body));
	ck_assert_uint_eq(at, framed);
	ck_assert_uint_eq(content, length);
	body_end(&body);
	ck_assert_uint_eq(budget.used, 0);
}

START_TEST(test_windows)
{
	static const size_t sizes[] = {1, 99, 100, 101, 200, 5000};
	static const size_t pieces[] = {1, 7, 100, 101, 4000, 20000};
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB);
	NC_cache *cache = NC_cache_open(&options);
	static char data[5000], framed[20000];

	ck_assert_ptr_nonnull(cache);
	pattern_fill(data, 7, 0, sizeof(data));
	budget = (struct budget){.most = 100};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (size_t j = 0; j < sizeof(pieces) / sizeof(pieces[0]); j++) {
			size_t length = 0;

			begin(sizes[i], false);
			ck_assert_int_eq(body_keep(&body, UINT64_MAX, 100, &budget), 0);
			check_windows(data, sizes[i], sizes[i], 100, pieces[j]);
			for (size_t at = 0, now; at < sizes[i]; at += now) {
				now = sizes[i] - at < 33 ? sizes[i] - at : 33;
				length += (size_t)sprintf(framed + length, "%zx\r\n", now);
				memcpy(framed + length, data + at, now);
				length += now;
				length += (size_t)sprintf(framed + length, "\r\n");
			}
			length += (size_t)sprintf(framed + length, "0\r\n\r\n");
			begin(0, true);
			ck_assert_int_eq(body_keep(&body, UINT64_MAX, 100, &budget), 0);
			check_windows(framed, length, sizes[i], 100, pieces[j]);
		}
	}
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

/* The limit is for all windows together, and for bytes that are dropped afterwards. */
START_TEST(test_window_limits)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB);
	NC_cache *cache = NC_cache_open(&options);
	size_t id;

	ck_assert_ptr_nonnull(cache);
	budget = (struct budget){.most = MIB};
	begin(0, true);
	ck_assert_int_eq(body_keep(&body, 12, 5, &budget), 0);
	ck_assert_int_eq(take_text("a\r\nabcdefgh"), 8); /* the size and a window */
	ck_assert(body_is_ready(&body) && !body_is_over(&body));
	ck_assert_int_eq(unit_of(&body, &id), 0);
	ck_assert_uint_eq(budget.used, 5);
	ck_assert_int_eq(release_id(NULL, id), 0);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	ck_assert_int_eq(take_text("fghij"), 5);
	ck_assert_int_eq(unit_of(&body, &id), 0);
	ck_assert_int_eq(release_id(NULL, id), 0);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	ck_assert_int_eq(take_text("\r\n2\r\nkl\r\n"), 9);
	ck_assert_int_eq(take_text("1\r\n"), -413);
	body_end(&body);
	ck_assert_uint_eq(budget.used, 0);

	begin(INT64_MAX, false);
	ck_assert_int_eq(body_keep(&body, UINT64_MAX, 5, &budget), 0);
	ck_assert_int_eq(take_text("abcdefgh"), 5);
	ck_assert(!body_is_too_long(&body));
	body_drop(&body, 3);
	ck_assert_uint_eq(budget.used, 0);
	ck_assert(body_is_too_long(&body) && !body_is_ready(&body));
	ck_assert_int_eq(take_text("abcd"), -413);
	begin(8, false);
	ck_assert_int_eq(body_keep(&body, 8, 5, &budget), 0);
	ck_assert_int_eq(take_text("abcde"), 5);
	body_drop(&body, 3);
	body_drop(&body, 3);
	ck_assert(!body_is_too_long(&body));
	ck_assert_int_eq(take_text("fghGET"), 3);
	ck_assert(body_is_over(&body));
	body_drop(&body, UINT64_MAX);
	ck_assert_uint_eq(body.limit, UINT64_MAX);
	body_end(&body);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_none);
	tcase_add_test(tcase, test_dropped);
	tcase_add_test(tcase, test_limits);
	tcase_add_test(tcase, test_budget);
	tcase_add_test(tcase, test_short);
	tcase_add_test(tcase, test_unit);
	tcase_add_test(tcase, test_windows);
	tcase_add_test(tcase, test_window_limits);
}

RUN_SUITE("body", fill)
