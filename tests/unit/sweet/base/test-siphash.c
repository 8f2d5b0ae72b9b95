/* SPDX-License-Identifier: MIT */
/*
 * test-siphash.c - unit tests of siphash.c, against the values of its paper's
 * authors: key 00 01 .. 0f, data 00 01 02 and so on.
 */
#include <stdint.h>
#include <string.h>

#include "base/siphash.h"

#include "suite.h"

START_TEST(test_known)
{
	static const struct {
		size_t length;
		uint64_t hash;
	} cases[] = {
		{0, UINT64_C(0x726fdb47dd0e0e31)},  {1, UINT64_C(0x74f839c593dc67fd)},
		{7, UINT64_C(0xab0200f58b01d137)},  {8, UINT64_C(0x93f5f5799a932462)},
		{15, UINT64_C(0xa129ca6149be45e5)}, {63, UINT64_C(0x958a324ceb064572)},
	};
	uint8_t key[16], data[64];

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	memcpy(key, data, sizeof(key));
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_uint_eq(siphash(key, data, cases[i].length), cases[i].hash);
	key[15] ^= 1;
	ck_assert_uint_ne(siphash(key, data, 15), cases[4].hash);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_known);
}

RUN_SUITE("siphash", fill)
