/* SPDX-License-Identifier: MIT */
/*
 * test-crc32c.c - unit tests of crc32c.c against a bit-wise CRC: all short lengths and
 * alignments, lengths at which the lanes change, sums of parts, updates; each with and
 * without instructions of the CPU. Pure, single-threaded.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"

#include "suite.h"

typedef uint32_t crc_function(uint32_t before, const void *data, size_t length);
typedef uint32_t add_function(uint32_t a, uint32_t b, uint32_t length_of_b);

static crc_function *const crcs[] = {nc_crc32c, nc_crc32c_plain};
static add_function *const adds[] = {nc_crc32c_add, nc_crc32c_add_plain};

/* Long division, bit by bit. */
static uint32_t reference(const unsigned char *data, size_t length)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < length; i++) {
		crc ^= data[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
	}
	return ~crc;
}

static unsigned char *random_bytes(size_t size, uint64_t seed)
{
	unsigned char *data = must_alloc(size);

	for (size_t i = 0; i < size; i++)
		data[i] = (unsigned char)random_next(&seed);
	return data;
}

/* The examples of RFC 3720, appendix B.4, and the usual check value. */
START_TEST(test_known)
{
	unsigned char data[32];

	for (unsigned which = 0; which < 2; which++) {
		memset(data, 0, sizeof(data));
		ck_assert_uint_eq(crcs[which](0, data, 32), 0x8a9136aa);
		memset(data, 0xff, sizeof(data));
		ck_assert_uint_eq(crcs[which](0, data, 32), 0x62a8ab43);
		for (unsigned i = 0; i < 32; i++)
			data[i] = (unsigned char)i;
		ck_assert_uint_eq(crcs[which](0, data, 32), 0x46dd794e);
		ck_assert_uint_eq(crcs[which](0, "123456789", 9), 0xe3069283);
		ck_assert_uint_eq(crcs[which](0, data, 0), 0);
		ck_assert_uint_eq(crcs[which](0x12345678, data, 0), 0x12345678);
	}
}
END_TEST

/* Each length ends at the very end of a heap block, for memory checkers. */
START_TEST(test_short)
{
	for (size_t length = 0; length <= 260; length++)
		for (size_t offset = 0; offset < 16; offset++) {
			unsigned char *data = random_bytes(offset + length, 31 + length);
			uint32_t crc = reference(data + offset, length);

			for (unsigned which = 0; which < 2; which++)
				ck_assert_uint_eq(crcs[which](0, data + offset, length), crc);
			free(data);
		}
}
END_TEST

START_TEST(test_lanes)
{
	static const size_t lengths[] = {192, 1008, 1200, 4080, 4096, 5088, 8160, 12432, 65536};
	unsigned char *data = random_bytes(66000, 32);

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (size_t length = lengths[i] - 9; length <= lengths[i] + 9; length++) {
			uint32_t crc = reference(data + length % 5, length);

			for (unsigned which = 0; which < 2; which++)
				ck_assert_uint_eq(crcs[which](0, data + length % 5, length), crc);
		}
	free(data);
}
END_TEST

/* Divided at every place: continued, and added. */
START_TEST(test_parts)
{
	unsigned char *data = random_bytes(700, 33);

	for (size_t length = 0; length <= 700; length += 35)
		for (size_t cut = 0; cut <= length; cut++) {
			uint32_t crc = reference(data, length);
			uint32_t operator_b = nc_crc32c_operator(length - cut);

			for (unsigned which = 0; which < 2; which++) {
				uint32_t a = crcs[which](0, data, cut);
				uint32_t b = crcs[which](0, data + cut, length - cut);

				ck_assert_uint_eq(crcs[which](a, data + cut, length - cut), crc);
				ck_assert_uint_eq(adds[which](a, b, operator_b), crc);
			}
		}
	free(data);
}
END_TEST

/* Operators of lengths beyond any memory: they multiply as lengths add. */
START_TEST(test_long_operators)
{
	uint64_t state = 34;

	ck_assert_uint_eq(nc_crc32c_operator(0), 0x80000000);
	for (unsigned i = 0; i < 2000; i++) {
		size_t a = random_next(&state) >> (1 + random_next(&state) % 63);
		size_t b = random_next(&state) >> (1 + random_next(&state) % 63);
		uint32_t product = nc_crc32c_add(nc_crc32c_operator(a), 0, nc_crc32c_operator(b));

		ck_assert_uint_eq(nc_crc32c_operator(a + b), product);
		ck_assert_uint_eq(
			nc_crc32c_add_plain(nc_crc32c_operator(a), 0, nc_crc32c_operator(b)),
			product);
	}
}
END_TEST

START_TEST(test_update)
{
	const size_t size = 301;
	unsigned char *data = random_bytes(size, 35);
	uint32_t crc = reference(data, size);
	uint64_t state = 36;

	for (unsigned round = 0; round < scaled(5000); round++) {
		size_t at = random_next(&state) % (size + 1);
		size_t length = random_next(&state) % (size - at + 1);
		uint32_t before = nc_crc32c(0, data + at, length);

		for (size_t i = 0; i < length; i++)
			data[at + i] = (unsigned char)random_next(&state);
		crc = nc_crc32c_update(crc, before, nc_crc32c(0, data + at, length),
				       nc_crc32c_operator(size - at - length));
		ck_assert_uint_eq(crc, reference(data, size));
	}
	free(data);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_known);
	tcase_add_test(tcase, test_short);
	tcase_add_test(tcase, test_lanes);
	tcase_add_test(tcase, test_parts);
	tcase_add_test(tcase, test_long_operators);
	tcase_add_test(tcase, test_update);
}

RUN_SUITE("crc32c", fill)
