/* SPDX-License-Identifier: MIT */
/*
 * test-id.c - unit tests of id.h: a cache id returns the parts of which it was made,
 * and they do not overlap; and what an epoch does to numbers.  Pure, single-threaded.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"

#include "suite.h"

START_TEST(test_widths)
{
	ck_assert_uint_eq(NC_ID_GENERATION_BITS + NC_ID_SLOT_BITS + NC_ID_MEMBER_BITS,
			  8 * sizeof(size_t));
	ck_assert_uint_eq(nc_id(NC_ID_MEMBERS_MAX - 1, NC_ID_SLOTS_MAX - 1, NC_ID_GENERATION_MAX),
			  SIZE_MAX);
	/* Generations begin at 1, so the very first id is not 0. */
	ck_assert_uint_eq(nc_id(0, 0, 1), 1);
}
END_TEST

START_TEST(test_corners)
{
	static const unsigned members[] = {0, 1, 2, NC_ID_MEMBERS_MAX / 2, NC_ID_MEMBERS_MAX - 1};
	static const unsigned slots[] = {0, 1, 1023, 1024, NC_ID_SLOTS_MAX - 1};
	static const unsigned generations[] = {1, 2, NC_ID_GENERATION_MAX - 1,
					       NC_ID_GENERATION_MAX};

	for (size_t m = 0; m < sizeof(members) / sizeof(members[0]); m++)
		for (size_t s = 0; s < sizeof(slots) / sizeof(slots[0]); s++)
			for (size_t g = 0; g < sizeof(generations) / sizeof(generations[0]); g++) {
				size_t id = nc_id(members[m], slots[s], generations[g]);

				ck_assert_uint_ne(id, 0);
				ck_assert_uint_eq(nc_id_member(id), members[m]);
				ck_assert_uint_eq(nc_id_slot(id), slots[s]);
				ck_assert_uint_eq(nc_id_generation(id), generations[g]);
			}
}
END_TEST

/* Every number can be divided into parts, which make the same number again. */
START_TEST(test_every_number_is_an_id)
{
	uint64_t state = 1;

	for (unsigned i = 0; i < 100000; i++) {
		size_t id = random_next(&state);

		expect(nc_id_member(id) < NC_ID_MEMBERS_MAX);
		expect(nc_id_slot(id) < NC_ID_SLOTS_MAX);
		expect(nc_id_generation(id) <= NC_ID_GENERATION_MAX);
		expect(nc_id(nc_id_member(id), nc_id_slot(id), nc_id_generation(id)) == id);
	}
}
END_TEST

/* Whatever the epoch: numbers come back, are those of one member, and ids are no errors. */
START_TEST(test_epochs)
{
	uint64_t state = 2;

	for (unsigned i = 0; i < 200; i++) {
		uint64_t random = i ? random_next(&state) : UINT64_MAX;
		struct nc_id_epoch epoch = nc_id_epoch(random);

		ck_assert_uint_ge(epoch.generation, 1);
		ck_assert_uint_lt(epoch.generation, NC_ID_GENERATION_MAX / 4 + 2);
		ck_assert_uint_lt(epoch.slots, NC_ID_SLOTS_MAX);
		ck_assert_uint_eq(nc_id_number(&epoch, 0), 0);
		for (unsigned number = 1; number < NC_ID_MEMBERS_MAX; number++) {
			unsigned named = nc_id_number(&epoch, number);

			expect(named > 0 && named < NC_ID_MEMBERS_MAX);
			expect(nc_id_number(&epoch, named) == number);
			expect((named < NC_ID_MEMBERS_MAX / 2) == (number < NC_ID_MEMBERS_MAX / 2));
		}
	}
	ck_assert_uint_eq(nc_id_number(&(struct nc_id_epoch){0}, 7), 7);
	/* Each part of the number is a part of the epoch. */
	for (unsigned bit = 0; bit < 62; bit++) {
		struct nc_id_epoch one = nc_id_epoch(UINT64_C(1) << bit), none = nc_id_epoch(0);

		if (bit != NC_ID_MEMBER_BITS - 1)
			ck_assert(one.members != none.members || one.slots != none.slots ||
				  one.generation != none.generation);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_widths);
	tcase_add_test(tcase, test_corners);
	tcase_add_test(tcase, test_every_number_is_an_id);
	tcase_add_test(tcase, test_epochs);
}

RUN_SUITE("id", fill)
