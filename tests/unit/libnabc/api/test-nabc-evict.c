/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-evict.c - unit tests of NC_cache_on_evict(): each unit that ends without the
 * program's doing is reported once, with the reason, and no other; from any thread.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <nabc.h>

#include "admin-fixture.h"
#include "nabc-fixture.h"
#include "suite.h"

/* --- what the callback got ---------------------------------------------------------------- */

#define IDS_MAX 200000u

static struct {
	pthread_cond_t more;
	pthread_mutex_t
		lock; /* the program's own, which its threads hold in calls of the library */
	size_t ids[IDS_MAX];
	unsigned count, by_reason[NC_EVICTION_LOST + 1];
	size_t bytes;
} reported = {.more = PTHREAD_COND_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

static void note(void *context, size_t id, size_t size, enum NC_eviction why)
{
	NC_cache *of = context;
	struct NC_stat stat;
	NC_handle handle;

	/* It may call the library: the id is gone, and units can be made. */
	expect(NC_stat(of, id, &stat, sizeof(stat)) < 0 && errno == ENOENT);
	if (NC_unit_alloc(of, &handle, 100, 0, NC_KIND_RECYCLED, 0) == 0)
		expect(NC_free(&handle) == 0);
	expect(NC_cache_on_evict(of, NULL, NULL) < 0 && errno == EDEADLK);
	expect(NC_cache_dispatch(of) == 0);
	pthread_mutex_lock(&reported.lock);
	expect(reported.count < IDS_MAX);
	reported.ids[reported.count++] = id;
	reported.bytes += size;
	reported.by_reason[why]++;
	pthread_cond_signal(&reported.more);
	pthread_mutex_unlock(&reported.lock);
}

static unsigned report_count(void)
{
	unsigned count;

	pthread_mutex_lock(&reported.lock);
	count = reported.count;
	pthread_mutex_unlock(&reported.lock);
	return count;
}

/* --- one thread --------------------------------------------------------------------------- */

/* Dispatches until the callback was called that often. */
static void await_reports(unsigned count)
{
	while (report_count() < count) {
		struct pollfd wait = {.fd = NC_cache_fd(cache), .events = POLLIN};

		ck_assert_int_eq(poll(&wait, 1, 60000), 1);
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
	}
	ck_assert_uint_eq(report_count(), count);
}

static void open_reporting(size_t size)
{
	open_cache(size);
	ck_assert_int_eq(NC_cache_on_evict(cache, note, cache), 0);
}

START_TEST(test_memory)
{
	struct NC_cache_stat stat;
	unsigned known = 0;
	size_t ids[300];

	open_reporting(MIB);
	for (unsigned i = 0; i < 300; i++)
		ids[i] = insert_as(NULL, i, 20000, 0, _i ? NC_KIND_APPENDED : NC_KIND_RECYCLED);
	/* Not in the middle of other calls. */
	ck_assert_uint_eq(report_count(), 0);
	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	ck_assert_uint_gt(stat.evictions, 200);
	/* The cache evicts in advance, too, while it dispatches. */
	while (report_count() != stat.evictions) {
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
		ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	}
	ck_assert_uint_eq(reported.by_reason[NC_EVICTION_MEMORY], stat.evictions);
	ck_assert_uint_eq(reported.bytes, 20000 * stat.evictions);
	for (unsigned i = 0; i < 300; i++) {
		bool found = false;

		for (unsigned k = 0; k < reported.count; k++)
			found |= reported.ids[k] == ids[i];
		ck_assert_int_eq(found, !alive(ids[i]));
		known += found;
	}
	ck_assert_uint_eq(known, reported.count);
	close_cache();
	ck_assert_uint_eq(reported.count, known);
}
END_TEST

/* A held unit is reported when its id ends; one that the program destroys is not. */
START_TEST(test_lifetime)
{
	struct NC_hold hold, other;
	size_t expires, late, destroyed;

	open_reporting(4 * MIB);
	expires = insert(1, 1000);
	late = insert(2, 2000);
	destroyed = insert(3, 3000);
	ck_assert_int_eq(NC_hold(NULL, expires, &hold), 0);
	ck_assert_int_eq(NC_hold(NULL, destroyed, &other), 0);
	ck_assert_int_eq(NC_destroy(NULL, destroyed), 0);
	ck_assert_int_eq(NC_set_lifetime(NULL, late, 1), 0);
	while (alive(late))
		sched_yield();
	/* It had ended before the program could destroy it. */
	FAILS(NC_destroy(NULL, late), ENOENT);
	await_reports(1);
	ck_assert_uint_eq(reported.ids[0], late);
	ck_assert_int_eq(NC_set_lifetime(NULL, expires, 1), 0);
	await_reports(2);
	ck_assert_uint_eq(reported.ids[1], expires);
	ck_assert_uint_eq(reported.bytes, 3000);
	ck_assert_uint_eq(reported.by_reason[NC_EVICTION_LIFETIME], 2);
	ck_assert_int_eq(NC_release(&hold), 0);
	ck_assert_int_eq(NC_release(&other), 0);
	ck_assert_int_ge(NC_cache_dispatch(cache), 0);
	ck_assert_uint_eq(report_count(), 2);
	close_cache();
}
END_TEST

START_TEST(test_corrupt)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB, .flags = NC_CACHE_NO_THREAD,
				      .scrub_rate = 100 * MIB);
	uint32_t sum;
	NC_handle handle;
	char *bytes;
	size_t id;

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	ck_assert_int_eq(NC_cache_on_evict(cache, note, cache), 0);
	ck_assert_int_eq(NC_unit_alloc(NULL, &handle, 1000, 0, NC_KIND_RECYCLED, 0), 0);
	bytes = NC_fragment(&handle, 0, NULL);
	ck_assert_ptr_nonnull(bytes);
	memset(bytes, 'a', 1000);
	ck_assert_int_eq(NC_insert(&handle), 0);
	id = NC_cache_id(&handle);
	ck_assert_int_eq(NC_free(&handle), 0);
	ck_assert_int_eq(NC_checksum(NULL, id, &sum, NC_CHECKSUM_DEFAULT, 1000, 0), 0);
	bytes[7] = 'b';
	await_reports(1);
	ck_assert_uint_eq(reported.ids[0], id);
	ck_assert_uint_eq(reported.by_reason[NC_EVICTION_CORRUPT], 1);
	close_cache();
}
END_TEST

/* After NULL, no callback; nor for what waited. */
START_TEST(test_ended)
{
	open_reporting(MIB);
	for (unsigned i = 0; i < 300; i++)
		(void)insert(i, 20000);
	ck_assert_int_eq(NC_cache_on_evict(NULL, NULL, NULL), 0);
	ck_assert_int_ge(NC_cache_dispatch(cache), 0);
	for (unsigned i = 0; i < 300; i++)
		(void)insert(i, 20000);
	ck_assert_int_ge(NC_cache_dispatch(cache), 0);
	ck_assert_uint_eq(report_count(), 0);
	FAILS(NC_cache_on_evict((NC_cache *)&reported, note, NULL), EINVAL);
	/* What waits when the cache is closed is not reported. */
	ck_assert_int_eq(NC_cache_on_evict(NULL, note, NULL), 0);
	for (unsigned i = 0; i < 300; i++)
		(void)insert(i, 20000);
	close_cache();
	ck_assert_uint_eq(report_count(), 0);
}
END_TEST

/* --- other processes ---------------------------------------------------------------------- */

static size_t seal(NC_cache *by)
{
	return insert_as(by, 1, 1000, 0, NC_KIND_SEALED);
}

static void await_thread(unsigned count)
{
	while (report_count() < count)
		sched_yield();
	ck_assert_uint_eq(report_count(), count);
}

/* What other processes destroy has ended without the program's doing, too. */
START_TEST(test_others)
{
	struct NC_attach_options attach = NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_OPERATOR);
	NC_cache *member;
	size_t id, own;

	set_up();
	ck_assert_int_eq(NC_cache_on_evict(cache, note, cache), 0);
	watcher = NC_cache_attach(path, &attach);
	ck_assert_ptr_nonnull(watcher);
	member = NC_cache_attach(path, NULL);
	ck_assert_ptr_nonnull(member);
	FAILS(NC_cache_on_evict(member, note, NULL), EPERM);
	FAILS(NC_cache_on_evict(watcher, note, NULL), EPERM);
	id = insert(1, 1000);
	ck_assert_int_eq(NC_destroy(watcher, id), 0);
	await_thread(1);
	ck_assert_uint_eq(reported.ids[0], id);
	own = seal(member);
	ck_assert_int_eq(NC_destroy(member, own), 0);
	await_thread(2);
	ck_assert_uint_eq(reported.ids[1], own);
	ck_assert_uint_eq(reported.by_reason[NC_EVICTION_DESTROYED], 2);
	/* The owner's program destroys a member's unit. */
	own = seal(member);
	ck_assert_int_eq(NC_destroy(NULL, own), 0);
	ck_assert_int_eq(NC_cache_close(member), 0);
	tear_down();
	ck_assert_uint_eq(report_count(), 2);
}
END_TEST

/* --- many threads ------------------------------------------------------------------------- */

#define THREADS 4u
#define ROUNDS 2000u

struct maker {
	pthread_t thread;
	uint64_t state;
	size_t kept[ROUNDS]; /* ids that this thread has not destroyed */
	unsigned count;
};

/* Makes a unit; holds the program's lock in some of the calls, which the callback waits for. */
static const char *make_one(struct maker *maker)
{
	static const enum NC_kind kinds[] = {NC_KIND_RECYCLED, NC_KIND_APPENDED, NC_KIND_SEALED};
	uint64_t random = random_next(&maker->state);
	struct NC_insert_options options =
		NC_INSERT_OPTIONS_INIT(.lifetime = random % 8 == 0 ? random % 50 + 1 : 0);
	bool locks = random % 3 == 0, destroys = random % 5 == 0;
	NC_handle handle;
	size_t id;
	int failed;

	if (locks)
		pthread_mutex_lock(&reported.lock);
	failed = NC_unit_alloc(NULL, &handle, random % 30000 + 1, 0, kinds[random % 3], 0);
	if (locks)
		pthread_mutex_unlock(&reported.lock);
	if (failed)
		return errno == ENOMEM ? NULL : "alloc";
	if (NC_unit_insert_with(&handle, NC_WHOLE, &options) < 0)
		return "insert";
	id = NC_cache_id(&handle);
	if (NC_free(&handle) < 0)
		return "free";
	if (destroys && NC_destroy(NULL, id) == 0)
		return NULL;
	maker->kept[maker->count++] = id;
	return NULL;
}

static void *make_many(void *context)
{
	struct maker *maker = context;
	const char *complaint = NULL;

	for (unsigned i = 0; !complaint && i < scaled(ROUNDS); i++)
		complaint = make_one(maker);
	return (void *)complaint;
}

static int compare_ids(const void *a, const void *b)
{
	size_t first = *(const size_t *)a, second = *(const size_t *)b;

	return (first > second) - (first < second);
}

/*
 * Waits for one more report than were seen, and returns whether exactly the units that have
 * ended were reported, once each.
 */
static bool is_complete(const struct maker *makers, unsigned *seen)
{
	static size_t ids[IDS_MAX];
	unsigned count, dead = 0;

	/* A unit that has ended without a report gets one. */
	pthread_mutex_lock(&reported.lock);
	while (reported.count == *seen)
		pthread_cond_wait(&reported.more, &reported.lock);
	*seen = count = reported.count;
	memcpy(ids, reported.ids, count * sizeof(ids[0]));
	pthread_mutex_unlock(&reported.lock);
	qsort(ids, count, sizeof(ids[0]), compare_ids);
	for (unsigned i = 1; i < count; i++)
		ck_assert_uint_ne(ids[i], ids[i - 1]);
	for (unsigned i = 0; i < THREADS; i++)
		for (unsigned k = 0; k < makers[i].count; k++) {
			size_t id = makers[i].kept[k];

			if (!bsearch(&id, ids, count, sizeof(id), compare_ids) != alive(id))
				return false;
			dead += !alive(id);
		}
	/* All others that were reported are units that were destroyed. */
	ck_assert_uint_eq(dead, count);
	return true;
}

START_TEST(test_threads)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 2 * MIB, .max_descriptors = 64);
	static struct maker makers[THREADS];
	struct NC_cache_stat stat;
	unsigned seen = 0;
	void *complaint;

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	ck_assert_int_eq(NC_cache_on_evict(cache, note, cache), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		makers[i].state = i + 1;
		ck_assert_int_eq(pthread_create(&makers[i].thread, NULL, make_many, &makers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(makers[i].thread, &complaint), 0);
		ck_assert_msg(!complaint, "%s", (const char *)complaint);
	}
	while (!is_complete(makers, &seen))
		;
	ck_assert_int_eq(NC_cache_stat(NULL, &stat, sizeof(stat)), 0);
	ck_assert_uint_gt(stat.evictions, 0);
	ck_assert_uint_gt(stat.expired, 0);
	ck_assert_uint_eq(reported.by_reason[NC_EVICTION_LOST], 0);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

static _Atomic bool ended;
static _Atomic unsigned stray; /* calls of a callback that was replaced */

static void count_stray(void *context, size_t id, size_t size, enum NC_eviction why)
{
	(void)id;
	(void)size;
	(void)why;
	/* The program clears this after it has replaced the callback. */
	if (!atomic_load((_Atomic bool *)context))
		atomic_fetch_add(&stray, 1);
}

static void *evict_all(void *context)
{
	NC_handle handle;

	(void)context;
	while (!atomic_load(&ended))
		if (NC_unit_alloc(NULL, &handle, 20000, 0, NC_KIND_RECYCLED, 0) == 0 &&
		    (NC_insert(&handle) < 0 || NC_free(&handle) < 0))
			return "insert";
	return NULL;
}

/* A callback may be replaced at any moment, and is not called after that. */
START_TEST(test_replaced)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = MIB);
	pthread_t evictor;
	void *complaint;

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	ck_assert_int_eq(pthread_create(&evictor, NULL, evict_all, NULL), 0);
	for (unsigned i = 0; i < scaled(1000); i++) {
		_Atomic bool valid[2] = {true, true};

		ck_assert_int_eq(NC_cache_on_evict(cache, count_stray, &valid[0]), 0);
		sched_yield();
		ck_assert_int_eq(NC_cache_on_evict(cache, count_stray, &valid[1]), 0);
		atomic_store(&valid[0], false);
		sched_yield();
		ck_assert_int_eq(NC_cache_on_evict(cache, NULL, NULL), 0);
		atomic_store(&valid[1], false);
	}
	ck_assert_uint_eq(atomic_load(&stray), 0);
	atomic_store(&ended, true);
	pthread_join(evictor, &complaint);
	ck_assert_msg(!complaint, "%s", (const char *)complaint);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_memory, 0, 2);
	tcase_add_test(tcase, test_lifetime);
	tcase_add_test(tcase, test_corrupt);
	tcase_add_test(tcase, test_ended);
	tcase_add_test(tcase, test_others);
	tcase_add_test(tcase, test_threads);
	tcase_add_test(tcase, test_replaced);
}

RUN_SUITE("nabc-evict", fill)
