/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-insert.c - unit tests of NC_unit_insert_with(): what a unit has from its insert
 * on, in the owner and in a member, what is refused, and that what is held is never lost.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <nabc.h>

#include "admin-fixture.h"
#include "nabc-fixture.h"
#include "suite.h"

#define SIZE 5000u

/* A filled handle. */
static void make(NC_cache *in, NC_handle *handle, enum NC_kind kind, uint64_t seed)
{
	unsigned char data[SIZE];

	pattern_fill(data, seed, 0, SIZE);
	ck_assert_int_eq(NC_unit_alloc(in, handle, SIZE, 0, kind, 0), 0);
	ck_assert_int_eq(NC_write(handle, data, SIZE, 0), SIZE);
}

static size_t finish(NC_handle *handle)
{
	size_t id = NC_cache_id(handle);

	ck_assert_uint_ne(id, 0);
	ck_assert_int_eq(NC_free(handle), 0);
	return id;
}

/* Whether the held unit is the pattern. */
static bool is_pattern(const struct NC_hold *hold, uint64_t seed)
{
	size_t run = 0;
	const void *data = NC_data(hold, &run, 0);

	return data && run == SIZE && pattern_match(data, seed, 0, SIZE) == SIZE;
}

static unsigned holds(NC_cache *in, size_t id)
{
	struct NC_stat stat;

	ck_assert_int_eq(NC_stat(in, id, &stat, sizeof(stat)), 0);
	return stat.holds;
}

static uint64_t pinned(void)
{
	struct NC_cache_stat stat;

	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	return stat.pinned;
}

/* Dispatches until a unit has expired. */
static void await_expiry(void)
{
	struct NC_cache_stat stat = {0};

	while (!stat.expired) {
		struct pollfd wait = {.fd = NC_cache_fd(cache), .events = POLLIN};

		ck_assert_int_eq(poll(&wait, 1, 60000), 1);
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
		ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	}
}

static const enum NC_kind kinds[] = {NC_KIND_RECYCLED, NC_KIND_APPENDED, NC_KIND_SEALED};

/* All at once, for each kind; the bytes outlive the id. */
START_TEST(test_all)
{
	struct NC_hold hold = {{1, 2, 3, 4}};
	struct NC_insert_options options =
		NC_INSERT_OPTIONS_INIT(.flags = NC_INSERT_PRIORITY, .priority = NC_PRIORITY_PINNED,
				       .lifetime = 20, .hold = &hold);
	struct NC_stat stat;
	NC_handle handle;
	size_t id;

	open_cache(4 * MIB);
	make(NULL, &handle, kinds[_i], 1);
	ck_assert_uint_eq(pinned(), 0);
	ck_assert_int_eq(NC_unit_insert_with(&handle, NC_WHOLE, &options), 0);
	FAILS(NC_unit_insert_with(&handle, NC_WHOLE, &options), EALREADY);
	id = finish(&handle);
	ck_assert_uint_eq(pinned(), 1);
	ck_assert(is_pattern(&hold, 1));
	while (NC_stat(NULL, id, &stat, sizeof(stat)) == 0)
		ck_assert_uint_eq(stat.holds, 1);
	await_expiry();
	ck_assert(is_pattern(&hold, 1));
	ck_assert_int_eq(NC_release(&hold), 0);
	FAILS(NC_release(&hold), EINVAL);
	ck_assert_uint_eq(pinned(), 0);
	close_cache();
}
END_TEST

/* Without options, and with options that name nothing, it is NC_unit_insert(). */
START_TEST(test_nothing)
{
	struct NC_insert_options options = NC_INSERT_OPTIONS_INIT(.priority = NC_PRIORITY_PINNED);
	struct NC_stat stat;
	NC_handle handle;

	open_cache(4 * MIB);
	make(NULL, &handle, kinds[_i % 3], 1);
	ck_assert_int_eq(NC_unit_insert_with(&handle, 100, _i < 3 ? NULL : &options), 0);
	ck_assert_int_eq(NC_stat(NULL, finish(&handle), &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.size, 100);
	ck_assert_uint_eq(stat.holds, 0);
	ck_assert_uint_eq(pinned(), 0);
	close_cache();
}
END_TEST

/* What is refused leaves the handle as it was: it can be filled, and inserted plainly. */
START_TEST(test_refused)
{
	struct NC_hold hold = {{1, 2, 3, 4}}, before = hold;
	const struct NC_insert_options good =
		NC_INSERT_OPTIONS_INIT(.flags = NC_INSERT_PRIORITY, .priority = NC_PRIORITY_PINNED,
				       .lifetime = 1, .hold = &hold);
	struct {
		struct NC_insert_options options;
		size_t more;
	} newer = {.options = good};
	struct NC_insert_options wrong;
	NC_handle handle;
	size_t id;

	open_cache(4 * MIB);
	FAILS(NC_unit_insert_with(NULL, NC_WHOLE, &good), EINVAL);
	make(NULL, &handle, kinds[_i], 1);
	wrong = good;
	wrong.size--;
	FAILS(NC_unit_insert_with(&handle, 10, &wrong), EINVAL);
	wrong = good;
	wrong.flags |= 2;
	FAILS(NC_unit_insert_with(&handle, 10, &wrong), EINVAL);
	wrong = good;
	wrong.priority = (enum NC_priority)(NC_PRIORITY_PINNED + 1);
	FAILS(NC_unit_insert_with(&handle, 10, &wrong), EINVAL);
	wrong.priority = (enum NC_priority) - 1;
	FAILS(NC_unit_insert_with(&handle, 10, &wrong), EINVAL);
	wrong = good;
	wrong.lifetime = UINT64_MAX;
	FAILS(NC_unit_insert_with(&handle, 10, &wrong), EINVAL);
	FAILS(NC_unit_insert_with(&handle, 0, &good), ERANGE);
	FAILS(NC_unit_insert_with(&handle, SIZE + 1, &good), ERANGE);
	newer.options.size = sizeof(newer);
	newer.more = 1;
	FAILS(NC_unit_insert_with(&handle, 10, &newer.options), E2BIG);
	ck_assert_mem_eq(&hold, &before, sizeof(hold));
	ck_assert_uint_eq(pinned(), 0);
	ck_assert_int_eq(NC_write(&handle, "x", 1, SIZE - 1), 1);
	ck_assert_int_eq(NC_insert(&handle), 0);
	id = finish(&handle);
	ck_assert_uint_eq(holds(NULL, id), 0);
	/* It has no lifetime, and can be evicted. */
	ck_assert_uint_eq(pinned(), 0);
	for (unsigned i = 0; i < 3000; i++)
		(void)insert_as(NULL, i, SIZE, 0, kinds[_i]);
	ck_assert(!alive(id));
	close_cache();
}
END_TEST

/* A member that is no operator has the rules of NC_set_priority(). */
START_TEST(test_member)
{
	struct NC_hold hold = {{0}}, again;
	struct NC_insert_options options =
		NC_INSERT_OPTIONS_INIT(.flags = NC_INSERT_PRIORITY, .priority = NC_PRIORITY_HIGH,
				       .lifetime = 3600000, .hold = &hold);
	NC_cache *member;
	NC_handle handle;
	size_t id;

	set_up();
	member = NC_cache_attach(path, NULL);
	ck_assert_ptr_nonnull(member);
	make(member, &handle, NC_KIND_SEALED, 1);
	FAILS(NC_unit_insert_with(&handle, 10, &options), EPERM);
	options.priority = (enum NC_priority)4;
	FAILS(NC_unit_insert_with(&handle, 10, &options), EINVAL);
	/* It is neither shortened nor sealed. */
	ck_assert_int_eq(NC_write(&handle, "x", 1, SIZE - 1), 1);
	options.priority = NC_PRIORITY_LOW;
	options.lifetime = 20;
	ck_assert_int_eq(NC_unit_insert_with(&handle, NC_WHOLE, &options), 0);
	id = finish(&handle);
	ck_assert_uint_eq(holds(member, id), 1);
	while (NC_hold(member, id, &again) == 0)
		ck_assert_int_eq(NC_release(&again), 0);
	ck_assert_int_eq(errno, ENOENT);
	/* The owner does not have it any more, and this process's hold lasts. */
	ck_assert(!alive(id));
	ck_assert_ptr_nonnull(NC_data(&hold, &(size_t){0}, 0));
	ck_assert_int_eq(NC_release(&hold), 0);
	ck_assert_int_eq(NC_cache_close(member), 0);
	tear_down();
}
END_TEST

/* An operator may set all priorities. */
START_TEST(test_operator)
{
	struct NC_attach_options attach = NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_OPERATOR);
	struct NC_insert_options options =
		NC_INSERT_OPTIONS_INIT(.flags = NC_INSERT_PRIORITY, .priority = NC_PRIORITY_PINNED);
	NC_handle handle;

	set_up();
	watcher = NC_cache_attach(path, &attach);
	ck_assert_ptr_nonnull(watcher);
	make(watcher, &handle, NC_KIND_SEALED, 1);
	ck_assert_int_eq(NC_unit_insert_with(&handle, NC_WHOLE, &options), 0);
	ck_assert(alive(finish(&handle)));
	ck_assert_uint_eq(pinned(), 1);
	tear_down();
}
END_TEST

/* --- while another thread fills the cache ------------------------------------------------- */

#define KEEPERS 2u
#define ROUNDS 1500u

static _Atomic bool ended;

/* Fills the cache with everything it can: each insert evicts others. */
static void *evict_all(void *context)
{
	uint64_t state = (uintptr_t)context + 1;

	while (!atomic_load(&ended)) {
		size_t size = random_next(&state) % 100000 + 1;
		NC_handle handle;

		if (NC_unit_alloc(NULL, &handle, size, 0, kinds[size % 3], 0) < 0) {
			if (errno != ENOMEM)
				return "alloc";
			continue;
		}
		if (NC_insert(&handle) < 0 || NC_free(&handle) < 0)
			return "insert";
	}
	return NULL;
}

/* Returns what failed: a unit that was inserted with a hold must be there until its release. */
static void *keep(void *context)
{
	const uint64_t seed = (uintptr_t)context;

	for (unsigned i = 0; i < scaled(ROUNDS); i++) {
		struct NC_hold hold, again;
		struct NC_insert_options options =
			NC_INSERT_OPTIONS_INIT(.flags = NC_INSERT_PRIORITY,
					       .priority = NC_PRIORITY_LOW, .hold = &hold,
					       .lifetime = i % 2 ? 3600000 : 0);
		unsigned char data[SIZE];
		NC_handle handle;
		size_t id;

		pattern_fill(data, seed + i, 0, SIZE);
		while (NC_unit_alloc(NULL, &handle, SIZE, 0, kinds[i % 3], 0) < 0)
			if (errno != ENOMEM)
				return "alloc";
		if (NC_write(&handle, data, SIZE, 0) != SIZE ||
		    NC_unit_insert_with(&handle, NC_WHOLE, &options) < 0)
			return "insert";
		id = NC_cache_id(&handle);
		if (NC_free(&handle) < 0)
			return "free";
		sched_yield();
		if (NC_hold(NULL, id, &again) < 0)
			return "a unit that is held was lost";
		if (!is_pattern(&hold, seed + i))
			return "bytes";
		if (NC_release(&again) < 0 || NC_release(&hold) < 0)
			return "release";
	}
	return NULL;
}

START_TEST(test_nothing_is_lost)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = MIB);
	pthread_t keepers[KEEPERS], evictor;
	void *complaint;
	struct NC_cache_stat stat;

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	atomic_store(&ended, false);
	ck_assert_int_eq(pthread_create(&evictor, NULL, evict_all, NULL), 0);
	for (uintptr_t i = 0; i < KEEPERS; i++)
		ck_assert_int_eq(pthread_create(&keepers[i], NULL, keep, (void *)(i << 20)), 0);
	for (unsigned i = 0; i < KEEPERS; i++) {
		pthread_join(keepers[i], &complaint);
		ck_assert_msg(!complaint, "%s", (const char *)complaint);
	}
	atomic_store(&ended, true);
	pthread_join(evictor, &complaint);
	ck_assert_msg(!complaint, "%s", (const char *)complaint);
	ck_assert_int_eq(NC_cache_stat(NULL, &stat, sizeof(stat)), 0);
	ck_assert_uint_gt(stat.evictions, 0);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_all, 0, 3);
	tcase_add_loop_test(tcase, test_nothing, 0, 6);
	tcase_add_loop_test(tcase, test_refused, 0, 3);
	tcase_add_test(tcase, test_member);
	tcase_add_test(tcase, test_operator);
	tcase_add_test(tcase, test_nothing_is_lost);
}

RUN_SUITE("nabc-insert", fill)
