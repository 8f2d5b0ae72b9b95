/* SPDX-License-Identifier: MIT */
/* test-names.c - unit tests of names.c: names that come, change and go, and the limits. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <nabc.h>

#include "cache/names.h"

#include "suite.h"

static struct nc_names names;
static size_t first_alive; /* units with lower ids have ended */
static unsigned asked;

static bool stands(void *context, size_t id)
{
	ck_assert_ptr_eq(context, &names);
	asked++;
	return id >= first_alive;
}

static void open_names(void)
{
	first_alive = 1;
	asked = 0;
	nc_names_init(&names, stands, &names);
}

/* 0: the name is free. */
static size_t unit_of(const char *name)
{
	size_t id = 0;
	int error = nc_names_find(&names, name, &id);

	ck_assert(error == (id ? 0 : -ENOENT));
	return id;
}

START_TEST(test_names)
{
	open_names();
	ck_assert_uint_eq(unit_of("a"), 0);
	ck_assert_int_eq(nc_names_remove(&names, "a", 0), -ENOENT);
	ck_assert_int_eq(nc_names_set(&names, "a", 1, true), 0);
	ck_assert_int_eq(nc_names_set(&names, "ab", 2, false), 0);
	ck_assert_uint_eq(unit_of("a"), 1);
	ck_assert_uint_eq(unit_of("ab"), 2);
	ck_assert_int_eq(nc_names_set(&names, "a", 3, true), -EEXIST);
	ck_assert_int_eq(nc_names_set(&names, "a", 1, true), 0);
	ck_assert_int_eq(nc_names_set(&names, "a", 3, false), 0);
	ck_assert_uint_eq(unit_of("a"), 3);
	ck_assert_int_eq(nc_names_remove(&names, "a", 1), -ENOENT);
	ck_assert_uint_eq(unit_of("a"), 3);
	ck_assert_int_eq(nc_names_remove(&names, "a", 3), 0);
	ck_assert_uint_eq(unit_of("a"), 0);
	ck_assert_int_eq(nc_names_remove(&names, "ab", 0), 0);
	ck_assert_uint_eq(names.count, 0);
	ck_assert_uint_eq(names.bytes, 0);
	nc_names_fini(&names);
}
END_TEST

/* The name of a unit that has ended is free. */
START_TEST(test_ended)
{
	open_names();
	ck_assert_int_eq(nc_names_set(&names, "a", 1, false), 0);
	ck_assert_int_eq(nc_names_set(&names, "b", 2, false), 0);
	first_alive = 3;
	ck_assert_int_eq(nc_names_set(&names, "a", 4, true), 0);
	ck_assert_uint_eq(unit_of("a"), 4);
	ck_assert_int_eq(nc_names_remove(&names, "b", 0), -ENOENT);
	ck_assert_uint_eq(unit_of("b"), 0);
	ck_assert_uint_eq(names.count, 1);
	nc_names_fini(&names);
}
END_TEST

static int set_number(unsigned number)
{
	char name[20];

	snprintf(name, sizeof(name), "%u", number);
	return nc_names_set(&names, name, number + 1, false);
}

/* Names of ended units do not pile up, and no call looks at many. */
START_TEST(test_piles)
{
	open_names();
	for (unsigned i = 0; i < 10000; i++) {
		first_alive = i;
		asked = 0;
		ck_assert_int_eq(set_number(i), 0);
		ck_assert_uint_le(asked, 16);
		ck_assert_uint_le(names.count, 20);
	}
	nc_names_fini(&names);
}
END_TEST

START_TEST(test_many)
{
	unsigned tries = 0;

	open_names();
	for (unsigned i = 0; i < NC_NAMES_MAX; i++)
		ck_assert_int_eq(set_number(i), 0);
	ck_assert_int_eq(set_number(NC_NAMES_MAX), -ENOSPC);
	/* Those that exist can change, and each one that goes gives its place away. */
	ck_assert_int_eq(nc_names_set(&names, "7", 1, false), 0);
	ck_assert_int_eq(nc_names_remove(&names, "100", 0), 0);
	ck_assert_int_eq(set_number(NC_NAMES_MAX), 0);
	ck_assert_int_eq(set_number(NC_NAMES_MAX + 1), -ENOSPC);
	/* So does the unit that ends: it is found after some calls. */
	first_alive = 2;
	while (set_number(NC_NAMES_MAX + 1) == -ENOSPC)
		ck_assert_uint_lt(++tries, 17);
	ck_assert_uint_eq(names.count, NC_NAMES_MAX);
	nc_names_fini(&names);
}
END_TEST

START_TEST(test_long)
{
	char name[NC_NAME_MAX + 1];
	unsigned count = 0;

	open_names();
	memset(name, 'x', NC_NAME_MAX);
	name[NC_NAME_MAX] = '\0';
	for (; count < NC_NAMES_BYTES / NC_NAME_MAX; count++) {
		snprintf(name, 10, "%09u", count);
		name[9] = 'x';
		ck_assert_int_eq(nc_names_set(&names, name, count + 1, false), 0);
	}
	ck_assert_int_eq(nc_names_set(&names, "more", 1, false), -ENOSPC);
	ck_assert_int_eq(nc_names_remove(&names, name, 0), 0);
	ck_assert_int_eq(nc_names_set(&names, "more", 1, false), 0);
	nc_names_fini(&names);
}
END_TEST

static void fill_suite(TCase *tcase)
{
	tcase_add_test(tcase, test_names);
	tcase_add_test(tcase, test_ended);
	tcase_add_test(tcase, test_piles);
	tcase_add_test(tcase, test_many);
	tcase_add_test(tcase, test_long);
}

RUN_SUITE("names", fill_suite)
