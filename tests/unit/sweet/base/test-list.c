/* SPDX-License-Identifier: MIT */
/*
 * test-list.c - unit tests of list.h: both ends, removal from anywhere, also within a loop; and many
 * changes at random against a plain array.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"

#include "suite.h"

#define ITEMS 24

/* The node is not the first member: what the macros return is not the node. */
struct item {
	unsigned number;
	struct list_node node;
	struct list_node other;
};

static struct list list, second;
static struct item items[ITEMS];

/* Asserts that the list has the items with these numbers, "" for none, from both ends. */
static void expect_order(const struct list *which, const char *numbers)
{
	size_t count = strlen(numbers), i = 0;
	const struct item *at;

	ck_assert(list_is_empty(which) == (count == 0));
	list_each (const struct item, item, which, node) {
		ck_assert_uint_lt(i, count);
		ck_assert_uint_eq(item->number, (unsigned)(numbers[i++] - 'a'));
	}
	ck_assert_uint_eq(i, count);
	for (at = list_last(which, struct item, node); at; at = list_previous(which, at, node)) {
		ck_assert_uint_gt(i, 0);
		ck_assert_uint_eq(at->number, (unsigned)(numbers[--i] - 'a'));
	}
	ck_assert_uint_eq(i, 0);
}

static void fill_list(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		list_append(&list, &items[i].node);
}

START_TEST(test_zeros)
{
	expect_order(&list, "");
	ck_assert_ptr_null(list_first(&list, struct item, node));
	ck_assert_ptr_null(list_last(&list, struct item, node));
	ck_assert_ptr_null(list_take(&list, struct item, node));
	ck_assert(!list_is_linked(&items[0].node));
	list_remove(&items[0].node);
	ck_assert(!list_is_linked(&items[0].node));
	expect_order(&list, "");
}
END_TEST

START_TEST(test_ends)
{
	list_append(&list, &items[1].node);
	list_append(&list, &items[2].node);
	list_prepend(&list, &items[0].node);
	list_prepend(&second, &items[3].node);
	list_append(&second, &items[4].node);
	expect_order(&list, "abc");
	expect_order(&second, "de");
	ck_assert_ptr_eq(list_first(&list, struct item, node), &items[0]);
	ck_assert_ptr_eq(list_last(&list, struct item, node), &items[2]);
	ck_assert_ptr_eq(list_next(&list, &items[1], node), &items[2]);
	ck_assert_ptr_null(list_next(&list, &items[2], node));
	ck_assert_ptr_eq(list_previous(&list, &items[1], node), &items[0]);
	ck_assert_ptr_null(list_previous(&list, &items[0], node));
}
END_TEST

START_TEST(test_insert)
{
	fill_list(2);
	list_insert_after(&items[0].node, &items[2].node);
	list_insert_after(&items[1].node, &items[3].node);
	expect_order(&list, "acbd");
}
END_TEST

START_TEST(test_remove)
{
	fill_list(5);
	list_remove(&items[2].node);
	expect_order(&list, "abde");
	list_remove(&items[2].node);
	expect_order(&list, "abde");
	list_remove(&items[0].node);
	list_remove(&items[4].node);
	expect_order(&list, "bd");
	ck_assert(!list_is_linked(&items[4].node));
	ck_assert(list_is_linked(&items[3].node));
	list_append(&second, &items[4].node);
	list_remove(&items[1].node);
	list_remove(&items[3].node);
	expect_order(&list, "");
	expect_order(&second, "e");
	/* A list that has become empty is used again. */
	list_append(&list, &items[1].node);
	expect_order(&list, "b");
}
END_TEST

START_TEST(test_take)
{
	fill_list(3);
	ck_assert_ptr_eq(list_take(&list, struct item, node), &items[0]);
	ck_assert(!list_is_linked(&items[0].node));
	list_append(&list, &items[0].node);
	ck_assert_ptr_eq(list_take(&list, struct item, node), &items[1]);
	ck_assert_ptr_eq(list_take(&list, struct item, node), &items[2]);
	ck_assert_ptr_eq(list_take(&list, struct item, node), &items[0]);
	ck_assert_ptr_null(list_take(&list, struct item, node));
	expect_order(&list, "");
}
END_TEST

START_TEST(test_move)
{
	static const char *const orders[] = {"", "a", "ab", "abc"};

	for (unsigned count = 0; count < 4; count++) {
		memset(&second, 0xff, sizeof(second));
		fill_list(count);
		list_move(&second, &list);
		expect_order(&list, "");
		expect_order(&second, orders[count]);
		/* Both are in use afterwards. */
		list_append(&list, &items[8].node);
		list_append(&second, &items[9].node);
		list_remove(&items[0].node);
		expect_order(&list, "i");
		while (list_take(&second, struct item, node))
			;
		list_remove(&items[8].node);
		expect_order(&second, "");
	}
}
END_TEST

/* One struct is in two lists, by two members. */
START_TEST(test_two_nodes)
{
	fill_list(3);
	for (unsigned i = 0; i < 3; i++)
		list_prepend(&second, &items[i].other);
	list_remove(&items[1].node);
	expect_order(&list, "ac");
	ck_assert_ptr_eq(list_first(&second, struct item, other), &items[2]);
	ck_assert_ptr_eq(list_next(&second, &items[2], other), &items[1]);
	ck_assert_ptr_eq(list_last(&second, struct item, other), &items[0]);
}
END_TEST

/* The loop does not look at a struct that its body has removed and freed. */
START_TEST(test_free_in_loop)
{
	unsigned count = 0;

	for (unsigned i = 0; i < ITEMS; i++) {
		struct item *item = calloc(1, sizeof(*item));

		ck_assert_ptr_nonnull(item);
		item->number = i;
		list_append(&list, &item->node);
	}
	list_each (struct item, item, &list, node) {
		ck_assert_uint_eq(item->number, count++);
		if (item->number % 3 == 1)
			continue;
		list_remove(&item->node);
		memset(item, 0xff, sizeof(*item));
		free(item);
	}
	ck_assert_uint_eq(count, ITEMS);
	expect_order(&list, "behknqtw");
	list_each (struct item, item, &list, node)
		free(item);
}
END_TEST

/* What enters behind the current one while it is the last is not reached. */
START_TEST(test_move_in_loop)
{
	unsigned count = 0;

	fill_list(4);
	list_each (struct item, item, &list, node) {
		count++;
		list_remove(&item->node);
		list_append(&second, &item->node);
		if (item->number == 3)
			list_append(&list, &items[5].node);
	}
	ck_assert_uint_eq(count, 4);
	expect_order(&second, "abcd");
	expect_order(&list, "f");
}
END_TEST

static void remove_from(char *numbers, unsigned number)
{
	char *at = strchr(numbers, (int)('a' + number));

	if (at)
		memmove(at, at + 1, strlen(at + 1) + 1);
}

static void insert_at(char *numbers, size_t place, unsigned number)
{
	memmove(numbers + place + 1, numbers + place, strlen(numbers + place) + 1);
	numbers[place] = (char)('a' + number);
}

START_TEST(test_random)
{
	char numbers[ITEMS + 1] = "";
	uint64_t state = 7;

	for (unsigned round = 0; round < 20000; round++) {
		uint64_t random = random_next(&state);
		unsigned number = (unsigned)(random >> 8) % ITEMS, what = (unsigned)random % 5;
		struct item *item = &items[number];
		bool linked = list_is_linked(&item->node);

		ck_assert(linked == (strchr(numbers, (int)('a' + number)) != NULL));
		if (what == 0 || linked) {
			list_remove(&item->node);
			remove_from(numbers, number);
		} else if (what == 1 && *numbers) {
			size_t place = (random >> 32) % strlen(numbers);

			list_insert_after(&items[numbers[place] - 'a'].node, &item->node);
			insert_at(numbers, place + 1, number);
		} else if (what == 2) {
			list_prepend(&list, &item->node);
			insert_at(numbers, 0, number);
		} else if (what == 3) {
			list_append(&list, &item->node);
			insert_at(numbers, strlen(numbers), number);
		} else if (*numbers) {
			ck_assert_uint_eq(list_take(&list, struct item, node)->number,
					  (unsigned)(numbers[0] - 'a'));
			remove_from(numbers, (unsigned)(numbers[0] - 'a'));
		}
		expect_order(&list, numbers);
	}
}
END_TEST

static void set_up(void)
{
	memset(&list, 0, sizeof(list));
	memset(&second, 0, sizeof(second));
	memset(items, 0, sizeof(items));
	for (unsigned i = 0; i < ITEMS; i++)
		items[i].number = i;
}

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, NULL);
	tcase_add_test(tcase, test_zeros);
	tcase_add_test(tcase, test_ends);
	tcase_add_test(tcase, test_insert);
	tcase_add_test(tcase, test_remove);
	tcase_add_test(tcase, test_take);
	tcase_add_test(tcase, test_move);
	tcase_add_test(tcase, test_two_nodes);
	tcase_add_test(tcase, test_free_in_loop);
	tcase_add_test(tcase, test_move_in_loop);
	tcase_add_test(tcase, test_random);
}

RUN_SUITE("list", fill)
