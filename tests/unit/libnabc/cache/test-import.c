/* SPDX-License-Identifier: MIT */
/*
 * test-import.c - unit tests of import.c: sealed units that a member creates and uses,
 * whose owner is a thread at the other end of a socket pair.  Units that are
 * destroyed, revoked, evicted and returned while threads use them.
 */
#include <nabc-worker.h>
#include <nabc.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fragment.h"
#include "base/hash-table.h"
#include "base/id.h"
#include "cache/grant.h"
#include "cache/import.h"
#include "cache/index.h"
#include "os/identity.h"
#include "policy/expiry.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/revocation-map.h"
#include "store/store.h"
#include "store/unit.h"
#include "wire/rpc-client.h"

#include "rpc-fixture.h"
#include "suite.h"

static struct caller caller;
static struct nc_rpc_client rpc;
static struct nc_imports imports;
static pthread_t owner;
static _Atomic bool serving;

static void *serve_all(void *context)
{
	(void)context;
	while (atomic_load(&serving)) {
		struct pollfd wait = {.fd = caller.socket[0], .events = POLLIN};

		if (poll(&wait, 1, 5) > 0)
			(void)serve(&caller);
	}
	return NULL;
}

static void start_owner(void)
{
	atomic_store(&serving, true);
	ck_assert_int_eq(pthread_create(&owner, NULL, serve_all, NULL), 0);
}

static void stop_owner(void)
{
	atomic_store(&serving, false);
	pthread_join(owner, NULL);
}

static void open_all(void)
{
	open_owner();
	caller_open(&caller, 1000);
	nc_rpc_client_init(&rpc);
	nc_rpc_client_open(&rpc, caller.socket[1]);
	nc_imports_init(&imports, &rpc);
	start_owner();
}

static void close_all(void)
{
	stop_owner();
	nc_imports_fini(&imports);
	nc_rpc_client_fini(&rpc);
	caller_close(&caller);
	nc_index_fini(&cache);
}

static size_t made(uint64_t seed, size_t size)
{
	struct nc_layout layout;
	struct nc_unit *unit;
	size_t id;

	ck_assert_int_eq(nc_layout_init(&layout, size, 0), 0);
	ck_assert_int_eq(nc_imports_alloc(&imports, &layout, &unit), 0);
	pattern_fill(nc_unit_base(unit), seed, 0, size);
	ck_assert_int_eq(nc_imports_insert(&imports, unit, NULL, &id), 0);
	ck_assert_uint_eq(imports.filling, 0);
	return id;
}

static int hold(size_t id)
{
	struct nc_unit *unit;
	int error = nc_imports_hold(&imports, id, false, &unit);

	if (!error)
		ck_assert_int_eq(nc_imports_release(&imports, id), 0);
	return error;
}

static void check_held(size_t id, uint64_t seed, size_t size)
{
	struct nc_unit *unit;

	ck_assert_int_eq(nc_imports_hold(&imports, id, false, &unit), 0);
	ck_assert_uint_eq(unit->layout.size, size);
	ck_assert_uint_eq(pattern_match(nc_unit_base(unit), seed, 0, size), size);
	ck_assert_int_eq(nc_imports_release(&imports, id), 0);
}

/* The exports of the owner: occupied slots of the revocation map. */
static unsigned slots_taken(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < NC_REVOCATION_MAP_SLOTS / 64; i++)
		count += (unsigned)__builtin_popcountll(caller.subject.revocations.used[i]);
	return count;
}

START_TEST(test_make_and_use)
{
	struct nc_unit *unit;
	unsigned descriptors;
	size_t id, other;

	open_all();
	id = made(1, 9000);
	check_held(id, 1, 9000);
	ck_assert_int_eq(nc_imports_hold(&imports, id, false, &unit), 0);
	ck_assert(!writable(nc_unit_base(unit)));
	ck_assert_int_eq(nc_imports_release(&imports, id), 0);
	ck_assert_int_eq(nc_imports_release(&imports, id), -EINVAL);
	ck_assert_int_eq(nc_imports_release(&imports, id + 1), -EINVAL);
	/* Units of others: fetched once if there is a grant. */
	other = make_own(2, 5000);
	ck_assert_int_eq(hold(other), -EACCES);
	ck_assert_int_eq(hold(nc_id(0, 77, 7)), -EACCES);
	ck_assert_int_eq(hold(nc_id(9, 77, 7)), -EACCES);
	ck_assert_int_eq(hold(SIZE_MAX), -EACCES);
	caller.subject.operates = true;
	check_held(other, 2, 5000);
	/* Without the owner, which may still have to close descriptors that it has passed. */
	stop_owner();
	descriptors = open_descriptors();
	check_held(other, 2, 5000);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	ck_assert_uint_eq(slots_taken(), 2);
	start_owner();
	close_all();
}
END_TEST

/* For any way to remove a unit: the next use is refused and existing holds stay valid. */
START_TEST(test_taken_away)
{
	struct nc_grantee to = {.principal = NC_USER, .who = 1000, .pidfd = -1};
	struct nc_unit *unit, *again;
	size_t id;

	open_all();
	id = made(3, 5000);
	ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
	ck_assert_int_eq(hold(id), -ENOENT);
	ck_assert_int_eq(hold(id), -EACCES);
	id = made(4, 5000);
	ck_assert_int_eq(nc_imports_hold(&imports, id, false, &unit), 0);
	ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
	ck_assert_int_eq(nc_imports_hold(&imports, id, false, &again), -ENOENT);
	ck_assert_int_eq(nc_imports_hold(&imports, id, true, &again), 0);
	ck_assert_ptr_eq(again, unit);
	ck_assert_uint_eq(pattern_match(nc_unit_base(unit), 4, 0, 5000), 5000);
	ck_assert_int_eq(nc_imports_release(&imports, id), 0);
	ck_assert_int_eq(nc_imports_release(&imports, id), 0);
	ck_assert_int_eq(nc_imports_hold(&imports, id, true, &again), -ENOENT);
	ck_assert_uint_eq(slots_taken(), 0);
	/* Revoked, and granted again. */
	stop_owner();
	id = make_sealed(&caller, 5, 5000);
	nc_grants_part(&cache.grants, &caller.subject, no_orphan, NULL);
	caller.subject.who.pidfd = -1;
	caller.subject.sealed = 0;
	nc_rpc_client_fini(&rpc);
	nc_rpc_client_init(&rpc);
	nc_rpc_client_open(&rpc, caller.socket[1]);
	nc_grants_join(&cache.grants, &caller.subject);
	start_owner();
	ck_assert_int_eq(hold(id), -EACCES);
	ck_assert_int_eq(nc_grants_add(&cache.grants, id, &to), 0);
	ck_assert_int_eq(nc_imports_hold(&imports, id, false, &unit), 0);
	ck_assert_int_eq(nc_grants_revoke(&cache.grants, id, &to), 0);
	ck_assert_int_eq(nc_imports_hold(&imports, id, false, &again), -EACCES);
	ck_assert_int_eq(nc_grants_add(&cache.grants, id, &to), 0);
	/* Not while the old hold exists; then it is fetched again. */
	ck_assert_int_eq(nc_imports_hold(&imports, id, false, &again), -EACCES);
	ck_assert_int_eq(nc_imports_release(&imports, id), 0);
	check_held(id, 5, 5000);
	ck_assert_uint_eq(slots_taken(), 1);
	close_all();
}
END_TEST

START_TEST(test_refused)
{
	struct nc_layout layout;
	struct nc_unit *unit;
	unsigned descriptors;
	size_t id;

	open_all();
	descriptors = open_descriptors();
	/* Over the quota: the caller may retry, or abandon it. */
	caller.subject.quota = 0;
	ck_assert_int_eq(nc_layout_init(&layout, 5000, 0), 0);
	ck_assert_int_eq(nc_imports_alloc(&imports, &layout, &unit), 0);
	memset(nc_unit_base(unit), 'x', 5000);
	ck_assert_int_eq(nc_imports_insert(&imports, unit, NULL, &id), -EDQUOT);
	ck_assert_int_eq(nc_imports_insert(&imports, unit, NULL, &id), -EDQUOT);
	ck_assert_uint_eq(imports.filling, 1);
	nc_imports_abandon(&imports, unit);
	ck_assert_uint_eq(imports.filling, 0);
	/* The owner may reply first and close then. */
	stop_owner();
	ck_assert_uint_eq(open_descriptors(), descriptors);
	start_owner();
	ck_assert_int_eq(nc_imports_alloc(&imports, &layout, &unit), 0);
	memset(nc_unit_base(unit), 'x', 5000);
	ck_assert_int_eq(nc_imports_insert(&imports, unit, NULL, &id), -EDQUOT);
	caller.subject.quota = MIB;
	ck_assert_int_eq(nc_imports_insert(&imports, unit, NULL, &id), 0);
	ck_assert_int_eq(hold(id), 0);
	close_all();
}
END_TEST

/* A priority that the owner refuses: it does not keep the unit, which can be inserted again. */
START_TEST(test_kept_refused)
{
	struct nc_insertion with = {.priority = NC_PRIORITY_HIGH};
	struct nc_layout layout;
	struct nc_unit *unit;
	size_t id;

	open_all();
	ck_assert_int_eq(nc_layout_init(&layout, 5000, 0), 0);
	ck_assert_int_eq(nc_imports_alloc(&imports, &layout, &unit), 0);
	memset(nc_unit_base(unit), 'x', 5000);
	ck_assert_int_eq(nc_imports_insert(&imports, unit, &with, &id), -EPERM);
	ck_assert_uint_eq(slots_taken(), 0);
	ck_assert_uint_eq(cache.own.units.live, 0);
	with = (struct nc_insertion){.priority = NC_PRIORITY_NORMAL, .lifetime = UINT64_MAX};
	ck_assert_int_eq(nc_imports_insert(&imports, unit, &with, &id), -EINVAL);
	ck_assert_uint_eq(slots_taken(), 0);
	ck_assert_uint_eq(cache.own.units.live, 0);
	ck_assert_uint_eq(imports.filling, 1);
	with = (struct nc_insertion){.priority = NC_PRIORITY_LOW, .lifetime = 1000000};
	ck_assert_int_eq(nc_imports_insert(&imports, unit, &with, &id), 0);
	ck_assert_uint_eq(cache.own.expiry.count, 1);
	ck_assert_uint_eq(slots_taken(), 1);
	ck_assert_int_eq(hold(id), 0);
	close_all();
}
END_TEST

/* Idle imports beyond a limit are returned, the oldest first; held ones never. */
START_TEST(test_surplus)
{
	struct nc_unit *unit;
	size_t ids[NC_IMPORTS_MAX + 20], held;
	unsigned descriptors;

	open_all();
	caller.subject.quota = cache.grants.share = 16 * MIB;
	held = made(1000, 100);
	ck_assert_int_eq(nc_imports_hold(&imports, held, false, &unit), 0);
	for (unsigned i = 0; i < NC_IMPORTS_MAX + 20; i++)
		ids[i] = made(i, 100);
	ck_assert_uint_eq(imports.table.count, NC_IMPORTS_MAX);
	ck_assert_uint_eq(slots_taken(), NC_IMPORTS_MAX);
	descriptors = open_descriptors();
	/* Returned imports are fetched again. */
	for (unsigned i = 0; i < NC_IMPORTS_MAX + 20; i += 7)
		check_held(ids[i], i, 100);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	ck_assert_uint_eq(pattern_match(nc_unit_base(unit), 1000, 0, 100), 100);
	ck_assert_int_eq(nc_imports_release(&imports, held), 0);
	close_all();
}
END_TEST

/* A unit that was entered after its creator got an error does not stay. */
/* A dead import is dropped at the next import; nothing else holds its memory. */
START_TEST(test_dead_ones_go)
{
	unsigned descriptors = 0;
	size_t kept, id;

	open_all();
	caller.subject.operates = true;
	kept = make_own(1, 5000);
	check_held(kept, 1, 5000);
	for (unsigned i = 0; i < 100; i++) {
		id = make_own(i + 2, 5000);
		check_held(id, i + 2, 5000);
		ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
		if (i == 2)
			descriptors = open_descriptors();
	}
	ck_assert_uint_le(open_descriptors(), descriptors);
	ck_assert_uint_le(slots_taken(), 3);
	/* The live one was not mistaken for a dead one. */
	descriptors = open_descriptors();
	check_held(kept, 1, 5000);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	close_all();
}
END_TEST

START_TEST(test_late_reply)
{
	struct nc_layout layout;
	struct nc_unit *unit;
	size_t id;

	open_all();
	stop_owner();
	ck_assert_int_eq(nc_layout_init(&layout, 5000, 0), 0);
	ck_assert_int_eq(nc_imports_alloc(&imports, &layout, &unit), 0);
	pattern_fill(nc_unit_base(unit), 6, 0, 5000);
	ck_assert_int_eq(nc_imports_insert(&imports, unit, NULL, &id), -ETIMEDOUT);
	start_owner();
	ck_assert_int_eq(nc_imports_insert(&imports, unit, NULL, &id), 0);
	check_held(id, 6, 5000);
	/* After one more request, the unused one is gone. */
	ck_assert_int_eq(hold(id + 5), -EACCES);
	ck_assert_uint_eq(cache.grants.records.count, 1);
	ck_assert_uint_eq(cache.own.units.live, 1);
	check_held(id, 6, 5000);
	close_all();
}
END_TEST

/* --- many threads -------------------------------------------------------------------- */

static size_t shared_ids[8];
static _Atomic bool using;

static void *use(void *context)
{
	uint64_t state = (uintptr_t)context + 3;

	while (atomic_load(&using)) {
		unsigned at = (unsigned)(random_next(&state) % 8);
		struct nc_unit *unit;
		size_t id = __atomic_load_n(&shared_ids[at], __ATOMIC_ACQUIRE);

		if (!id || nc_imports_hold(&imports, id, false, &unit))
			continue;
		if (pattern_match(nc_unit_base(unit), id, 0, 3000) != 3000)
			return "wrong bytes";
		if (nc_imports_release(&imports, id))
			return "not held";
	}
	return NULL;
}

/* Units are destroyed and created again while other threads use them. */
START_TEST(test_threads)
{
	pthread_t threads[2];
	struct nc_layout layout;
	void *complaint;

	open_all();
	ck_assert_int_eq(nc_layout_init(&layout, 3000, 0), 0);
	caller.subject.operates = true;
	atomic_store(&using, true);
	for (uintptr_t i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, use, (void *)i), 0);
	for (unsigned i = 0; i < scaled(2000); i++) {
		struct nc_unit *unit;
		size_t id;

		ck_assert_int_eq(nc_index_alloc(&cache, &layout, NC_KIND_RECYCLED, &unit), 0);
		id = nc_id(0, unit->slot, nc_word_generation(nc_unit_word(unit)));
		pattern_fill(nc_unit_base(unit), id, 0, 3000);
		ck_assert_int_eq(nc_index_insert(&cache, unit, NULL, &id), 0);
		id = __atomic_exchange_n(&shared_ids[i % 8], id, __ATOMIC_ACQ_REL);
		if (i >= 8)
			ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
	}
	atomic_store(&using, false);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(threads[i], &complaint);
		if (complaint)
			ck_abort_msg("%s", (const char *)complaint);
	}
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_make_and_use);
	tcase_add_test(tcase, test_taken_away);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_kept_refused);
	tcase_add_test(tcase, test_surplus);
	tcase_add_test(tcase, test_dead_ones_go);
	tcase_add_test(tcase, test_late_reply);
	tcase_add_test(tcase, test_threads);
}

RUN_SUITE("import", fill)
