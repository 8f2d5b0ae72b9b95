/* SPDX-License-Identifier: MIT */
/*
 * test-index.c - unit tests of index.c: which ids a process may use, members that
 * attach and exit, options and counters, and threads that use one cache in all ways
 * concurrently.  Owns its caches.
 */
#include <nabc-worker.h>
#include <nabc.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/fragment.h"
#include "base/id.h"
#include "cache/index.h"
#include "cache/inspect.h"
#include "cache/remote-member.h"
#include "os/segment.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

#include "plain-ids.h"
#include "suite.h"

#define PAGE ((size_t)4096)
#define MIB ((size_t)1 << 20)

static struct nc_index cache;

static void open_cache(size_t size)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = size, .member_size = 64 << 10);

	ck_assert_int_eq(nc_index_init_owner(&cache, &options), 0);
	use_plain_ids(&cache);
}

/* Inserts a unit whose bytes are the pattern of its own id; returns 0 without memory. */
static size_t insert(size_t size, enum NC_kind kind)
{
	struct nc_layout layout;
	struct nc_unit *unit;
	size_t id;

	if (nc_layout_init(&layout, size, 0) || nc_member_alloc(&cache.own, &layout, kind, &unit))
		return 0;
	id = nc_index_id(&cache, unit->slot, nc_word_generation(nc_unit_word(unit)));
	pattern_fill(nc_unit_base(unit), id, 0, size);
	return nc_member_insert(&cache.own, unit, NULL) ? 0 : id;
}

static bool spoilt(const struct nc_view *view)
{
	return pattern_match(nc_unit_base(view->unit), view->id, 0, view->unit->layout.size) !=
	       view->unit->layout.size;
}

static int hold(size_t id)
{
	struct nc_view view;
	int error = nc_index_hold(&cache, id, false, &view);

	if (!error)
		ck_assert_uint_eq(view.id, id);
	return error;
}

START_TEST(test_options)
{
	static const struct NC_cache_options good[] = {
		{0},
		{.memory = MIB},
		{.memory = (size_t)1 << 46},
		{.memory = 8 * MIB, .max_unit = 2 * MIB},
		{.member_size = 64 << 10},
		{.member_size = (size_t)64 << 30},
		{.flags = NC_CACHE_NO_URING | NC_CACHE_NO_HUGE},
		{.flags = NC_CACHE_PIN},
	};
	static const struct NC_cache_options bad[] = {
		{.memory = MIB - 1},
		{.memory = 1},
		{.memory = ((size_t)1 << 46) + 1},
		{.memory = SIZE_MAX},
		{.memory = 8 * MIB, .max_unit = 2 * MIB + 1},
		{.max_unit = SIZE_MAX},
		{.member_size = (64 << 10) - 1},
		{.member_size = ((size_t)64 << 30) + 1},
		{.flags = 1u << 31},
		{.policy = 4},
		{.high_water = 101},
		{.high_water = 50, .low_water = 51},
		{.clean_limit = 91},
		{.flags = UINT32_MAX},
	};

	ck_assert_int_eq(nc_index_init_owner(&cache, NULL), 0);
	ck_assert_uint_eq(cache.own.budget, 256 * MIB);
	ck_assert_uint_eq(cache.max_unit, 64 * MIB);
	ck_assert_uint_eq(cache.member_size, 16 * MIB);
	nc_index_fini(&cache);
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ck_assert_int_eq(nc_index_init_owner(&cache, &good[i]), 0);
		ck_assert_uint_le(cache.max_unit, cache.own.budget / 4);
		nc_index_fini(&cache);
	}
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(nc_index_init_owner(&cache, &bad[i]), -EINVAL);
}
END_TEST

START_TEST(test_member_size_is_whole_pages)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.member_size = (64 << 10) + 1);

	ck_assert_int_eq(nc_index_init_owner(&cache, &options), 0);
	ck_assert_uint_eq(cache.member_size, (64 << 10) + PAGE);
	nc_index_fini(&cache);
}
END_TEST

START_TEST(test_unknown)
{
	struct NC_cache_stat stat;
	size_t id;

	open_cache(MIB);
	ck_assert_int_eq(hold(0), -ENOENT);
	ck_assert_int_eq(hold(1), -ENOENT);
	ck_assert_int_eq(hold(SIZE_MAX), -ENOENT);
	ck_assert_int_eq(hold(nc_id(0, NC_ID_SLOTS_MAX - 1, 1)), -ENOENT);
	ck_assert_int_eq(hold(nc_id(1, 0, 1)), -ENOENT);
	ck_assert_int_eq(hold(nc_id(NC_ID_MEMBERS_MAX - 1, 0, 1)), -ENOENT);
	ck_assert_int_eq(nc_index_destroy(&cache, nc_id(3, 0, 1)), -ENOENT);
	ck_assert_int_eq(nc_index_release(&cache, nc_id(3, 0, 1)), -ENOENT);
	id = insert(100, NC_KIND_RECYCLED);
	ck_assert_int_eq(hold(id), 0);
	ck_assert_int_eq(nc_index_release(&cache, id), 0);
	ck_assert_int_eq(nc_index_release(&cache, id), -EINVAL);
	ck_assert_int_eq(hold(id + 1), -ENOENT);
	ck_assert_int_eq(hold(id - 1), -ENOENT);
	ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
	ck_assert_int_eq(nc_index_destroy(&cache, id), -ENOENT);
	ck_assert_int_eq(hold(id), -ENOENT);
	nc_inspect_counters(&cache, &stat);
	ck_assert_uint_eq(stat.stale, 12);
	ck_assert_uint_eq(stat.denied, 0);
	nc_index_fini(&cache);
}
END_TEST

START_TEST(test_stat)
{
	struct NC_cache_stat stat;
	struct nc_remote_member *remote;
	struct nc_layout layout;
	struct nc_unit *unit;
	size_t id[3], first;

	open_cache(MIB);
	nc_inspect_counters(&cache, &stat);
	ck_assert_uint_eq(stat.size, MIB);
	ck_assert_uint_eq(stat.used, 0);
	ck_assert_uint_eq(stat.units, 0);
	for (unsigned i = 0; i < 3; i++)
		id[i] = insert(100, NC_KIND_RECYCLED);
	/* A unit that is being filled has no id yet. */
	ck_assert_int_eq(nc_layout_init(&layout, 10, 0), 0);
	ck_assert_int_eq(nc_member_alloc(&cache.own, &layout, NC_KIND_RECYCLED, &unit), 0);
	nc_inspect_counters(&cache, &stat);
	ck_assert_uint_eq(stat.units, 3);
	ck_assert_uint_eq(stat.inserts, 3);
	ck_assert_uint_eq(stat.used, 256 << 10);
	/* A destroyed unit has none either, held or not. */
	ck_assert_int_eq(hold(id[0]), 0);
	ck_assert_int_eq(nc_index_destroy(&cache, id[0]), 0);
	ck_assert_int_eq(nc_index_destroy(&cache, id[1]), 0);
	nc_inspect_counters(&cache, &stat);
	ck_assert_uint_eq(stat.units, 1);
	ck_assert_uint_eq(stat.destroys, 2);
	ck_assert_uint_eq(stat.members, 0);
	ck_assert_int_eq(nc_index_admit(&cache, 64 << 10, &remote, &first), 0);
	nc_index_enrol(&cache, 1);
	nc_index_count(&cache, NC_METHOD_COPY, 10);
	nc_index_count(&cache, NC_METHOD_COPY, 20);
	nc_index_count(&cache, NC_METHOD_ZEROCOPY, 5);
	nc_inspect_counters(&cache, &stat);
	ck_assert_uint_eq(stat.members, 1);
	nc_index_enrol(&cache, -1);
	ck_assert_uint_eq(stat.by_copy.sends, 2);
	ck_assert_uint_eq(stat.by_copy.bytes, 30);
	ck_assert_uint_eq(stat.by_zerocopy.sends, 1);
	ck_assert_uint_eq(stat.by_splice.sends, 0);
	nc_index_detach(&cache, remote);
	nc_inspect_counters(&cache, &stat);
	ck_assert_uint_eq(stat.members, 0);
	nc_index_fini(&cache);
}
END_TEST

/* An attached process knows its own ids; it cannot use any other. */
START_TEST(test_attached)
{
	struct NC_cache_stat stat;
	struct nc_segment segment;
	size_t id;

	ck_assert_int_eq(nc_segment_create(&segment, 64 << 10, false, true), 0);
	ck_assert_int_eq(nc_index_init_attached(&cache, 9, &segment, PAGE, 64, 5, 32 << 10), 0);
	id = insert(100, NC_KIND_RECYCLED);
	ck_assert_uint_eq(nc_id_member(id), 9);
	ck_assert_uint_eq(nc_id_generation(id), 5);
	ck_assert_int_eq(hold(id), 0);
	ck_assert_int_eq(nc_index_release(&cache, id), 0);
	ck_assert_int_eq(hold(nc_id(0, 0, 1)), -EACCES);
	ck_assert_int_eq(hold(nc_id(8, nc_id_slot(id), nc_id_generation(id))), -EACCES);
	ck_assert_int_eq(hold(SIZE_MAX), -EACCES);
	ck_assert_int_eq(nc_index_release(&cache, nc_id(8, 0, 5)), -EACCES);
	ck_assert_int_eq(nc_index_destroy(&cache, nc_id(0, 0, 1)), -EACCES);
	ck_assert_int_eq(hold(0), -ENOENT);
	ck_assert_int_eq(hold(nc_id(9, 63, 5)), -ENOENT);
	ck_assert_int_eq(hold(nc_id(9, 64, 5)), -ENOENT);
	nc_inspect_counters(&cache, &stat);
	ck_assert_uint_eq(stat.denied, 5);
	ck_assert_uint_eq(stat.stale, 3);
	nc_index_fini(&cache);
}
END_TEST

static struct nc_unit_shared *table_of(struct nc_remote_member *remote)
{
	return (struct nc_unit_shared *)(void *)remote->store->segment.base;
}

/* The owner uses the members' units by their ids; an invalid entry is EACCES. */
START_TEST(test_members)
{
	struct nc_remote_member *remote, *other;
	struct NC_cache_stat stat;
	struct nc_view view;
	size_t first, id;

	open_cache(MIB);
	ck_assert_int_eq(nc_index_admit(&cache, 64 << 10, &remote, &first), 0);
	ck_assert_int_eq(nc_index_admit(&cache, 64 << 10, &other, &first), 0);
	ck_assert_uint_eq(remote->number, 1);
	ck_assert_uint_eq(other->number, 2);
	id = nc_id(2, 4, 1);
	pattern_fill(other->store->segment.base + first, id, 0, 700);
	atomic_store(&table_of(other)[4].at, first);
	atomic_store(&table_of(other)[4].size, 700);
	atomic_store(&table_of(other)[4].fraglen, PAGE);
	ck_assert_int_eq(hold(id), -ENOENT);
	atomic_store(&table_of(other)[4].word, nc_shared_word(1, NC_SHARED_LIVE));
	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
	ck_assert_ptr_eq(view.remote, other);
	ck_assert(!spoilt(&view));
	ck_assert_int_eq(hold(nc_id(1, 4, 1)), -ENOENT);
	ck_assert_int_eq(nc_index_release(&cache, id), 0);
	ck_assert_int_eq(nc_index_release(&cache, id), -EINVAL);
	atomic_store(&table_of(other)[4].size, 1 << 30);
	ck_assert_int_eq(hold(id), -EACCES);
	atomic_store(&table_of(other)[4].word, nc_shared_word(2, NC_SHARED_LIVE));
	ck_assert_int_eq(nc_index_destroy(&cache, nc_id(2, 4, 2)), -EACCES);
	atomic_store(&table_of(other)[4].size, 10);
	atomic_store(&table_of(other)[4].word, nc_shared_word(3, NC_SHARED_LIVE));
	ck_assert_int_eq(nc_index_destroy(&cache, nc_id(2, 4, 3)), 0);
	nc_index_detach(&cache, other);
	ck_assert_int_eq(hold(nc_id(2, 4, 3)), -ENOENT);
	nc_inspect_counters(&cache, &stat);
	ck_assert_uint_eq(stat.denied, 2);
	nc_index_fini(&cache);
}
END_TEST

/*
 * All numbers are assigned once before one is assigned again, whose generations then
 * begin above the old ones; and when all are spent, no member is admitted.
 */
START_TEST(test_numbers)
{
	struct nc_remote_member *remote;
	size_t first;

	open_cache(MIB);
	for (unsigned number = 1; number < NC_ID_MEMBERS_MAX; number++) {
		expect(nc_index_admit(&cache, 64 << 10, &remote, &first) == 0);
		expect(remote->number == number);
		nc_index_detach(&cache, remote);
	}
	ck_assert_int_eq(nc_index_admit(&cache, 64 << 10, &remote, &first), 0);
	ck_assert_uint_eq(remote->units.generation, 2);
	nc_index_detach(&cache, remote);
	/* Every number is in use or spent, without the cost of that many members. */
	for (unsigned number = 1; number < NC_ID_MEMBERS_MAX; number++)
		atomic_load(&cache.remotes[number])->generation = NC_ID_GENERATION_MAX + 1;
	ck_assert_int_eq(nc_index_admit(&cache, 64 << 10, &remote, &first), -EUSERS);
	atomic_load(&cache.remotes[77])->generation = NC_ID_GENERATION_MAX;
	ck_assert_int_eq(nc_index_admit(&cache, 64 << 10, &remote, &first), 0);
	ck_assert_uint_eq(remote->number, 77);
	ck_assert_int_eq(nc_index_admit(&cache, 64 << 10, &remote, &first), -EUSERS);
	nc_index_fini(&cache);
}
END_TEST

START_TEST(test_member_slots)
{
	ck_assert_uint_eq(nc_index_member_slots(0), 64);
	ck_assert_uint_eq(nc_index_member_slots(64 << 10), 64);
	ck_assert_uint_eq(nc_index_member_slots(16 * MIB), 1024);
	ck_assert_uint_eq(nc_index_member_slots((size_t)64 << 30), 16384);
}
END_TEST

/* --- many threads --------------------------------------------------------- */

#define THREADS 4
#define NAMES 64

static _Atomic size_t names[NAMES];
static _Atomic unsigned wrong, looks;

static void look(size_t id)
{
	struct nc_view view, again;

	if (nc_index_hold(&cache, id, false, &view))
		return;
	if (spoilt(&view))
		atomic_fetch_add(&wrong, 1);
	/* Held, so it can be held again, destroyed or not. */
	if (nc_index_hold(&cache, id, true, &again) || again.unit != view.unit)
		atomic_fetch_add(&wrong, 1);
	if (nc_index_release(&cache, id) || spoilt(&view) || nc_index_release(&cache, id))
		atomic_fetch_add(&wrong, 1);
	atomic_fetch_add(&looks, 1);
}

static void *trade(void *context)
{
	uint64_t state = (uintptr_t)context;

	for (unsigned steps = scaled(5000); steps; steps--) {
		uint64_t random = random_next(&state);
		_Atomic size_t *name = &names[(random >> 40) % NAMES];
		size_t id;

		switch (random % 4) {
		case 0:
			id = insert(1 + (random >> 8) % (30 << 10),
				    random >> 32 & 1 ? NC_KIND_APPENDED : NC_KIND_RECYCLED);
			id = atomic_exchange(name, id);
			if (id)
				(void)nc_index_destroy(&cache, id);
			break;
		case 1:
			(void)nc_index_destroy(&cache, atomic_load(name));
			break;
		default:
			look(atomic_load(name));
		}
	}
	return NULL;
}

START_TEST(test_threads)
{
	pthread_t threads[THREADS];
	struct NC_cache_stat stat;

	open_cache(MIB);
	memset(names, 0, sizeof(names));
	atomic_store(&wrong, 0);
	atomic_store(&looks, 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, trade, (void *)(i + 91)), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(atomic_load(&wrong), 0);
	ck_assert_uint_gt(atomic_load(&looks), 0);
	nc_inspect_counters(&cache, &stat);
	ck_assert_uint_le(stat.used, stat.size);
	ck_assert_uint_eq(stat.units, cache.own.units.live);
	for (unsigned i = 0; i < NAMES; i++)
		(void)nc_index_destroy(&cache, atomic_load(&names[i]));
	nc_inspect_counters(&cache, &stat);
	ck_assert_uint_eq(stat.units, 0);
	ck_assert_uint_eq(cache.own.units.live, 0);
	nc_index_fini(&cache);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_options);
	tcase_add_test(tcase, test_member_size_is_whole_pages);
	tcase_add_test(tcase, test_unknown);
	tcase_add_test(tcase, test_stat);
	tcase_add_test(tcase, test_attached);
	tcase_add_test(tcase, test_members);
	tcase_add_test(tcase, test_numbers);
	tcase_add_test(tcase, test_member_slots);
	tcase_add_test(tcase, test_threads);
}

RUN_SUITE("index", fill)
