/* SPDX-License-Identifier: MIT */
/*
 * test-evictions.c - unit tests of evictions.c: the order of the queue, what is lost when it
 * is full, and which callback is called.
 */
#include <errno.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/evictions.h"

#include "suite.h"

static struct nc_evictions evictions;
static size_t next; /* the id that must come */
static unsigned losses;

/* Ids come in order, and each has the size and the reason that it was added with. */
static void note(void *context, size_t id, size_t size, enum NC_eviction why)
{
	expect(context == &next);
	if (why == NC_EVICTION_LOST) {
		expect(id == 0 && size == 0);
		losses++;
		return;
	}
	expect(id == next);
	expect(size == 10 * id);
	expect(why == (id % 2 ? NC_EVICTION_MEMORY : NC_EVICTION_LIFETIME));
	next++;
}

static void other(void *context, size_t id, size_t size, enum NC_eviction why)
{
	(void)id;
	(void)size;
	(void)why;
	++*(unsigned *)context;
}

static void add(size_t from, size_t end)
{
	for (size_t id = from; id < end; id++)
		nc_evictions_add(&evictions, id, 10 * id,
				 id % 2 ? NC_EVICTION_MEMORY : NC_EVICTION_LIFETIME);
}

static unsigned report_all(void)
{
	unsigned turns = 0;

	while (nc_evictions_report(&evictions))
		turns++;
	return turns;
}

START_TEST(test_order)
{
	nc_evictions_init(&evictions);
	/* Without a callback nothing is kept. */
	add(1, 100);
	ck_assert(!nc_evictions_report(&evictions));
	ck_assert_int_eq(nc_evictions_set(&evictions, note, &next), 0);
	ck_assert(!nc_evictions_report(&evictions));
	/* Around the end of the ring, in turns that are bounded. */
	next = 1;
	for (size_t from = 1; from < 3 * NC_EVICTIONS_MAX; from += 1000) {
		add(from, from + 1000);
		ck_assert_uint_ge(report_all(), 2);
		ck_assert_uint_eq(next, from + 1000);
	}
	ck_assert_uint_eq(losses, 0);
	nc_evictions_fini(&evictions);
}
END_TEST

/* What does not fit is lost, which is said once, after what fitted. */
START_TEST(test_full)
{
	nc_evictions_init(&evictions);
	ck_assert_int_eq(nc_evictions_set(&evictions, note, &next), 0);
	next = 1;
	add(1, NC_EVICTIONS_MAX + 1);
	report_all();
	ck_assert_uint_eq(next, NC_EVICTIONS_MAX + 1);
	ck_assert_uint_eq(losses, 0);
	next = 1;
	add(1, NC_EVICTIONS_MAX + 100);
	ck_assert(nc_evictions_report(&evictions));
	ck_assert_uint_gt(next, 1);
	ck_assert_uint_eq(losses, 0);
	/* There is a place again, but it would not be in order. */
	add(1000000, 1000001);
	report_all();
	ck_assert_uint_eq(next, NC_EVICTIONS_MAX + 1);
	ck_assert_uint_eq(losses, 1);
	next = 1;
	add(1, 10);
	report_all();
	ck_assert_uint_eq(next, 10);
	ck_assert_uint_eq(losses, 1);
	nc_evictions_fini(&evictions);
}
END_TEST

/* Another callback gets what waits; after NULL it is forgotten. */
START_TEST(test_replaced)
{
	unsigned count = 0;

	nc_evictions_init(&evictions);
	ck_assert_int_eq(nc_evictions_set(&evictions, note, &next), 0);
	add(1, 11);
	ck_assert_int_eq(nc_evictions_set(&evictions, other, &count), 0);
	report_all();
	ck_assert_uint_eq(count, 10);
	add(1, 11);
	ck_assert_int_eq(nc_evictions_set(&evictions, NULL, NULL), 0);
	ck_assert(!nc_evictions_report(&evictions));
	add(1, 11);
	ck_assert_int_eq(nc_evictions_set(&evictions, other, &count), 0);
	report_all();
	ck_assert_uint_eq(count, 10);
	/* Fini with units that wait. */
	add(1, 11);
	nc_evictions_fini(&evictions);
}
END_TEST

static void replace(void *context, size_t id, size_t size, enum NC_eviction why)
{
	(void)id;
	(void)size;
	(void)why;
	*(int *)context = nc_evictions_set(&evictions, NULL, NULL);
	ck_assert(!nc_evictions_report(&evictions));
}

/* The callback cannot wait for its own end. */
START_TEST(test_by_itself)
{
	int result = 0;

	nc_evictions_init(&evictions);
	ck_assert_int_eq(nc_evictions_set(&evictions, replace, &result), 0);
	add(1, 2);
	ck_assert(!nc_evictions_report(&evictions));
	ck_assert_int_eq(result, -EDEADLK);
	ck_assert_int_eq(nc_evictions_set(&evictions, NULL, NULL), 0);
	nc_evictions_fini(&evictions);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_order);
	tcase_add_test(tcase, test_full);
	tcase_add_test(tcase, test_replaced);
	tcase_add_test(tcase, test_by_itself);
}

RUN_SUITE("evictions", fill)
