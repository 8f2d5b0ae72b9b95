/* SPDX-License-Identifier: MIT */
/* test-grant-marks.c - unit tests of grant.c: units without grants take no lock of those with. */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/id.h"
#include "cache/grant.h"

#include "grant-fixture.h"
#include "suite.h"

/*
 * Whether a call for this id takes the lock: a lock that its thread holds is not taken again,
 * but the call unlocks it.
 */
static bool locks(size_t id, bool known)
{
	bool made, unlocked;

	ck_assert_int_eq(pthread_mutex_lock(&grants.lock), 0);
	if (known)
		(void)nc_grants_known(&grants, id, NULL, &made);
	else
		nc_grants_drop(&grants, id);
	unlocked = pthread_mutex_trylock(&grants.lock) == 0;
	ck_assert_int_eq(pthread_mutex_unlock(&grants.lock), 0);
	return unlocked;
}

/* Grants of some units cost the responses of others nothing. */
START_TEST(test_others_do_not_lock)
{
	enum { RECORDS = 2500, OTHERS = 10000 };
	static struct nc_subject maker;
	pthread_mutexattr_t checks;
	unsigned locked[2] = {0};
	bool made;

	open_grants();
	pthread_mutexattr_init(&checks);
	pthread_mutexattr_settype(&checks, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_destroy(&grants.lock);
	pthread_mutex_init(&grants.lock, &checks);
	pthread_mutexattr_destroy(&checks);
	join(&maker, 3, 1000, (size_t)RECORDS * PAGE);
	for (unsigned i = 0; i < RECORDS; i++)
		ck_assert_int_eq(nc_grants_enter(&grants, nc_id(i % 2 ? 3 : 0, i, 1 + i % 5),
						 &maker, NULL, PAGE, PAGE),
				 0);
	for (unsigned i = 0; i < OTHERS; i++) {
		/* As responses come: few slots, ever new generations; or many slots. */
		locked[0] += locks(nc_id(3, i % 64, 10 + i / 64), i % 2);
		locked[1] += locks(nc_id(4, i, 1), i % 2);
	}
	ck_assert_uint_lt(locked[0], OTHERS / 5);
	ck_assert_uint_lt(locked[1], OTHERS / 5);
	/* Each one is found, and leaves nothing behind. */
	for (unsigned i = 0; i < RECORDS; i++) {
		size_t id = nc_id(i % 2 ? 3 : 0, i, 1 + i % 5);

		ck_assert(nc_grants_known(&grants, id, &maker, &made) && made);
		if (i % 2)
			nc_grants_drop(&grants, id);
	}
	for (unsigned i = 0; i < RECORDS; i++)
		ck_assert(nc_grants_known(&grants, nc_id(i % 2 ? 3 : 0, i, 1 + i % 5), NULL,
					  &made) == !(i % 2));
	for (unsigned i = 0; i < RECORDS; i += 2)
		nc_grants_drop(&grants, nc_id(0, i, 1 + i % 5));
	for (unsigned i = 0; i < OTHERS; i++)
		expect(!locks(nc_id(4, i, 1), i % 2));
	part(&maker);
	close_grants();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_others_do_not_lock);
}

RUN_SUITE("grant-marks", fill)
