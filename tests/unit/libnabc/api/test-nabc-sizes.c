/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-sizes.c - unit tests of structures that grow: callers of older and newer
 * versions, by the size and the stride that they pass.
 */
#include <errno.h>
#include <nabc.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "nabc-fixture.h"
#include "suite.h"

/* A structure of an older or newer program; see versioned.h. */
START_TEST(test_sizes)
{
	struct {
		struct NC_cache_options known;
		uint64_t newer;
	} options = {.known = NC_CACHE_OPTIONS_INIT(.memory = MIB)};
	struct {
		struct NC_cache_stat known;
		uint64_t newer;
	} stat;

	ck_assert_uint_eq(NC_version(), NC_VERSION);
	ck_assert_uint_eq(NC_sizeof("NC_handle"), sizeof(NC_handle));
	ck_assert_uint_eq(NC_sizeof("struct NC_stat"), sizeof(struct NC_stat));
	ck_assert_uint_eq(NC_sizeof("struct NC_insert_options"), sizeof(struct NC_insert_options));
	ck_assert_uint_eq(NC_sizeof("struct stat"), 0);
	ck_assert_uint_eq(NC_sizeof(NULL), 0);
	options.known.size = 0;
	NULL_FAILS(NC_cache_open(&options.known), EINVAL);
	/* Version 1.0 ends before this field. */
	options.known.size = offsetof(struct NC_cache_options, member_share) - 1;
	NULL_FAILS(NC_cache_open(&options.known), EINVAL);
	options.known.size = sizeof(options);
	options.newer = 1;
	NULL_FAILS(NC_cache_open(&options.known), E2BIG);
	options.newer = 0;
	cache = NC_cache_open(&options.known);
	ck_assert_ptr_nonnull(cache);
	memset(&stat, 0xff, sizeof(stat));
	ck_assert_int_eq(NC_cache_stat(cache, &stat.known, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.known.size, MIB);
	ck_assert_uint_eq(stat.newer, 0);
	memset(&stat, 0xff, sizeof(stat));
	ck_assert_int_eq(NC_cache_stat(cache, &stat.known, 8), 0);
	ck_assert_uint_eq(stat.known.size, MIB);
	ck_assert_uint_eq(stat.known.used, UINT64_MAX);
	FAILS(NC_cache_stat(cache, &stat.known, 0), EINVAL);
	close_cache();
}
END_TEST

/* Structures of a program with larger ones, in an array. */
START_TEST(test_strides)
{
	struct {
		struct NC_stat known;
		uint64_t newer;
	} units[3];
	size_t cursor = 0, ids[2];

	open_cache(MIB);
	ids[0] = insert(1, 100);
	ids[1] = insert(2, 200);
	memset(units, 0xff, sizeof(units));
	ck_assert_int_eq(NC_list(cache, &cursor, &units[0].known, sizeof(units[0]), 3), 2);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(units[i].known.id, ids[i]);
		ck_assert_uint_eq(units[i].newer, 0);
	}
	ck_assert_uint_eq(units[2].known.id, SIZE_MAX);
	FAILS(NC_list(cache, &cursor, &units[0].known, 0, 3), EINVAL);
	close_cache();
}
END_TEST

/* A message of a program that knows neither limit nor texts, which may lie behind it. */
START_TEST(test_old_message)
{
	static const size_t sizes[] = {offsetof(struct NC_send, cookie),
				       offsetof(struct NC_send, limit)};
	struct NC_range range = {.length = 100};
	struct NC_send message =
		NC_SEND_INIT(.header = "head", .header_length = 4, .ranges = &range,
			     .range_count = 1, .limit = 3, .text_count = 1);
	char got[104];
	int pair[2];

	open_cache(MIB);
	range.id = insert(1, 100);
	tcp_pair(pair);
	for (unsigned i = 0; i < 2; i++) {
		message.size = sizes[i];
		ck_assert_int_eq(NC_send(NULL, pair[0], &message), 104);
		read_exactly(pair[1], got, sizeof(got));
		ck_assert_uint_eq(pattern_match(got + 4, 1, 0, 100), 100);
	}
	message.size = sizes[0] - 1;
	FAILS(NC_send(NULL, pair[0], &message), EINVAL);
	message.size = sizeof(message);
	FAILS(NC_send(NULL, pair[0], &message), EINVAL);
	message.text_count = 0;
	ck_assert_int_eq(NC_send(NULL, pair[0], &message), 3);
	close_pair(pair);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_sizes);
	tcase_add_test(tcase, test_strides);
	tcase_add_test(tcase, test_old_message);
}

RUN_SUITE("nabc-sizes", fill)
