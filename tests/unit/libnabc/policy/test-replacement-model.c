/* SPDX-License-Identifier: MIT */
/*
 * test-replacement-model.c - unit tests of replacement*.c: each policy by random
 * steps against a naive model on an array; many entries, and threads that use
 * entries while others come and go.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <nabc.h>

#include "policy/replacement.h"

#include "replacement-fixture.h"
#include "suite.h"

/* --- the models ---------------------------------------------------------- */

/* SIEVE: things in order of arrival, the hand as an index.  The others: a clock. */
struct model {
	int queue[ENTRIES];
	int count, hand;
	double clock;
};

struct modelled {
	enum NC_policy policy;
	void (*add)(struct model *model, struct thing *thing);
	void (*use)(struct model *model, struct thing *thing);
	/* Returns whether this is a valid victim, NULL included; and removes it. */
	bool (*goes)(struct model *model, struct thing *thing);
	void (*judged)(struct model *model, struct thing *thing, bool survived);
};

static int place_of(const struct model *model, const struct thing *thing)
{
	for (int at = 0; at < model->count; at++)
		if (model->queue[at] == thing->number)
			return at;
	ck_abort_msg("thing %d is not in the model", thing->number);
}

static void model_remove(struct model *model, const struct thing *thing)
{
	int at = place_of(model, thing);

	memmove(model->queue + at, model->queue + at + 1,
		(size_t)(model->count - at - 1) * sizeof(model->queue[0]));
	model->count--;
	if (model->hand > at)
		model->hand--;
	if (model->hand >= model->count)
		model->hand = 0;
}

static void sieve_model_add(struct model *model, struct thing *thing)
{
	(void)model;
	thing->mark = 0;
}

static void sieve_model_use(struct model *model, struct thing *thing)
{
	(void)model;
	thing->mark = 1;
}

static bool sieve_model_goes(struct model *model, struct thing *thing)
{
	for (int step = 0; step < 3 * model->count; step++) {
		int at = (model->hand + step) % model->count;
		struct thing *found = &things[model->queue[at]];

		if (found->pinned)
			continue;
		if (found->mark != 1) {
			model->hand = (at + 1) % model->count;
			return found == thing;
		}
		found->mark = 0;
	}
	return !thing;
}

static void sieve_model_judged(struct model *model, struct thing *thing, bool survived)
{
	if (survived || thing->mark != 1)
		return;
	thing->mark = 2;
	/* To the end, and a round after that. */
	for (int step = 0; step < 2 * model->count - model->hand; step++) {
		int at = (model->hand + step) % model->count;
		struct thing *found = &things[model->queue[at]];

		if (found->mark == 0) {
			found->mark = 2;
			model->hand = (at + 1) % model->count;
			return;
		}
		if (found->mark == 1)
			found->mark = 0;
	}
}

static double least_key(const struct model *model, bool all)
{
	double least = INFINITY;

	for (int at = 0; at < model->count; at++) {
		const struct thing *thing = &things[model->queue[at]];

		if ((all || !thing->pinned) && thing->key < least)
			least = thing->key;
	}
	return least;
}

static void lru_model_add(struct model *model, struct thing *thing)
{
	thing->key = ++model->clock;
}

static void lru_model_use(struct model *model, struct thing *thing)
{
	thing->key = model->clock + 0.5;
}

static bool lru_model_goes(struct model *model, struct thing *thing)
{
	double least = least_key(model, false);

	return thing ? !thing->pinned && thing->key == least : least == INFINITY;
}

static void lru_model_judged(struct model *model, struct thing *thing, bool survived)
{
	(void)model;
	(void)thing;
	(void)survived;
}

static void gdsf_model_use(struct model *model, struct thing *thing)
{
	thing->key = model->clock + ++thing->uses / thing->bytes;
}

static void gdsf_model_add(struct model *model, struct thing *thing)
{
	thing->uses = 0;
	gdsf_model_use(model, thing);
}

static bool gdsf_model_goes(struct model *model, struct thing *thing)
{
	bool right = lru_model_goes(model, thing);

	if (right && thing)
		model->clock = fmax(model->clock, thing->key);
	return right;
}

static void gdsf_model_judged(struct model *model, struct thing *thing, bool survived)
{
	(void)thing;
	if (!survived)
		model->clock = fmax(model->clock, least_key(model, true));
}

static const struct modelled modelled[] = {
	{NC_POLICY_SIEVE, sieve_model_add, sieve_model_use, sieve_model_goes, sieve_model_judged},
	{NC_POLICY_LRU, lru_model_add, lru_model_use, lru_model_goes, lru_model_judged},
	{NC_POLICY_GDSF, gdsf_model_add, gdsf_model_use, gdsf_model_goes, gdsf_model_judged},
};

#define POLICIES (int)(sizeof(modelled) / sizeof(modelled[0]))

static void enter(struct nc_replacement *order, const struct modelled *policy, struct model *model,
		  struct thing *thing)
{
	ck_assert_int_eq(nc_replacement_add(order, &thing->order, (size_t)thing->bytes), 0);
	thing->in = true;
	model->queue[model->count++] = thing->number;
	policy->add(model, thing);
}

static void leave(struct nc_replacement *order, struct model *model, struct thing *thing)
{
	nc_replacement_remove(order, &thing->order);
	model_remove(model, thing);
	thing->in = false;
}

/* Does one random step; returns true if that evicted a victim. */
static bool step(struct nc_replacement *order, const struct modelled *policy, struct model *model,
		 uint64_t *state)
{
	struct thing *thing = &things[random_next(state) % ENTRIES];
	struct nc_replaceable *entry;
	bool survived;

	switch (random_next(state) % 9) {
	case 0:
	case 1:
		if (!thing->in)
			enter(order, policy, model, thing);
		return false;
	case 2:
	case 3:
	case 4:
		/* Also if it is in no order. */
		nc_replacement_use(order, &thing->order);
		if (thing->in)
			policy->use(model, thing);
		return false;
	case 5:
		thing->pinned = random_next(state) % 3 == 0;
		return false;
	case 6:
		if (thing->in && random_next(state) % 4 == 0)
			leave(order, model, thing);
		return false;
	case 7:
		if (!thing->in)
			return false;
		survived = random_next(state) % 2;
		nc_replacement_judged(order, &thing->order, survived);
		policy->judged(model, thing, survived);
		if (!survived)
			leave(order, model, thing);
		return false;
	}
	entry = nc_replacement_victim(order, may_evict, NULL);
	expect(policy->goes(model, (struct thing *)entry));
	if (entry)
		leave(order, model, (struct thing *)entry);
	return entry;
}

static void prepare(const struct modelled *policy, struct nc_replacement *order)
{
	memset(things, 0, sizeof(things));
	for (int i = 0; i < ENTRIES; i++) {
		things[i].number = i;
		/* Sizes that are kept exactly; some are equal. */
		things[i].bytes = (1 + i % 7) << (i % 5 * 4);
	}
	ck_assert_int_eq(nc_replacement_init(order, policy->policy), 0);
}

START_TEST(test_against_model)
{
	const struct modelled *policy = &modelled[_i];
	struct nc_replacement order;
	struct model model = {.count = 0};
	unsigned steps = scaled(200000), evicted = 0;
	uint64_t state = 31;

	prepare(policy, &order);
	for (unsigned i = 0; i < steps; i++)
		evicted += step(&order, policy, &model, &state);
	ck_assert_uint_gt(evicted, steps / 50);
	nc_replacement_fini(&order);
}
END_TEST

/* With no use in between, all are evicted in the order of their worth. */
START_TEST(test_worth)
{
	const struct modelled *policy = &modelled[_i];
	struct nc_replacement order;
	struct model model = {.count = 0};
	double worth[ENTRIES], last = 0;
	uint64_t state = 77;

	prepare(policy, &order);
	for (unsigned i = 0; i < 20000; i++)
		(void)step(&order, policy, &model, &state);
	for (int i = 0; i < ENTRIES; i++) {
		things[i].pinned = false;
		/* A due entry is evicted before its turn: only the cleaner requests it. */
		if (things[i].in && things[i].mark == 2)
			leave(&order, &model, &things[i]);
		if (things[i].in)
			worth[i] = nc_replacement_worth(&order, &things[i].order);
	}
	ck_assert_int_gt(model.count, 10);
	while (model.count) {
		int gone = victim(&order);

		ck_assert_int_ge(gone, 0);
		expect(worth[gone] >= last);
		last = worth[gone];
		leave(&order, &model, &things[gone]);
	}
	expect(last > 0);
	nc_replacement_fini(&order);
}
END_TEST

/* Alone and judged: there is no other entry to stop at. */
START_TEST(test_judged_alone)
{
	struct nc_replacement order;

	ck_assert_int_eq(nc_replacement_init(&order, modelled[_i].policy), 0);
	memset(things, 0, sizeof(things));
	ck_assert_int_eq(nc_replacement_add(&order, &things[0].order, 4096), 0);
	nc_replacement_use(&order, &things[0].order);
	nc_replacement_judged(&order, &things[0].order, true);
	nc_replacement_judged(&order, &things[0].order, false);
	nc_replacement_remove(&order, &things[0].order);
	ck_assert_int_eq(victim(&order), -1);
	nc_replacement_fini(&order);
}
END_TEST

static bool always(struct nc_replaceable *entry, void *context)
{
	(void)entry;
	(void)context;
	return true;
}

/* As many as in a large cache, half of them used: the others are evicted first. */
START_TEST(test_many)
{
	unsigned count = scaled(300000) * 2;
	struct nc_replaceable *many = must_alloc(count * sizeof(many[0]));
	bool *gone = must_alloc(count);
	struct nc_replacement order;
	uint64_t state = 9;

	memset(gone, false, count);
	ck_assert_int_eq(nc_replacement_init(&order, modelled[_i].policy), 0);
	for (unsigned i = 0; i < count; i++)
		ck_assert_int_eq(nc_replacement_add(&order, &many[i], 1000), 0);
	for (unsigned i = 0; i < count; i += 2)
		nc_replacement_use(&order, &many[i]);
	for (unsigned i = 0; i < count / 2; i++) {
		unsigned at = (unsigned)(random_next(&state) % count) | 1;

		if (gone[at] || random_next(&state) % 4)
			at = (unsigned)(nc_replacement_victim(&order, always, NULL) - many);
		expect(at % 2 == 1 && !gone[at]);
		nc_replacement_remove(&order, &many[at]);
		gone[at] = true;
	}
	nc_replacement_fini(&order);
	free(gone);
	free(many);
}
END_TEST

/* --- threads ------------------------------------------------------------- */

#define THREADS 3

static struct nc_replacement shared;
static atomic_bool over;

static void *user(void *argument)
{
	uint64_t state = (uint64_t)(uintptr_t)argument;

	while (!atomic_load(&over))
		for (int i = 0; i < 100; i++)
			nc_replacement_use(&shared, &things[random_next(&state) % ENTRIES].order);
	return NULL;
}

/* No thread locks to use an entry; all entries leave once and in the order of a valid heap. */
START_TEST(test_used_by_threads)
{
	pthread_t threads[THREADS];
	unsigned steps = scaled(100000);
	uint64_t state = 3;
	int in = 0;

	prepare(&modelled[_i], &shared);
	atomic_store(&over, false);
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, user, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < steps; i++) {
		struct thing *thing = &things[random_next(&state) % ENTRIES];
		int gone;

		if (!thing->in) {
			ck_assert_int_eq(nc_replacement_add(&shared, &thing->order, 4096), 0);
			thing->in = true;
			in++;
		} else if (i % 3 == 0) {
			expect(nc_replacement_worth(&shared, &thing->order) >= 0);
			nc_replacement_judged(&shared, &thing->order, false);
			nc_replacement_remove(&shared, &thing->order);
			thing->in = false;
			in--;
		} else if ((gone = victim(&shared)) >= 0) {
			expect(things[gone].in);
			nc_replacement_remove(&shared, &things[gone].order);
			things[gone].in = false;
			in--;
		}
	}
	atomic_store(&over, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (; in; in--) {
		int gone = victim(&shared);

		expect(gone >= 0 && things[gone].in);
		nc_replacement_remove(&shared, &things[gone].order);
		things[gone].in = false;
	}
	ck_assert_int_eq(victim(&shared), -1);
	nc_replacement_fini(&shared);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_against_model, 0, POLICIES);
	tcase_add_loop_test(tcase, test_worth, 0, POLICIES);
	tcase_add_loop_test(tcase, test_judged_alone, 0, POLICIES);
	tcase_add_loop_test(tcase, test_many, 0, POLICIES);
	tcase_add_loop_test(tcase, test_used_by_threads, 0, POLICIES);
}

RUN_SUITE("replacement-model", fill)
