/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-name.c - names of units, in the owner, in its members and in processes that were
 * forked in advance: what others get while names change and units end, and who may change them.
 */
#include <errno.h>
#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grants-fixture.h"
#include "nabc-fixture.h"
#include "process-fixture.h"
#include "suite.h"

#define SIZE 3000u

/* Whether the name is that of a unit of this pattern, in one run of memory. */
static bool has(NC_cache *in, const char *name, uint64_t seed)
{
	struct NC_hold hold;
	const void *data;
	size_t run;
	bool same;

	if (NC_name_hold(in, name, &hold, NULL) < 0)
		return false;
	data = NC_data(&hold, &run, 0);
	same = data && run == SIZE && pattern_match(data, seed, 0, SIZE) == SIZE;
	return NC_release(&hold) == 0 && same;
}

static size_t insert_granted(uint64_t seed)
{
	size_t id = insert_in(cache, seed, SIZE, NC_KIND_SEALED);

	ck_assert_int_eq(NC_grant(cache, id, NC_USER, geteuid()), 0);
	return id;
}

START_TEST(test_owner)
{
	static char longest[NC_NAME_MAX + 2];
	struct NC_hold hold = {{0}};
	size_t id, other, found = 7;

	open_cache(MIB);
	id = insert_as(NULL, 1, SIZE, 0, NC_KIND_AUTO);
	other = insert_as(NULL, 2, SIZE, 0, NC_KIND_AUTO);
	FAILS(NC_name_hold(NULL, "a", &hold, &found), ENOENT);
	ck_assert_uint_eq(found, 7);
	ck_assert_int_eq(NC_name_set(NULL, "a", id, NC_NAME_NEW), 0);
	ck_assert_int_eq(NC_name_hold(NULL, "a", &hold, &found), 0);
	ck_assert_uint_eq(found, id);
	FAILS(NC_name_set(NULL, "a", other, NC_NAME_NEW), EEXIST);
	ck_assert_int_eq(NC_name_set(NULL, "a", other, 0), 0);
	ck_assert(has(NULL, "a", 2));
	/* What is held is the unit, not the name. */
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	ck_assert_int_eq(NC_release(&hold), 0);
	FAILS(NC_name_remove(NULL, "a", id), ENOENT);
	ck_assert_int_eq(NC_name_set(NULL, "b", other, 0), 0);
	ck_assert_int_eq(NC_name_remove(NULL, "a", other), 0);
	FAILS(NC_name_hold(NULL, "a", &hold, NULL), ENOENT);
	ck_assert(has(NULL, "b", 2));
	ck_assert_int_eq(NC_destroy(NULL, other), 0);
	FAILS(NC_name_hold(NULL, "b", &hold, NULL), ENOENT);
	FAILS(NC_name_set(NULL, "b", other, 0), ENOENT);
	FAILS(NC_name_remove(NULL, "b", 0), ENOENT);
	/* Arguments. */
	id = insert_as(NULL, 3, SIZE, 0, NC_KIND_AUTO);
	memset(longest, 'n', NC_NAME_MAX + 1);
	FAILS(NC_name_set(NULL, NULL, id, 0), EINVAL);
	FAILS(NC_name_set(NULL, "", id, 0), EINVAL);
	FAILS(NC_name_set(NULL, longest, id, 0), EINVAL);
	FAILS(NC_name_set(NULL, "a", id, 2), EINVAL);
	FAILS(NC_name_set(NULL, "a", 0, 0), ENOENT);
	FAILS(NC_name_hold(NULL, NULL, &hold, NULL), EINVAL);
	FAILS(NC_name_hold(NULL, "a", NULL, NULL), EINVAL);
	FAILS(NC_name_hold(NULL, longest, &hold, NULL), EINVAL);
	FAILS(NC_name_remove(NULL, "", id), EINVAL);
	FAILS(NC_name_set((NC_cache *)longest, "a", id, 0), EINVAL);
	longest[NC_NAME_MAX] = '\0';
	ck_assert_int_eq(NC_name_set(NULL, longest, id, 0), 0);
	ck_assert(has(NULL, longest, 3));
	close_cache();
}
END_TEST

START_TEST(test_members)
{
	size_t id, mine, plain, found;
	NC_cache *one, *two;
	struct NC_hold hold;

	open_owners();
	one = join(0, 0);
	two = join(0, NC_ATTACH_LIGHT);
	id = insert_granted(1);
	ck_assert_int_eq(NC_name_set(cache, "a", id, 0), 0);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert(has(one, "a", 1));
		ck_assert(has(two, "a", 1));
	}
	/* A member's own units: sealed ones, and those of its segment. */
	mine = insert_in(one, 2, SIZE, NC_KIND_SEALED);
	plain = insert_in(one, 3, SIZE, NC_KIND_RECYCLED);
	ck_assert_int_eq(NC_name_set(one, "mine", mine, 0), 0);
	ck_assert_int_eq(NC_name_set(one, "plain", plain, 0), 0);
	ck_assert(has(one, "mine", 2) && has(one, "plain", 3));
	ck_assert(has(cache, "mine", 2) && has(cache, "plain", 3));
	/* Others need a grant, too. */
	FAILS(NC_name_hold(two, "mine", &hold, NULL), ENOENT);
	FAILS(NC_name_hold(two, "plain", &hold, NULL), ENOENT);
	FAILS(NC_name_set(two, "b", mine, 0), EACCES);
	ck_assert_int_eq(NC_grant(one, mine, NC_USER, geteuid()), 0);
	ck_assert_int_eq(NC_grant(one, plain, NC_USER, geteuid()), 0);
	ck_assert(has(two, "mine", 2) && has(two, "plain", 3));
	ck_assert_int_eq(NC_name_set(two, "b", mine, NC_NAME_NEW), 0);
	FAILS(NC_name_set(two, "a", mine, NC_NAME_NEW), EEXIST);
	/* A revoked one is gone; granted again, it is back, although an old hold lasts. */
	ck_assert_int_eq(NC_name_hold(two, "mine", &hold, &found), 0);
	ck_assert_uint_eq(found, mine);
	ck_assert_int_eq(NC_revoke(one, mine, NC_USER, geteuid()), 0);
	ck_assert(!has(two, "mine", 2));
	ck_assert_int_eq(NC_release(&hold), 0);
	ck_assert_int_eq(NC_grant(one, mine, NC_USER, geteuid()), 0);
	ck_assert(has(two, "mine", 2));
	/* Units end, and take their names along. */
	ck_assert_int_eq(NC_destroy(one, plain), 0);
	FAILS(NC_name_hold(one, "plain", &hold, NULL), ENOENT);
	FAILS(NC_name_hold(two, "plain", &hold, NULL), ENOENT);
	FAILS(NC_name_remove(one, "plain", 0), ENOENT);
	ck_assert_int_eq(NC_name_remove(two, "b", mine), 0);
	ck_assert_int_eq(NC_destroy(one, mine), 0);
	FAILS(NC_name_hold(two, "mine", &hold, NULL), ENOENT);
	ck_assert_int_eq(NC_cache_close(two), 0);
	ck_assert_int_eq(NC_cache_close(one), 0);
	close_owners();
}
END_TEST

/* --- names that change while others look --------------------------------------------------- */

#define READERS 3u

static _Atomic bool changing;
static NC_cache *readers[READERS];

/* While the name has a unit at all times, holds find one, and its bytes are whole. */
static void *read_all(void *context)
{
	NC_cache *in = *(NC_cache **)context;
	unsigned char first;
	struct NC_hold hold;
	const void *data;
	size_t run;

	while (atomic_load(&changing)) {
		if (NC_name_hold(in, "busy", &hold, NULL) < 0)
			return strerror(errno);
		data = NC_data(&hold, &run, 0);
		if (!data || run != SIZE)
			return "no data";
		memcpy(&first, data, 1);
		if (memcmp(data, (const char *)data + 1, SIZE - 1) != 0)
			return "other bytes";
		if (NC_release(&hold) < 0)
			return "not released";
	}
	return NULL;
}

static size_t insert_same(unsigned char byte)
{
	NC_handle handle;
	char data[SIZE];
	size_t id;

	memset(data, byte, sizeof(data));
	ck_assert_int_eq(NC_unit_alloc(cache, &handle, SIZE, 0, NC_KIND_SEALED, 0), 0);
	ck_assert_int_eq(NC_write(&handle, data, SIZE, 0), SIZE);
	ck_assert_int_eq(NC_insert(&handle), 0);
	id = NC_cache_id(&handle);
	ck_assert_int_eq(NC_free(&handle), 0);
	ck_assert_int_eq(NC_grant(cache, id, NC_USER, geteuid()), 0);
	return id;
}

START_TEST(test_nothing_is_lost)
{
	pthread_t threads[READERS];
	size_t id, next;
	void *complaint;

	open_owners();
	readers[0] = cache;
	readers[1] = join(0, NC_ATTACH_LIGHT);
	readers[2] = join(0, NC_ATTACH_LIGHT);
	id = insert_same(0);
	ck_assert_int_eq(NC_name_set(cache, "busy", id, 0), 0);
	atomic_store(&changing, true);
	for (unsigned i = 0; i < READERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, read_all, &readers[i]), 0);
	for (unsigned i = 1; i < 3000; i++) {
		next = insert_same((unsigned char)i);
		ck_assert_int_eq(NC_name_set(cache, "busy", next, 0), 0);
		ck_assert_int_eq(NC_destroy(cache, id), 0);
		id = next;
	}
	atomic_store(&changing, false);
	for (unsigned i = 0; i < READERS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], &complaint), 0);
		ck_assert_msg(!complaint, "%s", (const char *)complaint);
	}
	ck_assert_int_eq(NC_cache_close(readers[1]), 0);
	ck_assert_int_eq(NC_cache_close(readers[2]), 0);
	close_owners();
}
END_TEST

/* --- processes -------------------------------------------------------------------------------- */

#define CHILDREN 4u
#define UNITS 60u

static unsigned number; /* of the child */

/* Runs a function in a child, while a thread of this process does the owner's work. */
static void in_process(void (*function)(void))
{
	pid_t child;
	int status;

	/* See fork_alone(). */
	stop_dispatching();
	child = fork_alone();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		function();
		_exit(0);
	}
	start_dispatching();
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}

/* Finds what the parent and the other children have made, and adds a page of its own. */
static void work(void)
{
	NC_cache *in = NC_cache_attach(path[0], NULL);
	struct NC_hold hold;
	NC_handle handle;
	char name[20];

	GOOD(in);
	for (unsigned i = 0; i < 2 * UNITS; i++) {
		snprintf(name, sizeof(name), "/page/%u", i % UNITS);
		GOOD(has(in, name, i % UNITS));
	}
	for (unsigned i = 0; i < number; i++) {
		snprintf(name, sizeof(name), "/child/%u", i);
		GOOD(NC_name_hold(in, name, &hold, NULL) == 0 && NC_release(&hold) == 0);
	}
	GOOD(NC_unit_alloc(in, &handle, SIZE, 0, NC_KIND_SEALED, 0) == 0);
	GOOD(NC_insert(&handle) == 0);
	GOOD(NC_grant(in, NC_cache_id(&handle), NC_USER, geteuid()) == 0);
	snprintf(name, sizeof(name), "/child/%u", number);
	GOOD(NC_name_set(in, name, NC_cache_id(&handle), NC_NAME_NEW) == 0);
	GOOD(NC_free(&handle) == 0);
}

START_TEST(test_prefork)
{
	char name[20];

	open_owners();
	for (unsigned i = 0; i < UNITS; i++) {
		snprintf(name, sizeof(name), "/page/%u", i);
		ck_assert_int_eq(NC_name_set(cache, name, insert_granted(i), 0), 0);
	}
	for (number = 0; number < CHILDREN; number++)
		in_process(work);
	close_owners();
}
END_TEST

/* A process of another user gets what is granted to it, and changes no name. */
static void be_another_user(void)
{
	struct NC_hold hold;
	NC_handle handle;
	NC_cache *in;

	GOOD(setgid(1001) == 0 && setuid(1001) == 0);
	in = NC_cache_attach(path[0], NULL);
	GOOD(in && has(in, "theirs", 2));
	GOOD(NC_name_hold(in, "others", &hold, NULL) < 0 && errno == ENOENT);
	GOOD(NC_unit_alloc(in, &handle, SIZE, 0, NC_KIND_SEALED, 0) == 0);
	GOOD(NC_insert(&handle) == 0);
	GOOD(NC_name_set(in, "theirs", NC_cache_id(&handle), 0) < 0 && errno == EPERM);
	GOOD(NC_name_set(in, "new", NC_cache_id(&handle), NC_NAME_NEW) < 0 && errno == EPERM);
	GOOD(NC_name_remove(in, "theirs", 0) < 0 && errno == EPERM);
}

START_TEST(test_another_user)
{
	const uid_t users[] = {1001};
	const struct NC_serve_options options =
		NC_SERVE_OPTIONS_INIT(.mode = 0666, .users = users, .user_count = 1);
	size_t id;

	if (geteuid() != 0) {
		printf("test-nabc-name: skipped: only root can become another user\n");
		return;
	}
	make_directory(directory);
	ck_assert_int_eq(chmod(directory, 0755), 0);
	snprintf(path[0], sizeof(path[0]), "%s/0", directory);
	cache = NC_cache_open(
		&(struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB,
								.flags = NO_THREAD_TO_FORK));
	second = NC_cache_open(
		&(struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.flags = NC_CACHE_NO_THREAD));
	ck_assert(cache && second);
	ck_assert_int_eq(NC_cache_serve(cache, path[0], &options), 0);
	start_dispatching();
	ck_assert_int_eq(NC_name_set(cache, "others", insert_granted(1), 0), 0);
	id = insert_granted(2);
	ck_assert_int_eq(NC_grant(cache, id, NC_USER, 1001), 0);
	ck_assert_int_eq(NC_name_set(cache, "theirs", id, 0), 0);
	in_process(be_another_user);
	ck_assert(has(cache, "theirs", 2));
	close_owners();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_owner);
	tcase_add_test(tcase, test_members);
	tcase_add_test(tcase, test_nothing_is_lost);
	tcase_add_test(tcase, test_prefork);
	tcase_add_test(tcase, test_another_user);
}

RUN_SUITE("nabc-name", fill)
