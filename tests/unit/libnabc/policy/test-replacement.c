/* SPDX-License-Identifier: MIT */
/*
 * test-replacement.c - unit tests of replacement*.c: the order of SIEVE by
 * hand, and each policy by random steps against a naive model on an array.
 * One test has threads that use entries while others come and go.
 */
#include <math.h>
#include <pthread.h>

#include "policy/replacement.h"

#include "suite.h"

#define ENTRIES 64

struct thing {
	struct nc_replaceable order; /* first: a victim is its thing */
	int number;
	bool in, pinned;
	/* The model's */
	int mark;   /* SIEVE: 0 unused, 1 used, 2 due */
	double key; /* LRU: when; GDSF: floor + uses / bytes */
	double bytes;
	unsigned uses;
};

static struct thing things[ENTRIES];

static struct nc_replacement sieve(void)
{
	struct nc_replacement order;

	ck_assert_int_eq(nc_replacement_init(&order, NC_POLICY_SIEVE), 0);
	return order;
}

static bool may_evict(struct nc_replaceable *entry, void *context)
{
	(void)context;
	return !((struct thing *)entry)->pinned;
}

static int victim(struct nc_replacement *order)
{
	struct nc_replaceable *entry = nc_replacement_victim(order, may_evict, NULL);

	return entry ? ((struct thing *)entry)->number : -1;
}

static void add(struct nc_replacement *order, int count)
{
	memset(things, 0, sizeof(things));
	for (int i = 0; i < count; i++) {
		things[i].number = i;
		ck_assert_int_eq(nc_replacement_add(order, &things[i].order, 1), 0);
	}
}

static void evict(struct nc_replacement *order, int expected)
{
	ck_assert_int_eq(victim(order), expected);
	nc_replacement_remove(order, &things[expected].order);
}

START_TEST(test_empty)
{
	struct nc_replacement order = sieve();

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
	struct nc_replacement order = sieve();

	add(&order, 5);
	for (int i = 0; i < 5; i++)
		evict(&order, i);
	ck_assert_int_eq(victim(&order), -1);
}
END_TEST

START_TEST(test_used_are_spared_once)
{
	struct nc_replacement order = sieve();

	add(&order, 5);
	nc_replacement_use(&order, &things[0].order);
	nc_replacement_use(&order, &things[2].order);
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
	struct nc_replacement order = sieve();

	add(&order, 4);
	for (int i = 0; i < 4; i++)
		nc_replacement_use(&order, &things[i].order);
	/* A round to clear the marks, then the oldest. */
	evict(&order, 0);
	evict(&order, 1);
}
END_TEST

START_TEST(test_pinned)
{
	struct nc_replacement order = sieve();

	add(&order, 4);
	for (int i = 0; i < 4; i++)
		things[i].pinned = true;
	ck_assert_int_eq(victim(&order), -1);
	things[2].pinned = false;
	nc_replacement_use(&order, &things[2].order);
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
	struct nc_replacement order = sieve();

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
	/* Whether this is a right thing to go, NULL included; and lets it be so. */
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

/* One random thing happens; true: a victim went. */
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
		/* Also when it is in no order. */
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
		/* Sizes that are kept exactly; some are alike. */
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

/* With nothing used in between, all go in the order of their worth. */
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
		/* What is due goes before its turn: only the cleaner asks for it. */
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

/* A used one went early: the hand stops for it, and what it stops at is the least. */
START_TEST(test_sieve_judged)
{
	struct nc_replacement order = sieve();
	double due;

	add(&order, 5);
	nc_replacement_use(&order, &things[0].order);
	nc_replacement_use(&order, &things[3].order);
	nc_replacement_judged(&order, &things[3].order, true);
	nc_replacement_judged(&order, &things[4].order, false);
	nc_replacement_remove(&order, &things[4].order);
	ck_assert_ptr_null(order.hand);
	nc_replacement_judged(&order, &things[3].order, false);
	nc_replacement_remove(&order, &things[3].order);
	ck_assert_ptr_eq(order.hand, &things[2].order);
	due = nc_replacement_worth(&order, &things[1].order);
	expect(due < nc_replacement_worth(&order, &things[0].order));
	expect(due <= nc_replacement_worth(&order, &things[2].order));
	/* Used again, it is due no more. */
	nc_replacement_use(&order, &things[1].order);
	expect(nc_replacement_worth(&order, &things[1].order) >
	       nc_replacement_worth(&order, &things[0].order));
	evict(&order, 2);
}
END_TEST

/* All were used: it stops at the oldest of the others after a round, not at itself. */
START_TEST(test_sieve_judged_all_used)
{
	struct nc_replacement order = sieve();

	add(&order, 4);
	for (int i = 0; i < 4; i++)
		nc_replacement_use(&order, &things[i].order);
	nc_replacement_judged(&order, &things[0].order, false);
	nc_replacement_remove(&order, &things[0].order);
	ck_assert_ptr_eq(order.hand, &things[2].order);
	evict(&order, 2);
	evict(&order, 3);
	evict(&order, 1);
}
END_TEST

/* The floor is the least key that is true, not one that is remembered only. */
START_TEST(test_gdsf_judged)
{
	struct nc_replacement order;

	memset(things, 0, sizeof(things));
	ck_assert_int_eq(nc_replacement_init(&order, NC_POLICY_GDSF), 0);
	ck_assert_int_eq(nc_replacement_add(&order, &things[0].order, 128), 0);
	ck_assert_int_eq(nc_replacement_add(&order, &things[1].order, 64), 0);
	ck_assert_int_eq(nc_replacement_add(&order, &things[2].order, 32), 0);
	for (int i = 0; i < 9; i++)
		nc_replacement_use(&order, &things[0].order);
	nc_replacement_judged(&order, &things[2].order, true);
	expect(order.clock == 0);
	nc_replacement_judged(&order, &things[2].order, false);
	expect(order.clock == 1.0 / 64);
	nc_replacement_fini(&order);
}
END_TEST

/* Alone and judged: nothing else to stop at. */
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

/* Small before large, used before unused, and old frequency does not last for ever. */
START_TEST(test_gdsf)
{
	struct nc_replacement order;

	memset(things, 0, sizeof(things));
	for (int i = 0; i < ENTRIES; i++)
		things[i].number = i;
	ck_assert_int_eq(nc_replacement_init(&order, NC_POLICY_GDSF), 0);
	ck_assert_int_eq(nc_replacement_add(&order, &things[0].order, 8192), 0);
	ck_assert_int_eq(nc_replacement_add(&order, &things[1].order, 4096), 0);
	ck_assert_int_eq(nc_replacement_add(&order, &things[2].order, 65536), 0);
	for (int i = 0; i < 20; i++)
		nc_replacement_use(&order, &things[2].order);
	evict(&order, 0);
	for (int i = 3; i < 30; i++) {
		int gone;

		ck_assert_int_eq(nc_replacement_add(&order, &things[i].order, 4096), 0);
		gone = victim(&order);
		expect(gone >= 0);
		nc_replacement_remove(&order, &things[gone].order);
		if (gone == 2)
			break;
		ck_assert_int_lt(i, 29);
	}
	nc_replacement_fini(&order);
}
END_TEST

/* The size that GDSF reckons with is less than a thousandth below the real one. */
START_TEST(test_gdsf_sizes)
{
	struct nc_replacement order;
	uint64_t state = 5;

	memset(things, 0, sizeof(things));
	ck_assert_int_eq(nc_replacement_init(&order, NC_POLICY_GDSF), 0);
	/* Something of no worth, so that the worth of the other is its key. */
	ck_assert_int_eq(nc_replacement_add(&order, &things[1].order, (size_t)1 << 62), 0);
	for (unsigned i = 0; i < 10000; i++) {
		size_t bytes = random_next(&state) >> (4 + random_next(&state) % 60);
		double inverse;

		ck_assert_int_eq(nc_replacement_add(&order, &things[0].order, bytes), 0);
		inverse = nc_replacement_worth(&order, &things[0].order);
		bytes = bytes ? bytes : 1;
		if (bytes < (size_t)1 << 40) {
			expect(inverse * (double)bytes > 1 - 1e-4);
			expect(inverse * (double)bytes < 1 + 1e-3);
		}
		nc_replacement_remove(&order, &things[0].order);
	}
	nc_replacement_fini(&order);
}
END_TEST

START_TEST(test_uses_do_not_wrap)
{
	struct nc_replacement order;

	memset(things, 0, sizeof(things));
	ck_assert_int_eq(nc_replacement_init(&order, NC_POLICY_GDSF), 0);
	things[1].number = 1;
	ck_assert_int_eq(nc_replacement_add(&order, &things[0].order, 100), 0);
	ck_assert_int_eq(nc_replacement_add(&order, &things[1].order, 100), 0);
	nc_replacement_use(&order, &things[1].order);
	for (unsigned i = 0; i < 0x10000; i++)
		nc_replacement_use(&order, &things[0].order);
	/* Years later it is still what was used often. */
	atomic_store(&order.clock, 10000);
	nc_replacement_use(&order, &things[0].order);
	nc_replacement_use(&order, &things[1].order);
	expect(atomic_load(&things[0].order.ranked.key) > 10000 + 600);
	evict(&order, 1);
	nc_replacement_fini(&order);
}
END_TEST

START_TEST(test_names)
{
	struct nc_replacement order;

	ck_assert_str_eq(nc_replacement_name(NC_POLICY_SIEVE), "sieve");
	ck_assert_str_eq(nc_replacement_name(NC_POLICY_LRU), "lru");
	ck_assert_str_eq(nc_replacement_name(NC_POLICY_GDSF), "gdsf");
	ck_assert_str_eq(nc_replacement_name(NC_POLICY_DEFAULT), "gdsf");
	ck_assert_ptr_null(nc_replacement_name((enum NC_policy)(NC_POLICY_GDSF + 1)));
	ck_assert_ptr_null(nc_replacement_name((enum NC_policy) - 1));
	ck_assert_int_eq(nc_replacement_init(&order, (enum NC_policy)(NC_POLICY_GDSF + 1)),
			 -EINVAL);
	ck_assert_int_eq(nc_replacement_init(&order, NC_POLICY_DEFAULT), 0);
	ck_assert_str_eq(order.policy->name, "gdsf");
}
END_TEST

/* A heap that cannot grow takes no more and is as it was. */
START_TEST(test_no_room)
{
	struct nc_replacement order;

	memset(things, 0, sizeof(things));
	ck_assert_int_eq(nc_replacement_init(&order, NC_POLICY_LRU), 0);
	order.count = order.room = UINT32_MAX / 2 + 1;
	ck_assert_int_eq(nc_replacement_add(&order, &things[0].order, 1), -ENOMEM);
	ck_assert_uint_eq(order.count, UINT32_MAX / 2 + 1);
	ck_assert_uint_eq(order.room, UINT32_MAX / 2 + 1);
	order.count = order.room = 0;
	ck_assert_int_eq(nc_replacement_add(&order, &things[0].order, 1), 0);
	nc_replacement_fini(&order);
}
END_TEST

static bool always(struct nc_replaceable *entry, void *context)
{
	(void)entry;
	(void)context;
	return true;
}

/* As many as a large cache has, half of them used: the others go first. */
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

/* Nobody locks to use; all that came leaves once and in order of a true heap. */
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
	tcase_add_test(tcase, test_empty);
	tcase_add_test(tcase, test_oldest_first);
	tcase_add_test(tcase, test_used_are_spared_once);
	tcase_add_test(tcase, test_all_used);
	tcase_add_test(tcase, test_pinned);
	tcase_add_test(tcase, test_remove_under_hand);
	tcase_add_loop_test(tcase, test_against_model, 0, POLICIES);
	tcase_add_loop_test(tcase, test_worth, 0, POLICIES);
	tcase_add_test(tcase, test_sieve_judged);
	tcase_add_test(tcase, test_sieve_judged_all_used);
	tcase_add_test(tcase, test_gdsf_judged);
	tcase_add_loop_test(tcase, test_judged_alone, 0, POLICIES);
	tcase_add_test(tcase, test_gdsf);
	tcase_add_test(tcase, test_gdsf_sizes);
	tcase_add_test(tcase, test_uses_do_not_wrap);
	tcase_add_test(tcase, test_names);
	tcase_add_test(tcase, test_no_room);
	tcase_add_loop_test(tcase, test_many, 0, POLICIES);
	tcase_add_loop_test(tcase, test_used_by_threads, 0, POLICIES);
}

RUN_SUITE("replacement", fill)
