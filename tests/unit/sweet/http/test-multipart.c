/* SPDX-License-Identifier: MIT */
/*
 * test-multipart.c - unit tests of multipart.c: the text between ranges; the announced
 * length equals the length of the sent bytes.
 */
#include <stdint.h>
#include <string.h>

#include "base/slice.h"
#include "http/multipart.h"
#include "http/range.h"

#include "suite.h"

static const unsigned char zeros[MULTIPART_RANDOM];
#define A24 "AAAAAAAAAAAAAAAAAAAAAAAA"

START_TEST(test_text)
{
	static const char *const expected[] = {
		"--" A24 "\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/1000\r\n\r\n",
		"\r\n--" A24
		"\r\nContent-Type: text/plain\r\nContent-Range: bytes 998-999/1000\r\n\r\n",
		"\r\n--" A24 "--\r\n",
	};
	struct multipart multipart;
	struct range_set set = {.count = 2, .ranges = {{0, 2}, {998, 2}}};
	uint64_t length = 4;

	multipart_init(&multipart, (struct slice){"text/plain", 10}, 1000, zeros);
	for (unsigned i = 0; i < 3; i++) {
		char text[MULTIPART_PART_MAX];

		ck_assert_uint_eq(multipart_text(&multipart, &set, i, text), strlen(expected[i]));
		ck_assert_str_eq(text, expected[i]);
		length += strlen(expected[i]);
	}
	ck_assert_uint_eq(multipart_length(&multipart, &set), length);
}
END_TEST

START_TEST(test_content_range)
{
	char text[MULTIPART_RANGE_MAX];
	size_t length;

	length = multipart_content_range((struct range){9, 1}, 10, text);
	ck_assert_str_eq(text, "bytes 9-9/10");
	ck_assert_uint_eq(length, strlen(text));
	length = multipart_content_range((struct range){UINT64_MAX - 5, 5}, UINT64_MAX, text);
	ck_assert_str_eq(text, "bytes 18446744073709551610-18446744073709551614"
			       "/18446744073709551615");
	ck_assert_uint_eq(length, strlen(text));
}
END_TEST

/* Maximum lengths: nothing is cut off, or it is cut off everywhere alike. */
START_TEST(test_largest)
{
	char type[4096], text[MULTIPART_PART_MAX];
	struct multipart multipart;
	struct range_set set = {.count = RANGES_MAX};

	memset(type, 't', sizeof(type));
	multipart_init(&multipart, (struct slice){type, sizeof(type)}, UINT64_MAX, zeros);
	for (unsigned i = 0; i < RANGES_MAX; i++)
		set.ranges[i] = (struct range){UINT64_MAX - 100 + 2 * i, 1};
	for (unsigned i = 0; i < RANGES_MAX; i++) {
		size_t length = multipart_text(&multipart, &set, i, text);

		ck_assert_uint_lt(length, MULTIPART_PART_MAX);
		ck_assert_str_eq(text + length - 4, "\r\n\r\n");
		ck_assert_uint_eq(strspn(strstr(text, "Type: ") + 6, "t"), 128);
	}
}
END_TEST

/* Each random bit affects the boundary, whose characters are all valid. */
START_TEST(test_boundary)
{
	struct multipart first, other;
	unsigned char random[MULTIPART_RANDOM];
	uint64_t state = 4711;

	for (unsigned round = 0; round < 100; round++) {
		for (unsigned i = 0; i < MULTIPART_RANDOM; i++)
			random[i] = (unsigned char)random_next(&state);
		multipart_init(&first, (struct slice){"", 0}, 1, random);
		for (unsigned i = 0; i < MULTIPART_BOUNDARY; i++)
			expect(first.boundary[i] && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ"
							   "abcdefghijklmnopqrstuvwxyz"
							   "0123456789-_",
							   first.boundary[i]));
		for (unsigned bit = 0; bit < MULTIPART_RANDOM * 8; bit++) {
			random[bit / 8] ^= (unsigned char)(1u << bit % 8);
			multipart_init(&other, (struct slice){"", 0}, 1, random);
			random[bit / 8] ^= (unsigned char)(1u << bit % 8);
			expect(memcmp(first.boundary, other.boundary, MULTIPART_BOUNDARY) != 0);
		}
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_text);
	tcase_add_test(tcase, test_content_range);
	tcase_add_test(tcase, test_largest);
	tcase_add_test(tcase, test_boundary);
}

RUN_SUITE("multipart", fill)
