/* SPDX-License-Identifier: MIT */
/*
 * test-checksum.c - unit tests of checksum.c against a byte-wise sum: all
 * short lengths, many alignments, large random data, and sums of parts.
 * Pure, single-threaded.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"

#include "suite.h"

/*
 * RFC 1071 by hand: bytes at even places count in one half of a word, those at odd
 * places in the other, and carries wrap around.
 */
static uint16_t reference(const unsigned char *data, size_t length)
{
	const uint16_t one = 1;
	bool little = *(const unsigned char *)&one == 1;
	uint32_t sum = 0;

	for (size_t i = 0; i < length; i++) {
		sum += (uint32_t)data[i] << ((i % 2 == 0) == little ? 0 : 8);
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
	}
	return (uint16_t)sum;
}

/* Each length is summed at the very end of a heap block, for memory checkers. */
START_TEST(test_short)
{
	uint64_t state = 21;

	for (size_t length = 0; length <= 300; length++)
		for (size_t offset = 0; offset < 40; offset++) {
			unsigned char *data = must_alloc(offset + length);

			for (size_t i = 0; i < offset + length; i++)
				data[i] = (unsigned char)random_next(&state);
			ck_assert_uint_eq(nc_checksum(data + offset, length),
					  reference(data + offset, length));
			ck_assert_uint_eq(nc_checksum_plain(data + offset, length),
					  reference(data + offset, length));
			free(data);
		}
}
END_TEST

START_TEST(test_extremes)
{
	unsigned char data[400];

	for (size_t length = 0; length <= sizeof(data); length++) {
		memset(data, 0xff, sizeof(data));
		ck_assert_uint_eq(nc_checksum(data, length), reference(data, length));
		memset(data, 0, sizeof(data));
		ck_assert_uint_eq(nc_checksum(data, length), 0);
		if (length) {
			data[length - 1] = 1;
			ck_assert_uint_eq(nc_checksum(data, length), reference(data, length));
			ck_assert_uint_ne(nc_checksum(data, length), 0);
		}
	}
	ck_assert_uint_eq(nc_checksum(NULL, 0), 0);
}
END_TEST

/* RFC 1071, section 3: 0001 f203 f4f5 f6f7 sums to ddf2. */
START_TEST(test_example_of_the_rfc)
{
	static const unsigned char data[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};

	ck_assert_uint_eq(ntohs(nc_checksum(data, sizeof(data))), 0xddf2);
}
END_TEST

START_TEST(test_large)
{
	size_t size = (size_t)scaled(3 << 20) + 4096;
	unsigned char *data = must_alloc(size);
	uint64_t state = 22;

	for (size_t i = 0; i < size; i++)
		data[i] = (unsigned char)random_next(&state);
	for (unsigned i = 0; i < 8; i++) {
		size_t offset = random_next(&state) % 4096;
		size_t length = size - offset - random_next(&state) % 4096 % (size - offset);

		ck_assert_uint_eq(nc_checksum(data + offset, length),
				  reference(data + offset, length));
	}
	memset(data, 0xff, size);
	ck_assert_uint_eq(nc_checksum(data, size), reference(data, size));
	free(data);
}
END_TEST

/* A sum of two parts, divided at every place, also odd ones. */
START_TEST(test_add)
{
	unsigned char data[300];
	uint64_t state = 23;

	for (unsigned round = 0; round < 4; round++) {
		for (size_t i = 0; i < sizeof(data); i++)
			data[i] = round == 3 ? 0xff : (unsigned char)random_next(&state);
		for (size_t length = 0; length <= sizeof(data); length += 1 + round * 13)
			for (size_t cut = 0; cut <= length; cut++) {
				uint16_t a = nc_checksum(data, cut);
				uint16_t b = nc_checksum(data + cut, length - cut);

				ck_assert_uint_eq(nc_checksum_add(a, b, cut % 2),
						  reference(data, length));
			}
	}
}
END_TEST

START_TEST(test_add_many)
{
	unsigned char data[5000];
	uint64_t state = 24;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)random_next(&state);
	for (unsigned round = 0; round < 200; round++) {
		size_t at = 0;
		uint16_t sum = 0;

		while (at < sizeof(data)) {
			size_t length = random_next(&state) % 700;

			if (length > sizeof(data) - at)
				length = sizeof(data) - at;
			sum = nc_checksum_add(sum, nc_checksum(data + at, length), at % 2);
			at += length;
		}
		ck_assert_uint_eq(sum, reference(data, sizeof(data)));
	}
}
END_TEST

/* Around the lengths at which the work is divided, with the largest possible sums. */
START_TEST(test_long_runs)
{
	const size_t run = 64 << 10, size = 5 * run;
	unsigned char *data = must_alloc(size);

	memset(data, 0xff, size);
	data[0] = 0xfe;
	for (size_t runs = 1; runs < 5; runs++)
		for (size_t length = runs * run - 40; length <= runs * run + 40; length++) {
			uint16_t sum = reference(data, length);

			ck_assert_uint_eq(nc_checksum(data, length), sum);
			ck_assert_uint_eq(nc_checksum_plain(data, length), sum);
		}
	memset(data, 0, size);
	ck_assert_uint_eq(nc_checksum(data, size), 0);
	ck_assert_uint_eq(nc_checksum_plain(data, size), 0);
	free(data);
}
END_TEST

/* Consecutive parts of the same length, which may be odd. */
START_TEST(test_add_parts)
{
	unsigned char data[3000];
	uint16_t parts[40];
	uint64_t state = 25;

	for (unsigned round = 0; round < 3; round++)
		for (size_t length = 1; length <= 75; length++) {
			for (size_t i = 0; i < sizeof(data); i++)
				data[i] = round == 0   ? 0
					  : round == 1 ? 0xff
						       : (unsigned char)random_next(&state);
			for (size_t count = 0; count <= 40; count++) {
				if (count < 40)
					parts[count] = nc_checksum(data + count * length, length);
				ck_assert_uint_eq(
					nc_checksum_add_many(parts, count, (int)(length % 2)),
					reference(data, count * length));
			}
		}
}
END_TEST

/* Updates any part: the sum equals that of the new data, except for the form of zero. */
START_TEST(test_update)
{
	unsigned char data[301];
	uint64_t state = 26;
	uint16_t sum;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)random_next(&state);
	sum = nc_checksum(data, sizeof(data));
	for (unsigned round = 0; round < scaled(20000); round++) {
		size_t at = random_next(&state) % (sizeof(data) + 1);
		size_t length = random_next(&state) % (sizeof(data) - at + 1);
		uint16_t before = nc_checksum(data + at, length), expected;

		for (size_t i = 0; i < length; i++)
			data[at + i] = round % 3 ? (unsigned char)random_next(&state) : 0;
		sum = nc_checksum_update(sum, before, nc_checksum(data + at, length), at % 2);
		expected = reference(data, sizeof(data));
		ck_assert(sum == expected || (sum == 0xffff && expected == 0));
		sum = expected;
	}
	/* All zero, and a word that is zero in its other form. */
	memset(data, 0, sizeof(data));
	memset(data, 0x12, 2);
	sum = nc_checksum(data, sizeof(data));
	ck_assert_uint_eq(nc_checksum_update(sum, sum, 0, 0), 0xffff);
	ck_assert_uint_eq(nc_checksum_update(0, 0, 0x1212, 0), 0x1212);
}
END_TEST

/* The examples of RFC 1624, section 4: field 0xdd2f, a word 0x5555 becomes 0x3285. */
START_TEST(test_update_of_the_rfc)
{
	uint16_t before = 0x5555, after = 0x3285, sum = (uint16_t)~0xdd2f;

	ck_assert_uint_eq((uint16_t)~nc_checksum_update(sum, before, after, 0), 0x0000);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_short);
	tcase_add_test(tcase, test_extremes);
	tcase_add_test(tcase, test_example_of_the_rfc);
	tcase_add_test(tcase, test_large);
	tcase_add_test(tcase, test_add);
	tcase_add_test(tcase, test_add_many);
	tcase_add_test(tcase, test_long_runs);
	tcase_add_test(tcase, test_add_parts);
	tcase_add_test(tcase, test_update);
	tcase_add_test(tcase, test_update_of_the_rfc);
}

RUN_SUITE("checksum", fill)
