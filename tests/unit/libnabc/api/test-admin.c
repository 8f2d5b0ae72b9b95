/* SPDX-License-Identifier: MIT */
/*
 * test-admin.c - unit tests of admin.c: the counters and units of the owner as an
 * operator sees them, and which callers are refused.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <nabc.h>

#include "api/registry.h"
#include "cache/grant.h"
#include "cache/index.h"
#include "send/route.h"

#include "admin-fixture.h"
#include "nabc-fixture.h"
#include "suite.h"
#include "unit-holds.h"

static void attach(void)
{
	struct NC_attach_options options = NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_OPERATOR);

	watcher = NC_cache_attach(path, &options);
	ck_assert_msg(watcher, "%s", strerror(errno));
}

START_TEST(test_counters)
{
	struct NC_cache_stat here, there;
	size_t id;

	set_up();
	for (unsigned i = 0; i < 5; i++)
		id = insert(i, 100 + i);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	FAILS(NC_destroy(NULL, id), ENOENT);
	attach();
	memset(&there, 0x55, sizeof(there));
	ck_assert_int_eq(NC_cache_stat(watcher, &there, sizeof(there)), 0);
	ck_assert_int_eq(NC_cache_stat(cache, &here, sizeof(here)), 0);
	ck_assert_uint_eq(there.inserts, 5);
	ck_assert_uint_eq(there.destroys, 1);
	ck_assert_uint_eq(there.stale, 1);
	ck_assert_uint_eq(there.members, 1);
	ck_assert_str_eq(there.uring, here.uring);
	ck_assert_mem_eq(&there, &here, sizeof(here));
	FAILS(NC_cache_stat(watcher, NULL, 1), EINVAL);
	tear_down();
}
END_TEST

/* Inspection exports nothing: the unit is not copied for it. */
START_TEST(test_unit)
{
	struct NC_stat here, there;
	struct NC_cache_stat counters;
	size_t id;

	set_up();
	id = insert(1, 100000);
	ck_assert_int_eq(hold_id(NULL, id), 0);
	attach();
	ck_assert_int_eq(NC_stat(watcher, id, &there, sizeof(there)), 0);
	ck_assert_int_eq(NC_stat(NULL, id, &here, sizeof(here)), 0);
	ck_assert_mem_eq(&there, &here, sizeof(here));
	ck_assert_uint_eq(there.holds, 1);
	ck_assert_int_eq(there.kind, NC_KIND_APPENDED);
	ck_assert_int_eq(NC_cache_stat(watcher, &counters, sizeof(counters)), 0);
	ck_assert_uint_eq(counters.units, 1);
	ck_assert_uint_eq(atomic_load(&cache->index.grants.count), 0);
	ck_assert_int_eq(release_id(NULL, id), 0);
	FAILS(NC_stat(watcher, id + 1, &there, sizeof(there)), ENOENT);
	FAILS(NC_stat(watcher, 0, &there, sizeof(there)), ENOENT);
	FAILS(NC_stat(watcher, SIZE_MAX, &there, sizeof(there)), ENOENT);
	FAILS(NC_stat(watcher, id, NULL, 1), EINVAL);
	tear_down();
}
END_TEST

static size_t seal(NC_cache *by, size_t size)
{
	NC_handle handle;
	size_t id;

	ck_assert_int_eq(NC_unit_alloc(by, &handle, size, 0, NC_KIND_SEALED, 0), 0);
	ck_assert_int_eq(NC_insert(&handle), 0);
	id = NC_cache_id(&handle);
	ck_assert_int_eq(NC_free(&handle), 0);
	return id;
}

static uint64_t pinned(void)
{
	struct NC_cache_stat stat;

	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	return stat.pinned;
}

/*
 * An operator sets the retention of any unit; a member only that of its own, and not
 * so that they evict others' units.
 */
START_TEST(test_keep)
{
	struct NC_attach_options light = NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_LIGHT);
	NC_cache *member;
	size_t id, own;

	set_up();
	id = insert(1, 1000);
	attach();
	member = NC_cache_attach(path, &light);
	ck_assert_ptr_nonnull(member);
	own = seal(member, 1000);
	ck_assert_int_eq(NC_set_priority(watcher, id, NC_PRIORITY_PINNED), 0);
	ck_assert_int_eq(NC_set_priority(watcher, own, NC_PRIORITY_PINNED), 0);
	ck_assert_uint_eq(pinned(), 2);
	ck_assert_int_eq(NC_set_priority(member, own, NC_PRIORITY_LOW), 0);
	ck_assert_uint_eq(pinned(), 1);
	ck_assert_int_eq(NC_set_priority(member, own, NC_PRIORITY_NORMAL), 0);
	FAILS(NC_set_priority(member, own, NC_PRIORITY_HIGH), EPERM);
	FAILS(NC_set_priority(member, own, NC_PRIORITY_PINNED), EPERM);
	FAILS(NC_set_priority(member, own, (enum NC_priority)(NC_PRIORITY_PINNED + 1)), EINVAL);
	FAILS(NC_set_priority(member, own, (enum NC_priority) - 1), EINVAL);
	FAILS(NC_set_priority(watcher, own, (enum NC_priority) - 1), EINVAL);
	/* A member cannot set that of another's unit, granted or not. */
	ck_assert_int_eq(NC_grant(cache, id, NC_USER, geteuid()), 0);
	FAILS(NC_set_priority(member, id, NC_PRIORITY_LOW), EACCES);
	FAILS(NC_set_lifetime(member, id, 1), EACCES);
	FAILS(NC_set_lifetime(member, 12345, 1), EACCES);
	FAILS(NC_set_lifetime(watcher, 12345, 1), ENOENT);
	FAILS(NC_set_lifetime(watcher, id, UINT64_MAX), EINVAL);
	FAILS(NC_set_lifetime(member, own, UINT64_MAX), EINVAL);
	ck_assert_uint_eq(pinned(), 1);
	ck_assert_int_eq(NC_set_lifetime(member, own, 1), 0);
	ck_assert_int_eq(NC_set_lifetime(watcher, id, 1), 0);
	while (alive(own) || alive(id))
		sched_yield();
	/* An expired unit has no owner, shortly after it has become invalid. */
	ck_assert_int_lt(NC_set_lifetime(member, own, 1), 0);
	ck_assert(errno == EACCES || errno == ENOENT);
	/* The collector counts them out later. */
	while (pinned() > 0)
		sched_yield();
	ck_assert_int_eq(NC_cache_close(member), 0);
	tear_down();
}
END_TEST

/* More routes than fit into one reply, in the owner's order. */
START_TEST(test_routes)
{
	struct NC_route here[NC_ROUTES], there[NC_ROUTES + 1];
	char address[32];

	set_up();
	attach();
	ck_assert_int_eq(NC_routes(watcher, NULL, 1, 0), 0);
	for (unsigned i = 0; i < NC_ROUTES; i++) {
		snprintf(address, sizeof(address), "192.0.2.%u", i + 1);
		ck_assert_int_eq(NC_route_set(watcher, address, NC_METHOD_COPY), 0);
	}
	FAILS(NC_route_set(watcher, "198.51.100.1", NC_METHOD_COPY), ENOSPC);
	ck_assert_int_eq(NC_routes(cache, here, sizeof(*here), NC_ROUTES), NC_ROUTES);
	memset(there, 0x55, sizeof(there));
	ck_assert_int_eq(NC_routes(watcher, there, sizeof(*there), NC_ROUTES + 1), NC_ROUTES);
	for (unsigned i = 0; i < NC_ROUTES; i++) {
		ck_assert_str_eq(there[i].address, here[i].address);
		ck_assert_int_eq(there[i].method, NC_METHOD_COPY);
		ck_assert_mem_eq(there[i].octets, here[i].octets, sizeof(here[i].octets));
		ck_assert_str_eq(there[i].why, here[i].why);
	}
	/* With room for fewer routes, the returned number is still that of all. */
	memset(there, 0x55, sizeof(there));
	ck_assert_int_eq(NC_routes(watcher, there, sizeof(*there), 2), NC_ROUTES);
	ck_assert_str_eq(there[1].address, here[1].address);
	ck_assert_int_eq(there[2].method, 0x55555555);
	ck_assert_int_eq(NC_routes(watcher, NULL, 1, 0), NC_ROUTES);
	ck_assert_int_eq(NC_route_set(watcher, "192.0.2.1", NC_ROUTE_LEARN), 0);
	FAILS(NC_routes(watcher, NULL, 1, 1), EINVAL);
	FAILS(NC_route_set(watcher, NULL, NC_METHOD_COPY), EINVAL);
	FAILS(NC_route_set(watcher, "", NC_METHOD_COPY), EINVAL);
	FAILS(NC_route_set(watcher, "nowhere", NC_METHOD_COPY), EINVAL);
	FAILS(NC_route_set(watcher,
			   "a text that is longer than that of any address of any family there is",
			   NC_METHOD_COPY),
	      EINVAL);
	FAILS(NC_route_set(watcher, "192.0.2.1", NC_METHOD_KERNEL), EOPNOTSUPP);
	FAILS(NC_route_set(watcher, "192.0.2.1", NC_METHOD_KERNEL + 1), EINVAL);
	FAILS(NC_route_set(watcher, "192.0.2.1", INT32_MIN), EINVAL);
	tear_down();
}
END_TEST

/* An owner that has stopped dispatching, and then has exited. */
START_TEST(test_no_owner)
{
	struct NC_cache_stat stat;
	struct NC_route route;
	struct NC_stat unit;
	size_t id;

	set_up();
	id = insert(1, 10);
	attach();
	end_dispatch();
	close_cache();
	FAILS(NC_routes(watcher, &route, sizeof(route), 1), EPIPE);
	FAILS(NC_route_set(watcher, "unix", NC_METHOD_COPY), EPIPE);
	FAILS(NC_purge(watcher, "a"), EPIPE);
	FAILS(NC_cache_stat(watcher, &stat, sizeof(stat)), EPIPE);
	FAILS(NC_stat(watcher, id, &unit, sizeof(unit)), EPIPE);
	ck_assert_int_eq(NC_cache_close(watcher), 0);
	watcher = NULL;
	ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

/* --- purging by name ----------------------------------------------------------------- */

static char forgotten[NC_PURGE_MAX + 2];

static int note_name(void *context, const char *name)
{
	snprintf(forgotten, sizeof(forgotten), "%s", name);
	return *(int *)context;
}

START_TEST(test_purge)
{
	struct NC_attach_options light = NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_LIGHT);
	char name[NC_PURGE_MAX + 2];
	NC_cache *member;
	int result = 7;

	set_up();
	attach();
	FAILS(NC_purge(watcher, "a"), EOPNOTSUPP);
	FAILS(NC_purge(cache, "a"), EOPNOTSUPP);
	FAILS(NC_cache_on_purge(watcher, note_name, &result), EPERM);
	ck_assert_int_eq(NC_cache_on_purge(cache, note_name, &result), 0);
	ck_assert_int_eq(NC_purge(watcher, "http://a/b?c"), 7);
	ck_assert_str_eq(forgotten, "http://a/b?c");
	ck_assert_int_eq(NC_purge(cache, "tag"), 7);
	ck_assert_str_eq(forgotten, "tag");
	ck_assert_int_eq(NC_purge(watcher, ""), 7);
	ck_assert_str_eq(forgotten, "");
	memset(name, 'x', sizeof(name));
	name[NC_PURGE_MAX + 1] = '\0';
	FAILS(NC_purge(watcher, name), EINVAL);
	FAILS(NC_purge(cache, name), EINVAL);
	name[NC_PURGE_MAX] = '\0';
	ck_assert_int_eq(NC_purge(watcher, name), 7);
	ck_assert_str_eq(forgotten, name);
	FAILS(NC_purge(watcher, NULL), EINVAL);
	result = -ENOENT;
	FAILS(NC_purge(watcher, "a"), ENOENT);
	FAILS(NC_purge(cache, "a"), ENOENT);
	/* Members without privileges cannot purge, not even their own units. */
	member = NC_cache_attach(path, &light);
	ck_assert_ptr_nonnull(member);
	forgotten[0] = '\0';
	FAILS(NC_purge(member, "a"), EPERM);
	ck_assert_str_eq(forgotten, "");
	ck_assert_int_eq(NC_cache_close(member), 0);
	ck_assert_int_eq(NC_cache_on_purge(cache, NULL, NULL), 0);
	FAILS(NC_purge(watcher, "a"), EOPNOTSUPP);
	tear_down();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_counters);
	tcase_add_test(tcase, test_unit);
	tcase_add_test(tcase, test_keep);
	tcase_add_test(tcase, test_routes);
	tcase_add_test(tcase, test_purge);
	tcase_add_test(tcase, test_no_owner);
}

RUN_SUITE("admin", fill)
