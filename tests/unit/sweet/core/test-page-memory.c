/* SPDX-License-Identifier: MIT */
/*
 * test-page-memory.c - unit tests of page-memory.h: when the page of one more request
 * fits into a program's memory, and which program is told.
 */
#include <stdbool.h>

#include "core/page-memory.h"

#include "suite.h"

#define MOST 1024u

START_TEST(fits_what_is_not_held)
{
	struct page_memory memory = {0};

	page_memory_init(&memory, MOST);
	/* The size of its pages is unknown. */
	ck_assert(page_memory_fits(&memory, 13));
	ck_assert(!page_memory_fits(&memory, 14));
	page_memory_hold(&memory, 100);
	/* 100 of 896 are held. */
	ck_assert(page_memory_fits(&memory, 6));
	ck_assert(!page_memory_fits(&memory, 7));
	page_memory_release(&memory, 100);
	ck_assert(page_memory_fits(&memory, 7));
	ck_assert(!page_memory_fits(&memory, 8));
}
END_TEST

/* A page of any size. */
START_TEST(idle_one_always_fits)
{
	struct page_memory memory = {.most = MOST};

	page_memory_hold(&memory, MOST);
	ck_assert(!page_memory_fits(&memory, 0));
	page_memory_release(&memory, MOST);
	ck_assert(page_memory_fits(&memory, 0));
	ck_assert(!page_memory_fits(&memory, 1));
}
END_TEST

START_TEST(usual_is_the_largest_of_late)
{
	struct page_memory memory = {.most = MOST};

	page_memory_hold(&memory, 800);
	page_memory_release(&memory, 800);
	ck_assert(!page_memory_fits(&memory, 1));
	for (unsigned i = 0; i < 100; i++)
		page_memory_hold(&memory, 0);
	ck_assert(page_memory_fits(&memory, 1000));
	page_memory_hold(&memory, 800);
	page_memory_release(&memory, 800);
	ck_assert(!page_memory_fits(&memory, 1));
}
END_TEST

START_TEST(notifies_once)
{
	struct page_memory memory = {.most = MOST};

	ck_assert(!page_memory_must_notify(&memory));
	memory.has_waiters = true;
	ck_assert(page_memory_has_waiters(&memory));
	ck_assert(page_memory_must_notify(&memory));
	ck_assert(!page_memory_must_notify(&memory));
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, fits_what_is_not_held);
	tcase_add_test(tcase, idle_one_always_fits);
	tcase_add_test(tcase, usual_is_the_largest_of_late);
	tcase_add_test(tcase, notifies_once);
}

RUN_SUITE("page-memory", fill)
