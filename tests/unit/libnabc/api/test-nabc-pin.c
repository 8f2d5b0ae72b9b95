/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-pin.c - NC_CACHE_PIN: what the kernel counts as locked is what the cache
 * reports, for its own segments, for those of members and for copies; with limits from
 * none to zero.  Each test runs in a process of its own.
 */
#include <nabc.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "nabc-fixture.h"
#include "pin-fixture.h"
#include "suite.h"

#define KIB ((size_t)1 << 10)
#define PAGE ((size_t)4096)
#define MEMBER_SIZE (256 * KIB)

static char directory[64], path[100];
static size_t before; /* bytes locked outside of the cache */

static void open_pinned(size_t size, unsigned flags)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = size, .member_size = MEMBER_SIZE,
				      .flags = NC_CACHE_NO_THREAD | NC_CACHE_NO_URING | flags,
				      .log = lock_hear, .log_context = lock_said);

	before = locked_now();
	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
}

static void close_pinned(void)
{
	close_cache();
	ck_assert_uint_eq(locked_now(), before);
}

static struct NC_cache_stat statistics(void)
{
	struct NC_cache_stat stat;

	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(locked_now(), before + stat.locked_bytes);
	return stat;
}

/* Sends a unit to this process and compares its bytes. */
static void check_served(size_t id, uint64_t seed, size_t size)
{
	char *got = must_alloc(size);
	int pair[2];

	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
	ck_assert_int_eq(NC_socksend(pair[0], id, 0, size), (ssize_t)size);
	read_exactly(pair[1], got, size);
	ck_assert_uint_eq(pattern_match(got, seed, 0, size), size);
	close_pair(pair);
	free(got);
}

START_TEST(test_off)
{
	struct NC_cache_stat stat;

	open_pinned(4 * MIB, 0);
	(void)insert(1, 100 * KIB);
	stat = statistics();
	ck_assert_uint_gt(stat.used, 0);
	ck_assert_uint_eq(stat.locked_bytes + stat.unlocked_bytes, 0);
	ck_assert_uint_eq(locked_now(), before);
	close_pinned();
}
END_TEST

START_TEST(test_own_segments)
{
	struct NC_cache_stat stat;
	size_t id;

	if (!may_lock(8 * MIB))
		return;
	open_pinned(8 * MIB, NC_CACHE_PIN);
	ck_assert_uint_eq(statistics().locked_bytes, 0);
	for (enum NC_kind kind = NC_KIND_RECYCLED; kind <= NC_KIND_SEALED; kind++)
		for (size_t size = 1; size <= MIB; size *= 32) {
			id = insert_as(NULL, size, size, 0, kind);
			check_served(id, size, size);
			ck_assert_uint_eq(statistics().locked_bytes, statistics().used);
		}
	/* Segments are closed, cleaned and opened. */
	for (unsigned i = 0; i < 300; i++) {
		id = insert_as(NULL, i, 90 * KIB + i, 0, i % 5 ? NC_KIND_APPENDED : NC_KIND_SEALED);
		if (i % 7 == 0)
			ck_assert_int_eq(NC_destroy(NULL, id), 0);
		stat = statistics();
		ck_assert_uint_eq(stat.locked_bytes, stat.used);
	}
	ck_assert_uint_ge(stat.segments_closed, 10);
	ck_assert_uint_ge(stat.evictions, 10);
	ck_assert_uint_eq(stat.unlocked_bytes, 0);
	ck_assert_uint_eq(lock_says, 0);
	close_pinned();
}
END_TEST

/* --- members ------------------------------------------------------------------------ */

struct work {
	void (*act)(void);
	int done;
};

static void *work(void *context)
{
	struct work *work = context;
	uint64_t one = 1;

	work->act();
	return write(work->done, &one, sizeof(one)) == sizeof(one) ? NULL : "eventfd";
}

/* The member's calls wait for the owner, which is this thread. */
static void as_member(void (*act)(void))
{
	struct work doing = {.act = act, .done = eventfd(0, EFD_CLOEXEC)};
	pthread_t thread;
	void *complaint;

	ck_assert_int_eq(pthread_create(&thread, NULL, work, &doing), 0);
	dispatch_until(doing.done);
	ck_assert_int_eq(pthread_join(thread, &complaint), 0);
	ck_assert_ptr_null(complaint);
	close(doing.done);
}

static NC_cache *member;
static size_t own_unit, sealed_unit;

static void attach(void)
{
	struct NC_attach_options options = NC_ATTACH_OPTIONS_INIT(.flags = 0);

	member = NC_cache_attach(path, &options);
}

static void insert_there(void)
{
	own_unit = insert_as(member, 1, 10 * KIB, 0, NC_KIND_RECYCLED);
}

static void seal_there(void)
{
	sealed_unit = insert_as(member, 2, 100000, 0, NC_KIND_SEALED);
}

static void grant_there(void)
{
	ck_assert_int_eq(NC_grant(member, own_unit, NC_USER, 4242), 0);
}

/* A member's segment, a unit that it sealed, and a copy that its grant made. */
START_TEST(test_members)
{
	struct NC_cache_stat stat;

	if (!may_lock(MIB))
		return;
	open_pinned(4 * MIB, NC_CACHE_PIN);
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/cache", directory);
	ck_assert_int_eq(NC_cache_serve(cache, path, NULL), 0);
	for (unsigned i = 0; i < 3; i++) {
		as_member(attach);
		ck_assert_ptr_nonnull(member);
		ck_assert_uint_eq(statistics().locked_bytes, MEMBER_SIZE);
		as_member(insert_there);
		check_served(own_unit, 1, 10 * KIB);
		ck_assert_uint_eq(statistics().locked_bytes, MEMBER_SIZE);
		as_member(seal_there);
		check_served(sealed_unit, 2, 100000);
		ck_assert_uint_eq(statistics().locked_bytes, MEMBER_SIZE + 25 * PAGE);
		as_member(grant_there);
		ck_assert_uint_eq(statistics().locked_bytes, MEMBER_SIZE + 28 * PAGE);
		ck_assert_int_eq(NC_destroy(cache, sealed_unit), 0);
		ck_assert_uint_eq(statistics().locked_bytes, MEMBER_SIZE + 3 * PAGE);
		ck_assert_int_eq(NC_cache_close(member), 0);
		do {
			await(NC_cache_fd(cache), POLLIN);
			ck_assert_int_ge(NC_cache_dispatch(cache), 0);
			stat = statistics();
		} while (stat.members);
		ck_assert_uint_eq(stat.locked_bytes + stat.unlocked_bytes, 0);
	}
	/* The owner's grant makes a copy, too. */
	own_unit = insert_as(NULL, 3, 10 * KIB, 0, NC_KIND_RECYCLED);
	stat = statistics();
	ck_assert_int_eq(NC_grant(NULL, own_unit, NC_USER, 4242), 0);
	ck_assert_uint_eq(statistics().locked_bytes, stat.locked_bytes + 3 * PAGE);
	ck_assert_int_eq(NC_destroy(NULL, own_unit), 0);
	ck_assert_uint_eq(statistics().locked_bytes, stat.locked_bytes);
	ck_assert_uint_eq(lock_says, 0);
	close_pinned();
	ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

/* --- limits ------------------------------------------------------------------------- */

/* What does not fit below the limit is served all the same, and is reported once. */
START_TEST(test_limit)
{
	struct NC_cache_stat stat;
	size_t small, large;

	limit_locked(64 * KIB + locked_now());
	open_pinned(MIB, NC_CACHE_PIN);
	small = insert_as(NULL, 1, 40 * KIB, 0, NC_KIND_SEALED);
	large = insert_as(NULL, 2, 40 * KIB, 0, NC_KIND_APPENDED);
	stat = statistics();
	ck_assert_uint_eq(stat.locked_bytes, 40 * KIB);
	ck_assert_uint_eq(stat.unlocked_bytes, 256 * KIB);
	ck_assert_str_eq(lock_message(1),
			 "40 KiB of 296 KiB of memory are locked, the rest is not and may be "
			 "swapped out: RLIMIT_MEMLOCK is 64 KiB; raise it to at least 1 MiB "
			 "(ulimit -l, LimitMEMLOCK=)");
	(void)insert_as(NULL, 3, 40 * KIB, 0, NC_KIND_SEALED);
	ck_assert_uint_eq(statistics().unlocked_bytes, 296 * KIB);
	check_served(small, 1, 40 * KIB);
	check_served(large, 2, 40 * KIB);
	/* Memory that is closed permits to lock other memory. */
	ck_assert_int_eq(NC_destroy(NULL, small), 0);
	ck_assert_uint_eq(statistics().locked_bytes, 0);
	small = insert_as(NULL, 4, 60 * KIB, 0, NC_KIND_SEALED);
	ck_assert_uint_eq(statistics().locked_bytes, 60 * KIB);
	check_served(small, 4, 60 * KIB);
	(void)lock_message(1);
	close_pinned();
}
END_TEST

START_TEST(test_limit_zero)
{
	struct NC_cache_stat stat;
	size_t id;

	limit_locked(0);
	open_pinned(4 * MIB, NC_CACHE_PIN);
	for (enum NC_kind kind = NC_KIND_RECYCLED; kind <= NC_KIND_SEALED; kind++) {
		id = insert_as(NULL, kind, 40 * KIB, 0, kind);
		check_served(id, kind, 40 * KIB);
	}
	stat = statistics();
	ck_assert_uint_eq(stat.locked_bytes, 0);
	ck_assert_uint_eq(stat.unlocked_bytes, stat.used);
	ck_assert_ptr_nonnull(strstr(lock_message(1), "RLIMIT_MEMLOCK is 0 KiB; raise it to at "
						      "least 4 MiB"));
	close_pinned();
}
END_TEST

/* A process with CAP_IPC_LOCK has no limit. */
START_TEST(test_capability)
{
	struct rlimit none = {0};

	if (geteuid() != 0)
		return;
	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	open_pinned(4 * MIB, NC_CACHE_PIN);
	(void)insert(1, 100 * KIB);
	ck_assert_uint_eq(statistics().locked_bytes, statistics().used);
	ck_assert_uint_eq(lock_says, 0);
	close_pinned();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_off);
	tcase_add_test(tcase, test_own_segments);
	tcase_add_test(tcase, test_members);
	tcase_add_test(tcase, test_limit);
	tcase_add_test(tcase, test_limit_zero);
	tcase_add_test(tcase, test_capability);
}

RUN_SUITE("nabc-pin", fill)
