/* SPDX-License-Identifier: MIT */
/*
 * test-fragment.c - unit tests of fragment.c: walks layouts of many lengths byte by
 * byte and compares them with the rules of the manual; and iovecs with the layout.
 * Pure, single-threaded.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/fragment.h"

#include "suite.h"

static const size_t gapless[] = {1,   2,    4,	  8,	16,   32,    64,    128,    256,
				 512, 1024, 2048, 4096, 8192, 12288, 40960, 1 << 20};
static const size_t gapped[] = {3,    7,    63,	  65,	100,  127,  129,  192,	1000, 1023,
				1025, 1448, 1460, 2047, 2049, 3000, 4032, 4033, 4095};
static const size_t sizes[] = {1,    2,	   63,	 64,   65,   1447, 1448,  1449,	 2896,
			       4095, 4096, 4097, 8191, 8192, 8193, 20000, 65536, 100001};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Walks the unit fragment by fragment; the rules are those of NC_alloc(3). */
static void check_layout(const struct nc_layout *layout, size_t size, size_t fraglen)
{
	size_t end = 0;

	expect(layout->size == size);
	expect(layout->fraglen == fraglen);
	expect(layout->fragments == (size + fraglen - 1) / fraglen);
	expect(layout->extent % NC_PAGE == 0);
	for (size_t i = 0; i < layout->fragments; i++) {
		size_t from = i * fraglen, run;
		size_t length = size - from < fraglen ? size - from : fraglen;
		size_t at = nc_layout_at(layout, from, &run);

		/* Fragments follow each other without overlap, in order. */
		expect(at >= end);
		expect(run >= length);
		if (nc_layout_gapless(layout)) {
			expect(at == from);
			expect(run == size - from);
		} else {
			expect(run == length);
			expect(at % NC_CACHE_LINE == 0);
			expect(at / NC_PAGE == (at + fraglen - 1) / NC_PAGE);
		}
		if (fraglen >= NC_CACHE_LINE)
			expect(at % NC_CACHE_LINE == 0);
		if (fraglen <= NC_PAGE)
			expect(at / NC_PAGE == (at + length - 1) / NC_PAGE);
		end = at + length;
	}
	expect(end <= layout->extent);
	/* There is no unnecessary page. */
	expect(end > layout->extent - NC_PAGE);
}

START_TEST(test_gapless)
{
	for (size_t f = 0; f < COUNT(gapless); f++)
		for (size_t s = 0; s < COUNT(sizes); s++) {
			struct nc_layout layout;

			ck_assert_int_eq(nc_layout_init(&layout, sizes[s], gapless[f]), 0);
			ck_assert(nc_layout_gapless(&layout));
			check_layout(&layout, sizes[s], gapless[f]);
		}
}
END_TEST

START_TEST(test_gapped)
{
	for (size_t f = 0; f < COUNT(gapped); f++)
		for (size_t s = 0; s < COUNT(sizes); s++) {
			struct nc_layout layout;

			ck_assert_int_eq(nc_layout_init(&layout, sizes[s], gapped[f]), 0);
			ck_assert(!nc_layout_gapless(&layout));
			check_layout(&layout, sizes[s], gapped[f]);
		}
}
END_TEST

START_TEST(test_default_is_a_page)
{
	struct nc_layout layout;

	ck_assert_int_eq(nc_layout_init(&layout, 10000, 0), 0);
	check_layout(&layout, 10000, NC_PAGE);
	ck_assert_uint_eq(layout.fragments, 3);
}
END_TEST

START_TEST(test_1448)
{
	struct nc_layout layout;
	size_t run;

	/* Strides of 1472, so two in a page. */
	ck_assert_int_eq(nc_layout_init(&layout, 5 * 1448, 1448), 0);
	ck_assert_uint_eq(layout.extent, 3 * NC_PAGE);
	ck_assert_uint_eq(nc_layout_at(&layout, 1448, &run), 1472);
	ck_assert_uint_eq(nc_layout_at(&layout, 2 * 1448, &run), 4096);
	ck_assert_uint_eq(nc_layout_at(&layout, 3 * 1448 + 10, &run), 4096 + 1472 + 10);
	ck_assert_uint_eq(run, 1438);
}
END_TEST

START_TEST(test_refused)
{
	static const size_t lengths[] = {4097,		 5000,	6144,	  8191,
					 8193,		 12289, SIZE_MAX, SIZE_MAX / 4096 * 4096,
					 (size_t)1 << 62};
	struct nc_layout layout;

	for (size_t i = 0; i < COUNT(lengths); i++)
		ck_assert_int_eq(nc_layout_init(&layout, 1000, lengths[i]), -EINVAL);
	ck_assert_int_eq(nc_layout_init(&layout, 0, 0), -EINVAL);
	ck_assert_int_eq(nc_layout_init(&layout, 0, 1448), -EINVAL);
	ck_assert_int_eq(nc_layout_init(&layout, SIZE_MAX, 0), -EINVAL);
	ck_assert_int_eq(nc_layout_init(&layout, SIZE_MAX - 4095, 1448), -EINVAL);
	ck_assert_int_eq(nc_layout_init(&layout, (size_t)1 << 63, 1), -EINVAL);
}
END_TEST

/* The largest size with the most wasteful length must not overflow anything. */
START_TEST(test_huge_sizes)
{
	struct nc_layout layout;
	size_t run;

	for (size_t f = 0; f < COUNT(gapped); f++) {
		size_t size = (size_t)NC_FRAGMENTS_MAX * gapped[f];

		ck_assert_int_eq(nc_layout_init(&layout, size + 1, gapped[f]), -EINVAL);
		ck_assert_int_eq(nc_layout_init(&layout, size, gapped[f]), 0);
		ck_assert_uint_ge(layout.extent, size);
		ck_assert_uint_lt(nc_layout_at(&layout, size - 1, &run), layout.extent);
		ck_assert_uint_eq(run, 1);
	}
}
END_TEST

/* Each byte of memory is numbered by the layout; the iovecs must collect the numbers in order. */
static void check_iovec(const struct nc_layout *layout, unsigned char *memory, size_t offset,
			size_t length, unsigned max)
{
	struct iovec iov[64];
	size_t done = 0;

	while (done < length) {
		size_t covered, sum = 0;
		unsigned count = nc_layout_iovec(layout, memory, offset + done, length - done, iov,
						 max, &covered);

		expect(count >= 1);
		expect(count <= max);
		expect(covered >= 1);
		expect(covered <= length - done);
		for (unsigned i = 0; i < count; i++) {
			const unsigned char *byte = iov[i].iov_base;

			expect(iov[i].iov_len >= 1);
			expect(byte >= memory);
			expect(byte + iov[i].iov_len <= memory + layout->extent);
			expect(pattern_match(byte, 5, offset + done + sum, iov[i].iov_len) ==
			       iov[i].iov_len);
			sum += iov[i].iov_len;
		}
		expect(sum == covered);
		/* Only a lack of iovecs may end it early. */
		expect(covered == length - done || count == max);
		done += covered;
	}
}

static void check_iovecs(size_t size, size_t fraglen, uint64_t *state)
{
	struct nc_layout layout;
	unsigned char *memory;

	ck_assert_int_eq(nc_layout_init(&layout, size, fraglen), 0);
	memory = must_alloc(layout.extent);
	memset(memory, 0, layout.extent);
	for (size_t i = 0; i < size; i++) {
		size_t run;

		memory[nc_layout_at(&layout, i, &run)] = pattern_at(5, i);
	}
	check_iovec(&layout, memory, 0, size, 64);
	check_iovec(&layout, memory, 0, size, 1);
	for (unsigned i = 0; i < 20; i++) {
		size_t offset = random_next(state) % size;
		size_t length = random_next(state) % (size - offset + 1);

		check_iovec(&layout, memory, offset, length, 1 + random_next(state) % 64);
	}
	free(memory);
}

START_TEST(test_iovecs)
{
	uint64_t state = 7;

	for (size_t s = 0; s < COUNT(sizes); s++) {
		for (size_t f = 0; f < COUNT(gapless); f++)
			check_iovecs(sizes[s], gapless[f], &state);
		for (size_t f = 0; f < COUNT(gapped); f++)
			check_iovecs(sizes[s], gapped[f], &state);
	}
}
END_TEST

START_TEST(test_empty_iovec)
{
	struct nc_layout layout;
	struct iovec iov[1];
	size_t covered = 99;

	ck_assert_int_eq(nc_layout_init(&layout, 100, 0), 0);
	ck_assert_uint_eq(nc_layout_iovec(&layout, iov, 100, 0, iov, 1, &covered), 0);
	ck_assert_uint_eq(covered, 0);
	ck_assert_uint_eq(nc_layout_iovec(&layout, iov, 0, 100, iov, 0, &covered), 0);
	ck_assert_uint_eq(covered, 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_gapless);
	tcase_add_test(tcase, test_gapped);
	tcase_add_test(tcase, test_default_is_a_page);
	tcase_add_test(tcase, test_1448);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_huge_sizes);
	tcase_add_test(tcase, test_iovecs);
	tcase_add_test(tcase, test_empty_iovec);
}

RUN_SUITE("fragment", fill)
