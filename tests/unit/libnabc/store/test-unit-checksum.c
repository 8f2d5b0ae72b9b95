/* SPDX-License-Identifier: MIT */
/*
 * test-unit-checksum.c - unit tests of unit-checksum.c: units of many shapes, every
 * kind of range against the sum of its bytes in one piece, rewrites, and corrupted
 * fragments.  Single-threaded.
 */
#include <errno.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/checksum.h"
#include "base/fragment.h"
#include "store/store.h"
#include "store/unit-checksum.h"
#include "store/unit.h"

#include "suite.h"
#include "unit-checksum-fixture.h"

/* The sanitizers must let impossible allocations fail instead of ending the program. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void sum_unit(struct nc_unit *unit, enum NC_checksum_kind kind)
{
	ck_assert_int_eq(nc_unit_checksum_init(unit, kind), 0);
	ck_assert_int_eq(nc_unit_checksum_keep(unit), 0);
	nc_unit_checksum_compute(unit, 0, unit->layout.fragments);
}

START_TEST(test_init)
{
	struct rlimit before, little;
	unsigned char *bytes;
	struct nc_unit unit;

	make_unit(&unit, 9000, 0, 1);
	ck_assert_int_eq(nc_unit_checksum_kind(&unit), NC_CHECKSUM_DEFAULT);
	ck_assert_int_eq(nc_unit_checksum_init(&unit, NC_CHECKSUM_DEFAULT), -EINVAL);
	ck_assert_int_eq(nc_unit_checksum_init(&unit, (enum NC_checksum_kind)3), -EINVAL);
	ck_assert_int_eq(nc_unit_checksum_kind(&unit), NC_CHECKSUM_DEFAULT);
	ck_assert_int_eq(nc_unit_checksum_make(&unit), -ENODATA);
	/* Three fragments: inside as 16 bits each, outside as 32. */
	ck_assert_int_eq(nc_unit_checksum_init(&unit, NC_CHECKSUM_INET), 0);
	ck_assert_int_eq(nc_unit_checksum_kind(&unit), NC_CHECKSUM_INET);
	ck_assert(!nc_unit_sums_outside(&unit));
	free_unit(&unit);
	make_unit(&unit, 9000, 0, 1);
	ck_assert_int_eq(nc_unit_checksum_init(&unit, NC_CHECKSUM_CRC32C), 0);
	ck_assert_int_eq(nc_unit_checksum_kind(&unit), NC_CHECKSUM_CRC32C);
	ck_assert(nc_unit_sums_outside(&unit));
	ck_assert(!nc_unit_checksum_kept(&unit));
	ck_assert_ptr_null(unit.sums);
	free_unit(&unit);
	/* More sums than memory. */
	make_unit(&unit, 9000, 0, 1);
	bytes = flat(&unit);
	unit.layout.fragments = UINT32_MAX;
	ck_assert_int_eq(nc_unit_checksum_init(&unit, NC_CHECKSUM_INET), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
	little = (struct rlimit){.rlim_cur = 1 << 30, .rlim_max = before.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &little), 0);
	ck_assert_int_eq(nc_unit_checksum_keep(&unit), -ENOMEM);
	ck_assert_ptr_null(nc_unit_checksum_draft(&unit));
	ck_assert_int_eq(nc_unit_checksum_make(&unit), -ENOMEM);
	/* The checksum of a range is then that of its bytes, and nothing is kept. */
	ck_assert_uint_eq(nc_unit_checksum_range(&unit, NC_CHECKSUM_INET, 1, 8000),
			  nc_checksum(bytes + 1, 8000));
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
	ck_assert(!nc_unit_checksum_kept(&unit));
	free(bytes);
	free_unit(&unit);
}
END_TEST

/* eager: the sums are there before the first call. */
static void check_ranges(enum NC_checksum_kind kept, bool eager)
{
	uint64_t state = 51;

	for (unsigned i = 0; i < SHAPES; i++) {
		size_t size = shapes[i].size, fraglen, whole;
		unsigned char *bytes;
		struct nc_unit unit;

		make_unit(&unit, size, shapes[i].fraglen, i);
		bytes = flat(&unit);
		if (kept && eager)
			sum_unit(&unit, kept);
		else if (kept)
			ck_assert_int_eq(nc_unit_checksum_init(&unit, kept), 0);
		fraglen = unit.layout.fraglen;
		whole = size / fraglen * fraglen;
		check_range(&unit, bytes, 0, 0);
		check_range(&unit, bytes, size, 0);
		check_range(&unit, bytes, 0, size);
		check_range(&unit, bytes, 0, whole);
		check_range(&unit, bytes, whole, size - whole);
		check_range(&unit, bytes, size - 1, 1);
		for (unsigned round = 0; round < scaled(300); round++) {
			size_t from = random_next(&state) % (size + 1);
			size_t to = from + random_next(&state) % (size - from + 1);

			check_range(&unit, bytes, from, to - from);
			check_range(&unit, bytes, from, size - from);
			/* From the start of one fragment to that of another. */
			from = from / fraglen * fraglen;
			check_range(&unit, bytes, from, to - from);
			to = to / fraglen * fraglen;
			check_range(&unit, bytes, from, to - from);
		}
		ck_assert(nc_unit_checksum_kept(&unit) == (kept != NC_CHECKSUM_DEFAULT));
		free(bytes);
		free_unit(&unit);
	}
}

START_TEST(test_ranges_inet)
{
	check_ranges(NC_CHECKSUM_INET, true);
	check_ranges(NC_CHECKSUM_INET, false);
}
END_TEST

START_TEST(test_ranges_crc32c)
{
	check_ranges(NC_CHECKSUM_CRC32C, true);
	check_ranges(NC_CHECKSUM_CRC32C, false);
}
END_TEST

START_TEST(test_ranges_of_nothing_kept)
{
	check_ranges(NC_CHECKSUM_DEFAULT, false);
}
END_TEST

/* Whole fragments are not read: their kept sums are used. */
START_TEST(test_kept_are_used)
{
	for (unsigned k = 0; k < 2; k++) {
		unsigned char *bytes;
		struct nc_unit unit;

		make_unit(&unit, 10000, 1000, 3);
		sum_unit(&unit, kinds[k]);
		bytes = flat(&unit);
		*byte_at(&unit, 4500) ^= 1;
		*byte_at(&unit, 9999) ^= 1;
		ck_assert_uint_eq(nc_unit_checksum_range(&unit, kinds[k], 0, 10000),
				  sum_of(kinds[k], bytes, 10000));
		ck_assert_uint_eq(nc_unit_checksum_range(&unit, kinds[k], 3999, 6001),
				  sum_of(kinds[k], bytes + 3999, 6001));
		ck_assert_uint_eq(nc_unit_checksum_range(&unit, kinds[k], 9000, 1000),
				  sum_of(kinds[k], bytes + 9000, 1000));
		/* Partial ones are read. */
		ck_assert_uint_ne(nc_unit_checksum_range(&unit, kinds[k], 4001, 5999),
				  sum_of(kinds[k], bytes + 4001, 5999));
		ck_assert_uint_ne(nc_unit_checksum_range(&unit, kinds[!k], 0, 10000),
				  sum_of(kinds[!k], bytes, 10000));
		free(bytes);
		free_unit(&unit);
	}
}
END_TEST

/* Sums stay correct, however the bytes are rewritten. */
static void check_rewrites(enum NC_checksum_kind kind)
{
	unsigned char data[12288];
	uint64_t state = 52;

	for (unsigned i = 0; i < SHAPES; i++) {
		struct nc_unit unit;

		make_unit(&unit, shapes[i].size, shapes[i].fraglen, i);
		sum_unit(&unit, kind);
		for (unsigned round = 0; round < scaled(400); round++) {
			size_t at = random_next(&state) % unit.layout.size;
			size_t left = unit.layout.fraglen - at % unit.layout.fraglen;
			size_t length;

			if (left > unit.layout.size - at)
				left = unit.layout.size - at;
			length = random_next(&state) % (left + 1);
			if (round % 2)
				length %= 20;
			/* Often zeroes: their sum has two forms. */
			for (size_t b = 0; b < length; b++)
				data[b] = round / 100 % 2 ? 0 : (unsigned char)random_next(&state);
			nc_unit_checksum_rewrite(&unit, at, data, length);
			expect(length == 0 || !memcmp(byte_at(&unit, at), data, length));
			expect(nc_unit_checksum_verify(&unit, at / unit.layout.fraglen, 1) == 1);
		}
		ck_assert_int_eq(nc_unit_checksum_verify(&unit, 0, SIZE_MAX),
				 (ssize_t)unit.layout.fragments);
		free_unit(&unit);
	}
}

START_TEST(test_rewrites_inet)
{
	check_rewrites(NC_CHECKSUM_INET);
}
END_TEST

START_TEST(test_rewrites_crc32c)
{
	check_rewrites(NC_CHECKSUM_CRC32C);
}
END_TEST

/* The one case that RFC 1624 does not cover: all bytes become zero. */
START_TEST(test_rewrite_to_zero)
{
	struct nc_unit unit;

	make_unit(&unit, 4096, 0, 1);
	memset(nc_unit_base(&unit), 0, 4096);
	memset(nc_unit_base(&unit) + 100, 7, 5);
	sum_unit(&unit, NC_CHECKSUM_INET);
	nc_unit_checksum_rewrite(&unit, 100, "\0\0\0\0", 5);
	ck_assert_uint_eq(nc_unit_checksum_range(&unit, NC_CHECKSUM_INET, 0, 4096), 0);
	ck_assert_int_eq(nc_unit_checksum_verify(&unit, 0, 4096), 1);
	/* And a sum that is correctly 0xffff. */
	nc_unit_checksum_rewrite(&unit, 8, "\xff\xff", 2);
	ck_assert_uint_eq(nc_unit_checksum_range(&unit, NC_CHECKSUM_INET, 0, 4096), 0xffff);
	ck_assert_int_eq(nc_unit_checksum_verify(&unit, 0, 4096), 1);
	free_unit(&unit);
}
END_TEST

/* Every byte counts, in portions of every size. */
START_TEST(test_verify)
{
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < SHAPES; i++) {
			size_t fragments, fraglen, at = 0;
			struct nc_unit unit;
			ssize_t good;

			make_unit(&unit, shapes[i].size, shapes[i].fraglen, i);
			ck_assert_int_eq(nc_unit_checksum_verify(&unit, 0, 100), -ENODATA);
			sum_unit(&unit, kinds[k]);
			fragments = unit.layout.fragments;
			fraglen = unit.layout.fraglen;
			ck_assert_int_eq(nc_unit_checksum_verify(&unit, 0, SIZE_MAX),
					 (ssize_t)fragments);
			ck_assert_int_eq(nc_unit_checksum_verify(&unit, fragments, SIZE_MAX), 0);
			ck_assert_int_eq(nc_unit_checksum_verify(&unit, 0, 0), 1);
			while ((good = nc_unit_checksum_verify(&unit, at, 3 * fraglen)) > 0) {
				ck_assert_int_le(good, 3);
				at += (size_t)good;
			}
			ck_assert_int_eq(good, 0);
			ck_assert_uint_eq(at, fragments);
			for (size_t byte = 0; byte < unit.layout.size;
			     byte += 1 + unit.layout.size / 20) {
				*byte_at(&unit, byte) ^= 4;
				ck_assert_int_eq(nc_unit_checksum_verify(&unit, 0, SIZE_MAX),
						 -EBADMSG);
				ck_assert_int_eq(nc_unit_checksum_verify(&unit, byte / fraglen, 1),
						 -EBADMSG);
				if (byte / fraglen + 1 < fragments)
					ck_assert_int_gt(nc_unit_checksum_verify(&unit,
										 byte / fraglen + 1,
										 SIZE_MAX),
							 0);
				*byte_at(&unit, byte) ^= 4;
			}
			free_unit(&unit);
		}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_init);
	tcase_add_test(tcase, test_ranges_inet);
	tcase_add_test(tcase, test_ranges_crc32c);
	tcase_add_test(tcase, test_ranges_of_nothing_kept);
	tcase_add_test(tcase, test_kept_are_used);
	tcase_add_test(tcase, test_rewrites_inet);
	tcase_add_test(tcase, test_rewrites_crc32c);
	tcase_add_test(tcase, test_rewrite_to_zero);
	tcase_add_test(tcase, test_verify);
}

RUN_SUITE("unit-checksum", fill)
