/* SPDX-License-Identifier: MIT */
/*
 * test-replacement.c - unit tests of replacement.c: the order of SIEVE by
 * hand, and random steps against a model on an array.  Single-threaded.
 */
#include <replacement.h>

#include "suite.h"

#define ENTRIES 64

struct thing {
	struct nc_replaceable order; /* first: a victim is its thing */
	int number;
	bool in, pinned;
};

static struct thing things[ENTRIES];

static bool may_go(struct nc_replaceable *entry)
{
	return !((struct thing *)entry)->pinned;
}

static int victim(struct nc_replacement *order)
{
	struct nc_replaceable *entry = nc_replacement_victim(order, may_go);

	return entry ? ((struct thing *)entry)->number : -1;
}

static void add(struct nc_replacement *order, int count)
{
	memset(things, 0, sizeof(things));
	for (int i = 0; i < count; i++) {
		things[i].number = i;
		nc_replacement_add(order, &things[i].order);
	}
}

static void evict(struct nc_replacement *order, int expected)
{
	ck_assert_int_eq(victim(order), expected);
	nc_replacement_remove(order, &things[expected].order);
}

START_TEST(test_empty)
{
	struct nc_replacement order = {0};

	ck_assert_int_eq(victim(&order), -1);
	add(&order, 1);
	nc_replacement_remove(&order, &things[0].order);
	ck_assert_int_eq(victim(&order), -1);
	ck_assert_ptr_null(order.newest);
	ck_assert_ptr_null(order.oldest);
	ck_assert_ptr_null(order.hand);
}
END_TEST

START_TEST(test_oldest_first)
{
	struct nc_replacement order = {0};

	add(&order, 5);
	for (int i = 0; i < 5; i++)
		evict(&order, i);
	ck_assert_int_eq(victim(&order), -1);
}
END_TEST

START_TEST(test_used_are_spared_once)
{
	struct nc_replacement order = {0};

	add(&order, 5);
	nc_replacement_use(&things[0].order);
	nc_replacement_use(&things[2].order);
	evict(&order, 1);
	evict(&order, 3);
	/* The hand goes on, it does not begin again: 4 before 0. */
	evict(&order, 4);
	evict(&order, 0);
	evict(&order, 2);
}
END_TEST

START_TEST(test_all_used)
{
	struct nc_replacement order = {0};

	add(&order, 4);
	for (int i = 0; i < 4; i++)
		nc_replacement_use(&things[i].order);
	/* A round to clear the marks, then the oldest. */
	evict(&order, 0);
	evict(&order, 1);
}
END_TEST

START_TEST(test_pinned)
{
	struct nc_replacement order = {0};

	add(&order, 4);
	for (int i = 0; i < 4; i++)
		things[i].pinned = true;
	ck_assert_int_eq(victim(&order), -1);
	things[2].pinned = false;
	nc_replacement_use(&things[2].order);
	/* The only one that may go does, used or not, wherever the hand is. */
	evict(&order, 2);
	ck_assert_int_eq(victim(&order), -1);
	things[0].pinned = false;
	evict(&order, 0);
}
END_TEST

/* The entry under the hand leaves by itself: the hand steps on. */
START_TEST(test_remove_under_hand)
{
	struct nc_replacement order = {0};

	add(&order, 5);
	evict(&order, 0);
	ck_assert_ptr_eq(order.hand, &things[1].order);
	nc_replacement_remove(&order, &things[1].order);
	ck_assert_ptr_eq(order.hand, &things[2].order);
	evict(&order, 2);
	nc_replacement_remove(&order, &things[4].order);
	evict(&order, 3);
	ck_assert_int_eq(victim(&order), -1);
}
END_TEST

/* The model: numbers in order of arrival, the hand as an index. */
struct model {
	int queue[ENTRIES];
	int count, hand;
};

static void model_remove(struct model *model, int at)
{
	memmove(model->queue + at, model->queue + at + 1,
		(size_t)(model->count - at - 1) * sizeof(model->queue[0]));
	model->count--;
	if (model->hand > at)
		model->hand--;
	if (model->hand >= model->count)
		model->hand = 0;
}

/* used[] mirrors the marks; returns the place in the queue or -1. */
static int model_victim(struct model *model, bool *used)
{
	for (int step = 0; step < 3 * model->count; step++) {
		int at = (model->hand + step) % model->count;
		int number = model->queue[at];

		if (things[number].pinned)
			continue;
		if (!used[number])
			return at;
		used[number] = false;
	}
	return -1;
}

START_TEST(test_against_model)
{
	struct nc_replacement order = {0};
	struct model model = {.count = 0};
	bool used[ENTRIES] = {false};
	uint64_t state = 31;
	unsigned evicted = 0;

	memset(things, 0, sizeof(things));
	for (int i = 0; i < ENTRIES; i++)
		things[i].number = i;
	for (unsigned step = 0; step < 50000; step++) {
		int number = (int)(random_next(&state) % ENTRIES);

		switch (random_next(&state) % 8) {
		case 0:
		case 1:
			if (!things[number].in) {
				/* A hand at the end stays at "begin at the oldest". */
				nc_replacement_add(&order, &things[number].order);
				things[number].in = true;
				used[number] = false;
				model.queue[model.count++] = number;
			}
			break;
		case 2:
		case 3:
		case 4:
			if (things[number].in) {
				nc_replacement_use(&things[number].order);
				used[number] = true;
			}
			break;
		case 5:
			things[number].pinned = random_next(&state) % 3 == 0;
			break;
		case 6:
			if (things[number].in && random_next(&state) % 4 == 0) {
				for (int at = 0; at < model.count; at++)
					if (model.queue[at] == number) {
						model_remove(&model, at);
						break;
					}
				nc_replacement_remove(&order, &things[number].order);
				things[number].in = false;
			}
			break;
		default: {
			int at = model_victim(&model, used);
			int found = victim(&order);

			ck_assert_int_eq(found, at < 0 ? -1 : model.queue[at]);
			if (at < 0)
				break;
			model.hand = at;
			model_remove(&model, at);
			nc_replacement_remove(&order, &things[found].order);
			things[found].in = false;
			evicted++;
		}
		}
	}
	ck_assert_uint_gt(evicted, 1000);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_empty);
	tcase_add_test(tcase, test_oldest_first);
	tcase_add_test(tcase, test_used_are_spared_once);
	tcase_add_test(tcase, test_all_used);
	tcase_add_test(tcase, test_pinned);
	tcase_add_test(tcase, test_remove_under_hand);
	tcase_add_test(tcase, test_against_model);
}

RUN_SUITE("replacement", fill)
