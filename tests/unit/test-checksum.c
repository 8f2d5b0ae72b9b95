/* SPDX-License-Identifier: MIT */
/*
 * test-checksum.c - unit tests of checksum.c against a byte-wise sum: all
 * short lengths, many alignments, large random data, and sums of parts.
 * Pure, single-threaded.
 */
#include <checksum.h>

#include "suite.h"

/*
 * RFC 1071 with a pencil: bytes at even places count in one half of a word,
 * those at odd places in the other, and carries come round.
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

/* A sum of two parts, cut at every place, odd ones too. */
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

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_short);
	tcase_add_test(tcase, test_extremes);
	tcase_add_test(tcase, test_example_of_the_rfc);
	tcase_add_test(tcase, test_large);
	tcase_add_test(tcase, test_add);
	tcase_add_test(tcase, test_add_many);
}

RUN_SUITE("checksum", fill)
