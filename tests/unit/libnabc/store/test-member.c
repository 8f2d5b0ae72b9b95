/* SPDX-License-Identifier: MIT */
/*
 * test-member.c - unit tests of member.c: the life of units in the owner's stores,
 * and many threads on one member.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/extent.h"
#include "base/fragment.h"
#include "base/id.h"
#include "os/segment.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

#include "member-fixture.h"
#include "suite.h"

START_TEST(test_life)
{
	unsigned generation;
	struct nc_unit *unit;

	ck_assert_int_eq(nc_member_init_owner(&member, MIB, false), 0);
	ck_assert_uint_eq(member.number, 0);
	unit = must_fill(5000, NC_KIND_RECYCLED);
	generation = nc_word_generation(nc_unit_word(unit));
	ck_assert_uint_eq(nc_member_filling(&member), 1);
	ck_assert(!live(unit, generation));
	ck_assert_int_eq(nc_member_destroy(&member, unit, generation), -ENOENT);
	ck_assert_int_eq(nc_member_insert(&member, unit, NULL), 0);
	ck_assert_uint_eq(nc_member_filling(&member), 0);
	ck_assert(live(unit, generation));
	ck_assert_int_eq(nc_member_release(&member, unit, generation), -EINVAL);
	ck_assert_int_eq(nc_member_hold(&member, unit, generation + 1, false), -ENOENT);

	ck_assert_int_eq(nc_member_hold(&member, unit, generation, false), 0);
	ck_assert_int_eq(nc_member_destroy(&member, unit, generation), 0);
	ck_assert_int_eq(nc_member_destroy(&member, unit, generation), -ENOENT);
	ck_assert_int_eq(nc_member_hold(&member, unit, generation, false), -ENOENT);
	ck_assert_int_eq(nc_member_hold(&member, unit, generation, true), 0);
	ck_assert_int_eq(nc_member_release(&member, unit, generation), 0);
	/* Still held: its memory is not reused. */
	ck_assert_uint_eq(unit->store->extent.used, 2);
	ck_assert_uint_eq(pattern_match(nc_unit_base(unit), unit->slot, 0, 5000), 5000);
	ck_assert_int_eq(nc_member_release(&member, unit, generation), 0);
	ck_assert_ptr_null(unit->store);
	ck_assert_uint_eq(member.stores->extent.used, 0);
	ck_assert_int_eq(nc_member_release(&member, unit, generation), -EINVAL);
	ck_assert_int_eq(nc_member_hold(&member, unit, generation, true), -ENOENT);
	ck_assert_uint_eq(member.inserts, 1);
	ck_assert_uint_eq(member.destroys, 1);
	nc_member_fini(&member);
}
END_TEST

START_TEST(test_recycled_is_used_again)
{
	unsigned generation;
	struct nc_unit *unit;
	char *base;

	ck_assert_int_eq(nc_member_init_owner(&member, MIB, false), 0);
	unit = must_insert(PAGE, NC_KIND_RECYCLED, &generation);
	base = nc_unit_base(unit);
	for (unsigned i = 0; i < 1000; i++) {
		ck_assert_int_eq(nc_member_destroy(&member, unit, generation), 0);
		unit = must_insert(PAGE, NC_KIND_RECYCLED, &generation);
		ck_assert_ptr_eq(nc_unit_base(unit), base);
		ck_assert_uint_eq(generation, i + 2);
	}
	/* Held memory is not reused. */
	ck_assert_int_eq(nc_member_hold(&member, unit, generation, false), 0);
	ck_assert_int_eq(nc_member_destroy(&member, unit, generation), 0);
	ck_assert_ptr_ne(nc_unit_base(must_fill(PAGE, NC_KIND_RECYCLED)), base);
	ck_assert_int_eq(nc_member_release(&member, unit, generation), 0);
	ck_assert_ptr_eq(nc_unit_base(must_fill(PAGE, NC_KIND_RECYCLED)), base);
	ck_assert_uint_eq(member.used, member.segment_size);
	nc_member_fini(&member);
}
END_TEST

START_TEST(test_abandon)
{
	struct nc_unit *unit, *other;
	size_t at;

	ck_assert_int_eq(nc_member_init_owner(&member, MIB, false), 0);
	unit = must_fill(3 * PAGE, NC_KIND_RECYCLED);
	nc_member_abandon(&member, unit);
	ck_assert_uint_eq(member.stores->extent.used, 0);
	unit = must_fill(3 * PAGE, NC_KIND_APPENDED);
	at = unit->at;
	nc_member_abandon(&member, unit);
	other = must_fill(2 * PAGE, NC_KIND_APPENDED);
	ck_assert_uint_eq(other->at, at);
	ck_assert_uint_eq(nc_member_filling(&member), 1);
	ck_assert_int_eq(nc_member_insert(&member, other, NULL), 0);
	ck_assert_uint_eq(nc_member_filling(&member), 0);
	nc_member_fini(&member);
}
END_TEST

/* The log: one segment after the other; a full one is sealed, an empty one is closed. */
START_TEST(test_log)
{
	struct nc_unit *unit[8];
	unsigned generation[8];
	struct nc_store *first;
	int fd;

	ck_assert_int_eq(nc_member_init_owner(&member, 4 * MIB, false), 0);
	ck_assert_uint_eq(member.segment_size, 256 << 10);
	for (unsigned i = 0; i < 8; i++)
		unit[i] = must_insert(64 << 10, NC_KIND_APPENDED, &generation[i]);
	ck_assert_uint_eq(member.used, 512 << 10);
	first = unit[0]->store;
	ck_assert_ptr_eq(unit[3]->store, first);
	ck_assert_ptr_ne(unit[4]->store, first);
	ck_assert_int_eq(fcntl(first->segment.fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE,
			 F_SEAL_FUTURE_WRITE);
	ck_assert_int_eq(fcntl(unit[4]->store->segment.fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE, 0);
	for (unsigned i = 0; i < 8; i++)
		ck_assert(!writable(nc_unit_base(unit[i])));
	fd = first->segment.fd;
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
		ck_assert_int_eq(nc_member_destroy(&member, unit[i], generation[i]), 0);
	}
	ck_assert_int_lt(fcntl(fd, F_GETFD), 0);
	ck_assert_uint_eq(member.closed, 1);
	ck_assert_uint_eq(member.used, 256 << 10);
	/* Where the log grows, an empty segment stays; used places are not used again. */
	for (unsigned i = 4; i < 8; i++)
		ck_assert_int_eq(nc_member_destroy(&member, unit[i], generation[i]), 0);
	ck_assert_uint_eq(member.used, 256 << 10);
	(void)must_insert(PAGE, NC_KIND_APPENDED, &generation[0]);
	ck_assert_uint_eq(member.used, 256 << 10);
	ck_assert_uint_eq(member.closed, 2);
	nc_member_fini(&member);
}
END_TEST

/* A segment that fills up while a unit in it is being filled is sealed later. */
START_TEST(test_late_insert)
{
	unsigned generation;
	struct nc_unit *late;
	int fd;

	ck_assert_int_eq(nc_member_init_owner(&member, 4 * MIB, false), 0);
	late = must_fill(100 << 10, NC_KIND_APPENDED);
	fd = late->store->segment.fd;
	(void)must_insert(100 << 10, NC_KIND_APPENDED, &generation);
	(void)must_insert(100 << 10, NC_KIND_APPENDED, &generation);
	ck_assert_uint_eq(member.used, 512 << 10);
	ck_assert_int_eq(fcntl(fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE, 0);
	ck_assert(writable(nc_unit_base(late)));
	ck_assert_int_eq(nc_member_insert(&member, late, NULL), 0);
	ck_assert_int_eq(fcntl(fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE, F_SEAL_FUTURE_WRITE);
	ck_assert(!writable(nc_unit_base(late)));
	nc_member_fini(&member);
}
END_TEST

/* A large unit of either kind has a segment of its own, which ends with it. */
START_TEST(test_alone)
{
	static const enum NC_kind kinds[] = {NC_KIND_APPENDED, NC_KIND_RECYCLED};

	for (unsigned i = 0; i < 2; i++) {
		unsigned generation, small;
		struct nc_unit *unit;

		ck_assert_int_eq(nc_member_init_owner(&member, 4 * MIB, false), 0);
		/* Neither kind has space for it beside this one. */
		(void)must_insert(100 << 10, kinds[i], &small);
		unit = must_insert(200 << 10, kinds[i], &generation);
		ck_assert_uint_eq(unit->store->segment.size, 200 << 10);
		ck_assert_uint_eq(member.used, (256 + 200) << 10);
		if (kinds[i] == NC_KIND_APPENDED)
			ck_assert_int_ne(fcntl(unit->store->segment.fd, F_GET_SEALS) &
						 F_SEAL_FUTURE_WRITE,
					 0);
		ck_assert_int_eq(nc_member_destroy(&member, unit, generation), 0);
		ck_assert_uint_eq(member.used, 256 << 10);
		ck_assert_uint_eq(member.closed, 1);
		unit = must_fill(200 << 10, kinds[i]);
		nc_member_abandon(&member, unit);
		ck_assert_uint_eq(member.used, 256 << 10);
		nc_member_fini(&member);
	}
}
END_TEST

/* --- many threads ---------------------------------------------------------- */

#define THREADS 4
#define NAMES 48

struct name {
	_Atomic(struct nc_unit *) unit;
	_Atomic unsigned generation;
};

static struct name names[NAMES];
static _Atomic unsigned spoilt, read_units;

static void look_at(const struct name *name)
{
	unsigned generation = atomic_load(&name->generation);
	struct nc_unit *unit = atomic_load(&name->unit);

	/* The two may not belong together: then the id is stale, and is refused. */
	if (!unit || nc_member_hold(&member, unit, generation, false))
		return;
	if (unit->layout.size == 0 ||
	    pattern_match(nc_unit_base(unit), nc_id(0, unit->slot, generation), 0,
			  unit->layout.size) != unit->layout.size)
		atomic_fetch_add(&spoilt, 1);
	atomic_fetch_add(&read_units, 1);
	if (nc_member_release(&member, unit, generation))
		atomic_fetch_add(&spoilt, 1);
}

static void replace(struct name *name, uint64_t random)
{
	unsigned generation = atomic_load(&name->generation);
	struct nc_unit *old = atomic_load(&name->unit), *unit;
	struct nc_layout layout;

	if (old)
		(void)nc_member_destroy(&member, old, generation);
	(void)nc_layout_init(&layout, 1 + random % (40 << 10), 0);
	if (nc_member_alloc(&member, &layout,
			    random >> 32 & 1 ? NC_KIND_APPENDED : NC_KIND_RECYCLED, &unit))
		return;
	generation = nc_word_generation(nc_unit_word(unit));
	pattern_fill(nc_unit_base(unit), nc_id(0, unit->slot, generation), 0, layout.size);
	if (random >> 33 & 15) {
		if (nc_member_insert(&member, unit, NULL))
			atomic_fetch_add(&spoilt, 1);
		atomic_store(&name->generation, generation);
		atomic_store(&name->unit, unit);
	} else {
		nc_member_abandon(&member, unit);
	}
}

static void *trade(void *context)
{
	uint64_t state = (uintptr_t)context;
	unsigned steps = scaled(6000);

	while (steps--) {
		uint64_t random = random_next(&state);
		struct name *name = &names[(random >> 40) % NAMES];

		if (random >> 50 & 1)
			look_at(name);
		else
			replace(name, random);
	}
	return NULL;
}

START_TEST(test_threads)
{
	pthread_t threads[THREADS];

	ck_assert_int_eq(nc_member_init_owner(&member, MIB, false), 0);
	memset(names, 0, sizeof(names));
	atomic_store(&spoilt, 0);
	atomic_store(&read_units, 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, trade, (void *)(i + 71)), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(atomic_load(&spoilt), 0);
	ck_assert_uint_gt(atomic_load(&read_units), 0);
	ck_assert_uint_le(member.used, member.budget);
	ck_assert_uint_eq(nc_member_filling(&member), 0);
	/* Nothing is held, so the live units are those that were inserted and not dropped. */
	ck_assert_uint_eq(member.units.live, member.inserts - member.destroys - member.evictions);
	nc_member_fini(&member);
}
END_TEST

/* A sealed unit has a segment of its own, which no process can write after the insert. */
START_TEST(test_sealed)
{
	struct nc_unit *unit;
	unsigned generation;

	ck_assert_int_eq(nc_member_init_owner(&member, MIB, false), 0);
	unit = must_fill(5000, NC_KIND_SEALED);
	ck_assert(writable(nc_unit_base(unit)));
	ck_assert_uint_eq(member.used, 2 * PAGE);
	generation = nc_word_generation(nc_unit_word(unit));
	ck_assert_int_eq(nc_member_insert(&member, unit, NULL), 0);
	ck_assert(!writable(nc_unit_base(unit)));
	ck_assert_uint_eq(pattern_match(nc_unit_base(unit), unit->slot, 0, 5000), 5000);
	/* The next one has another address. */
	(void)must_insert(10, NC_KIND_SEALED, &generation);
	ck_assert_uint_eq(member.used, 3 * PAGE);
	ck_assert_int_eq(nc_member_destroy(&member, unit, nc_word_generation(nc_unit_word(unit))),
			 0);
	ck_assert_uint_eq(member.used, PAGE);
	nc_member_abandon(&member, must_fill(MIB / 8, NC_KIND_SEALED));
	ck_assert_uint_eq(member.used, PAGE);
	nc_member_fini(&member);
}
END_TEST

static unsigned gone_generation;

static void on_gone(void *context, const struct nc_unit *unit, unsigned generation)
{
	(void)context;
	(void)unit;
	gone_generation = generation;
}

/* A unit that another process froze becomes the owner's; its grantees are told. */
START_TEST(test_adopt)
{
	struct nc_segment segment;
	struct nc_layout layout;
	unsigned generation;
	struct nc_unit *unit;

	ck_assert_int_eq(nc_member_init_owner(&member, MIB, false), 0);
	member.gone = on_gone;
	for (unsigned turn = 0; turn < 64; turn++) {
		ck_assert_int_eq(nc_segment_create(&segment, 16 * PAGE, false, false), 0);
		pattern_fill(segment.base, turn, 0, segment.size);
		ck_assert_int_eq(nc_segment_freeze(&segment), 0);
		ck_assert_int_eq(nc_layout_init(&layout, 15 * PAGE + 1, 0), 0);
		ck_assert_int_eq(nc_member_adopt(&member, &segment, &layout, &unit), 0);
		generation = nc_word_generation(nc_unit_word(unit));
		/* Held, so that it is not evicted before its id is known. */
		ck_assert_uint_eq(nc_word_holds(nc_unit_word(unit)), 1);
		ck_assert_int_eq(nc_member_release(&member, unit, generation), 0);
		ck_assert(live(unit, generation));
		ck_assert_uint_eq(pattern_match(nc_unit_base(unit), turn, 0, 15 * PAGE), 15 * PAGE);
		ck_assert_uint_le(member.used, member.budget);
		gone_generation = 0;
		if (turn % 4 == 0) {
			atomic_store(&unit->granted, turn % 8 == 0);
			ck_assert_int_eq(nc_member_destroy(&member, unit, generation), 0);
			ck_assert_uint_eq(gone_generation, turn % 8 ? 0 : generation);
		}
	}
	ck_assert_uint_gt(member.evictions, 0);

	/* The caller keeps a segment that can never fit. */
	ck_assert_int_eq(nc_segment_create(&segment, 2 * MIB, false, false), 0);
	ck_assert_int_eq(nc_layout_init(&layout, 2 * MIB, 0), 0);
	ck_assert_int_eq(nc_segment_freeze(&segment), 0);
	ck_assert_int_eq(nc_member_adopt(&member, &segment, &layout, &unit), -ENOMEM);
	nc_segment_close(&segment);
	nc_member_fini(&member);
}
END_TEST

static struct nc_unit *adopt(unsigned pages, unsigned *generation)
{
	struct nc_segment segment;
	struct nc_layout layout;
	struct nc_unit *unit;

	ck_assert_int_eq(nc_segment_create(&segment, pages * PAGE, false, false), 0);
	ck_assert_int_eq(nc_segment_freeze(&segment), 0);
	ck_assert_int_eq(nc_layout_init(&layout, pages * PAGE, 0), 0);
	ck_assert_int_eq(nc_member_adopt(&member, &segment, &layout, &unit), 0);
	*generation = nc_word_generation(nc_unit_word(unit));
	ck_assert_int_eq(nc_member_release(&member, unit, *generation), 0);
	return unit;
}

/* Returns whether it is there, without a use. */
static bool stands(const struct nc_unit *unit, unsigned generation)
{
	uint64_t word = nc_unit_word(unit);

	return nc_word_generation(word) == generation && nc_word_state(word) == NC_UNIT_LIVE;
}

static void insert_many(unsigned count)
{
	unsigned generation;

	while (count--) {
		struct nc_unit *unit = adopt(16, &generation);

		nc_unit_end_grace(unit);
		ck_assert(live(unit, generation));
	}
}

/* Unclaimed units are evicted last, even those of little worth, but they are evicted. */
START_TEST(test_grace)
{
	static const enum NC_policy policies[] = {NC_POLICY_SIEVE, NC_POLICY_LRU, NC_POLICY_GDSF};
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.policy = policies[_i]);
	unsigned first, second, last[32];
	struct nc_unit *claimed, *waiting, *units[32];

	ck_assert_int_eq(nc_member_init_owner(&member, MIB, false), 0);
	ck_assert_int_eq(nc_member_configure(&member, &options), 0);
	claimed = adopt(16, &first);
	nc_unit_end_grace(claimed);
	waiting = adopt(16, &second);
	insert_many(100);
	ck_assert(!stands(claimed, first));
	ck_assert(stands(waiting, second));
	nc_unit_end_grace(waiting);
	insert_many(100);
	ck_assert(!stands(waiting, second));
	/* None of the others is left. */
	for (unsigned i = 0; i < 32; i++)
		units[i] = adopt(16, &last[i]);
	ck_assert(stands(units[31], last[31]));
	ck_assert(!stands(units[0], last[0]));
	nc_member_fini(&member);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_life);
	tcase_add_test(tcase, test_recycled_is_used_again);
	tcase_add_test(tcase, test_abandon);
	tcase_add_test(tcase, test_log);
	tcase_add_test(tcase, test_late_insert);
	tcase_add_test(tcase, test_alone);
	tcase_add_test(tcase, test_sealed);
	tcase_add_test(tcase, test_adopt);
	tcase_add_test(tcase, test_threads);
	tcase_add_loop_test(tcase, test_grace, 0, 3);
}

RUN_SUITE("member", fill)
