/* SPDX-License-Identifier: MIT */
/*
 * test-grant-ops.c - unit tests of grant-ops.c: granting, exporting and listing by the
 * owner, reading, and the principal of a grant.  The owner's members are made up; the
 * test plays all of them.
 */
#include <errno.h>
#include <limits.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fragment.h"
#include "base/hash-table.h"
#include "base/id.h"
#include "cache/grant.h"
#include "cache/index.h"
#include "membership/grant-ops.h"
#include "os/identity.h"
#include "os/peer.h"
#include "os/segment.h"
#include "store/pool.h"
#include "store/revocation-map.h"
#include "store/store.h"
#include "store/unit.h"
#include "wire/rpc-client.h"
#include "wire/wire.h"

#include "process-fixture.h"
#include "rpc-fixture.h"
#include "suite.h"

static struct caller member, other;

static void open_all(void)
{
	open_owner();
	caller_open(&member, 1000);
	caller_open(&other, 1001);
}

static void close_all(void)
{
	caller_close(&member);
	caller_close(&other);
	nc_index_fini(&cache);
}

static size_t make_kind(uint64_t seed, size_t size, size_t fraglen, enum NC_kind kind)
{
	struct nc_layout layout;
	struct nc_unit *unit;
	size_t id, done = 0;

	ck_assert_int_eq(nc_layout_init(&layout, size, fraglen), 0);
	ck_assert_int_eq(nc_index_alloc(&cache, &layout, kind, &unit), 0);
	memset(nc_unit_base(unit), 'g', layout.extent);
	while (done < size) {
		size_t run, at = nc_layout_at(&layout, done, &run);

		pattern_fill(nc_unit_base(unit) + at, seed, done, run);
		done += run;
	}
	ck_assert_int_eq(nc_index_insert(&cache, unit, NULL, &id), 0);
	return id;
}

static struct nc_grantee user(unsigned uid)
{
	struct nc_grantee grantee;

	ck_assert_int_eq(nc_grant_ops_grantee(NC_USER, uid, true, &grantee), 0);
	return grantee;
}

static int grant_user(size_t id, unsigned uid)
{
	struct nc_grantee to = user(uid);

	return nc_grant_ops_grant(&cache, id, &to);
}

static int revoke_user(size_t id, unsigned uid)
{
	struct nc_grantee from = user(uid);

	return nc_grant_ops_revoke(&cache, id, &from);
}

static int export_unit(size_t id, struct caller *to)
{
	struct nc_export_info info = {.fd = -1};
	int error = nc_grant_ops_export(&cache, id, &to->subject, &info);

	if (!error)
		close(info.fd);
	return error;
}

START_TEST(test_grantee)
{
	struct nc_grantee grantee;
	unsigned descriptors = open_descriptors();
	int pidfd;
	pid_t pid;

	for (int principal = -1; principal < 10; principal++)
		if (principal < NC_PROCESS || principal > NC_GROUP)
			ck_assert_int_eq(nc_grant_ops_grantee((enum NC_principal)principal, 1, true,
							      &grantee),
					 -EINVAL);
	ck_assert_int_eq(nc_grant_ops_grantee(NC_USER, (unsigned)-1, true, &grantee), -EINVAL);
	ck_assert_int_eq(nc_grant_ops_grantee(NC_GROUP, (unsigned)-1, true, &grantee), -EINVAL);
	ck_assert_int_eq(nc_grant_ops_grantee(NC_USER, 0, true, &grantee), 0);
	ck_assert_int_eq(grantee.principal, NC_USER);
	ck_assert_int_eq(grantee.pidfd, -1);
	ck_assert_int_eq(nc_grant_ops_grantee(NC_PROCESS, 0, true, &grantee), -ESRCH);
	ck_assert_int_eq(nc_grant_ops_grantee(NC_PROCESS, (unsigned)-1, true, &grantee), -ESRCH);
	ck_assert_int_eq(nc_grant_ops_grantee(NC_PROCESS_FD, (unsigned)-1, true, &grantee), -EBADF);
	ck_assert_int_eq(nc_grant_ops_grantee(NC_PROCESS_FD, 0, true, &grantee), -EBADF);
	/* Not pinned: a plain number is not checked. */
	ck_assert_int_eq(nc_grant_ops_grantee(NC_PROCESS, 12345678, false, &grantee), 0);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	if (skip_without_pidfds("grant-ops: grantee"))
		return;
	pid = fork_paused();
	ck_assert_int_eq(nc_grant_ops_grantee(NC_PROCESS, (unsigned)pid, true, &grantee), 0);
	pidfd = grantee.pidfd;
	ck_assert_int_ge(pidfd, 0);
	ck_assert_int_eq(nc_grant_ops_grantee(NC_PROCESS_FD, (unsigned)pidfd, true, &grantee), 0);
	ck_assert_int_eq(grantee.principal, NC_PROCESS);
	ck_assert_uint_eq(grantee.who, (unsigned)pid);
	ck_assert_int_ne(grantee.pidfd, pidfd);
	close(grantee.pidfd);
	ck_assert_int_eq(nc_grant_ops_grantee(NC_PROCESS_FD, (unsigned)pidfd, false, &grantee), 0);
	ck_assert_int_eq(grantee.pidfd, -1);
	end_child(pid);
	ck_assert_int_eq(nc_grant_ops_grantee(NC_PROCESS_FD, (unsigned)pidfd, true, &grantee),
			 -ESRCH);
	ck_assert_int_eq(nc_grant_ops_grantee(NC_PROCESS, (unsigned)pid, true, &grantee), -ESRCH);
	close(pidfd);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

START_TEST(test_read)
{
	static const size_t fraglens[] = {0, 1, 64, 100, 1448, 4096, 8192};
	char *got = must_alloc(20000);

	open_all();
	for (unsigned i = 0; i < sizeof(fraglens) / sizeof(fraglens[0]); i++) {
		size_t id = make_kind(i, 20000, fraglens[i], NC_KIND_AUTO);
		struct nc_view view;

		ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
		ck_assert_int_eq(nc_grant_ops_read(view.unit, got, 20000, 0), 20000);
		ck_assert_uint_eq(pattern_match(got, i, 0, 20000), 20000);
		ck_assert_int_eq(nc_grant_ops_read(view.unit, got, 777, 1400), 777);
		ck_assert_uint_eq(pattern_match(got, i, 1400, 777), 777);
		ck_assert_int_eq(nc_grant_ops_read(view.unit, got, SIZE_MAX, 19999), 1);
		ck_assert_uint_eq((unsigned char)got[0], pattern_at(i, 19999));
		ck_assert_int_eq(nc_grant_ops_read(view.unit, got, 10, 20000), 0);
		ck_assert_int_eq(nc_grant_ops_read(view.unit, got, 10, 20001), -ERANGE);
		ck_assert_int_eq(nc_grant_ops_read(view.unit, got, 10, SIZE_MAX), -ERANGE);
		ck_assert_int_eq(nc_grant_ops_read(view.unit, NULL, 0, 5), 0);
		ck_assert_int_eq(nc_index_release(&cache, id), 0);
	}
	close_all();
	free(got);
}
END_TEST

/* Of every kind; old bytes of others between the fragments are not passed on. */
START_TEST(test_grant)
{
	static const enum NC_kind kinds[] = {NC_KIND_RECYCLED, NC_KIND_APPENDED, NC_KIND_SEALED};
	struct nc_export_info info;
	struct nc_segment segment;
	struct nc_layout layout;
	unsigned descriptors;

	open_all();
	ck_assert_int_eq(export_unit(0, &member), -EACCES);
	ck_assert_int_eq(grant_user(0, 1000), -ENOENT);
	ck_assert_int_eq(grant_user(nc_id(0, 5, 5), 1000), -ENOENT);
	ck_assert_int_eq(grant_user(nc_id(7, 5, 5), 1000), -ENOENT);
	ck_assert_int_eq(revoke_user(nc_id(7, 5, 5), 1000), -ENOENT);
	for (unsigned i = 0; i < 3; i++) {
		size_t id = make_kind(i, 9000, 1448, kinds[i]);

		ck_assert_int_eq(export_unit(id, &member), -EACCES);
		ck_assert_int_eq(revoke_user(id, 1000), -ENOENT);
		descriptors = open_descriptors();
		ck_assert_int_eq(grant_user(id, 1000), 0);
		ck_assert_int_eq(export_unit(id, &other), -EACCES);
		ck_assert_int_eq(nc_grant_ops_export(&cache, id, &member.subject, &info), 0);
		ck_assert_uint_eq(info.size, 9000);
		ck_assert_uint_eq(info.fraglen, 1448);
		ck_assert_int_eq(nc_layout_init(&layout, 9000, 1448), 0);
		ck_assert_int_eq(nc_segment_adopt_frozen(&segment, info.fd, layout.extent), 0);
		for (size_t done = 0, last = 0; done < 9000;) {
			size_t run, at = nc_layout_at(&layout, done, &run);

			ck_assert_uint_eq(pattern_match(segment.base + at, i, done, run), run);
			for (; last < at && kinds[i] != NC_KIND_SEALED; last++)
				expect(segment.base[last] == 0);
			done += run;
			last = at + run;
		}
		nc_segment_close(&segment);
		/* A second grant makes no second copy. */
		ck_assert_int_eq(grant_user(id, 1001), 0);
		ck_assert_int_eq(export_unit(id, &other), 0);
		ck_assert_int_eq(revoke_user(id, 1001), 0);
		ck_assert_int_eq(revoke_user(id, 1001), -ENOENT);
		ck_assert_int_eq(export_unit(id, &other), -EACCES);
		ck_assert_int_eq(export_unit(id, &member), 0);
		/* Destroyed while exported. */
		ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
		ck_assert_int_eq(export_unit(id, &member), -EACCES);
		ck_assert_int_eq(grant_user(id, 1000), -ENOENT);
		ck_assert_uint_eq(cache.grants.records.count, 0);
		/* Two revocation maps are open now. */
		ck_assert_uint_le(open_descriptors(), descriptors + (i ? 0 : 2));
	}
	close_all();
}
END_TEST

/* The owner needs no grant; nothing is copied for it. */
START_TEST(test_grant_to_owner)
{
	struct nc_grantee grantee = {.principal = NC_PROCESS, .pidfd = -1};
	unsigned descriptors;
	size_t id;

	open_all();
	id = make_own(1, 100);
	descriptors = open_descriptors();
	grantee.who = (unsigned)getpid();
	grantee.pidfd = has_pidfds() ? nc_identity_open(getpid()) : -1;
	ck_assert_int_eq(nc_grant_ops_grant(&cache, id, &grantee), 0);
	ck_assert_uint_eq(cache.grants.records.count, 0);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	close_all();
}
END_TEST

/* An evicted unit is destroyed for its grantees, too. */
START_TEST(test_evicted)
{
	struct nc_unit *filling[16];
	struct nc_export_info info;
	struct nc_layout layout;
	unsigned count = 0;
	uint32_t slot;
	size_t id;

	open_all();
	id = make_kind(1, 300 << 10, 0, NC_KIND_APPENDED);
	ck_assert_int_eq(grant_user(id, 1000), 0);
	ck_assert_int_eq(nc_grant_ops_export(&cache, id, &member.subject, &info), 0);
	close(info.fd);
	slot = info.slot;
	ck_assert_uint_eq(nc_revocation_map_read(&member.subject.revocations.segment, slot), id);
	/* A unit that is being filled cannot be evicted; therefore this one is. */
	ck_assert_int_eq(nc_layout_init(&layout, 300 << 10, 0), 0);
	while (nc_index_alloc(&cache, &layout, NC_KIND_APPENDED, &filling[count]) == 0)
		count++;
	ck_assert(!known(id));
	ck_assert_uint_eq(nc_revocation_map_read(&member.subject.revocations.segment, slot),
			  NC_REVOCATION_DESTROYED);
	ck_assert_uint_eq(cache.grants.records.count, 0);
	while (count)
		nc_index_abandon(&cache, filling[--count]);
	close_all();
}
END_TEST

START_TEST(test_list)
{
	struct NC_stat units[10];
	size_t cursor = 0, ids[200], last = 0;
	unsigned count, seen = 0;

	open_all();
	for (unsigned i = 0; i < 200; i++) {
		ids[i] = make_own(i, 100 + i);
		ck_assert_int_eq(grant_user(ids[i], i % 2 ? 1000 : 1001), 0);
	}
	do {
		count = nc_grant_ops_list(&cache, &member.subject, &cursor, units, 10);
		for (unsigned i = 0; i < count; i++) {
			ck_assert_uint_gt(units[i].id, last);
			ck_assert_uint_eq(units[i].holds, 0);
			last = units[i].id;
		}
		seen += count;
	} while (cursor);
	ck_assert_uint_eq(seen, 100);
	/* Records of destroyed units do not end the list early. */
	for (unsigned i = 0; i < 199; i++)
		ck_assert_int_eq(nc_index_destroy(&cache, ids[i]), 0);
	for (unsigned i = 0; i < 199; i++)
		ck_assert_int_eq(nc_grants_enter(&cache.grants, nc_id(3, i, 1), &member.subject,
						 NULL, 100, 4096),
				 0);
	cursor = nc_id(2, 0, 1);
	ck_assert_uint_eq(nc_grant_ops_list(&cache, &member.subject, &cursor, units, 10), 0);
	ck_assert_uint_eq(cursor, 0);
	close_all();
}
END_TEST

/* The same, with one live unit behind many destroyed ones. */
/* The owner's own list; with room for fewer or more than exist, and structures of any length. */
START_TEST(test_grants)
{
	struct NC_grant_info grants[600];
	unsigned char longer[2][sizeof(grants[0]) + 4];
	size_t id;

	open_all();
	id = make_kind(1, 9000, 0, NC_KIND_AUTO);
	ck_assert_int_eq(nc_grant_ops_grants(&cache, 0, grants, sizeof(grants[0]), 600), -ENOENT);
	ck_assert_int_eq(nc_grant_ops_grants(&cache, SIZE_MAX, NULL, 0, 0), -ENOENT);
	ck_assert_int_eq(nc_grant_ops_grants(&cache, id, grants, sizeof(grants[0]), 600), 0);
	for (unsigned i = 0; i < 600; i++)
		ck_assert_int_eq(grant_user(id, 1001 + i), 0);
	memset(grants, 0xee, sizeof(grants));
	ck_assert_int_eq(nc_grant_ops_grants(&cache, id, grants, sizeof(grants[0]), 599), 600);
	for (unsigned i = 0; i < 599; i++)
		ck_assert_uint_eq(grants[i].who, 1001 + 599 - i);
	ck_assert_uint_eq(grants[599].who, 0xeeeeeeee);
	ck_assert_int_eq(nc_grant_ops_grants(&cache, id, NULL, 0, 0), 600);
	memset(longer, 0xee, sizeof(longer));
	ck_assert_int_eq(nc_grant_ops_grants(&cache, id, longer, sizeof(longer[0]), 1), 600);
	ck_assert_mem_eq(longer[0] + sizeof(grants[0]), "\0\0\0\0", 4);
	ck_assert_uint_eq(longer[1][0], 0xee);
	ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
	ck_assert_int_eq(nc_grant_ops_grants(&cache, id, grants, sizeof(grants[0]), 600), -ENOENT);
	close_all();
}
END_TEST

/* How a member handles a reply; any process may be the owner. */
static int list_by(const struct nc_wire_reply *head, unsigned count)
{
	static const char bytes[NC_WIRE_BEHIND_MAX];
	struct NC_grant_info grants[4];
	struct nc_index guest = {.own.number = NC_ID_MEMBERS_MAX};
	struct {
		struct nc_wire_reply head;
		char bytes[NC_WIRE_BEHIND_MAX];
	} reply = {.head = *head};
	int ends[2], result;

	memcpy(reply.bytes, bytes, head->length);
	reply.head.magic = NC_WIRE_MAGIC;
	ck_assert_int_eq(nc_peer_pair(ends), 0);
	nc_rpc_client_init(&guest.rpc);
	nc_rpc_client_open(&guest.rpc, ends[0]);
	/* The replies are queued before the call, and never end. */
	for (reply.head.tag = 1; reply.head.tag <= 5; reply.head.tag++)
		ck_assert_int_eq(
			nc_peer_send(ends[1], &reply, sizeof(reply.head) + head->length, NULL, 0),
			0);
	result = nc_grant_ops_grants(&guest, 1, grants, sizeof(grants[0]), count);
	nc_rpc_client_fini(&guest.rpc);
	close_pair(ends);
	return result;
}

START_TEST(test_grants_of_a_liar)
{
	const uint32_t one = sizeof(struct NC_grant_info);
	struct nc_wire_reply reply = {.length = one, .size = 9, .fraglen = 1};

	/* One at a time, without end: the list stops at its capacity. */
	ck_assert_int_eq(list_by(&reply, 4), 4);
	ck_assert_int_eq(list_by(&reply, 1), 1);
	reply.fraglen = 70;
	ck_assert_int_eq(list_by(&reply, 4), 70);
	reply.fraglen = INT_MAX;
	ck_assert_int_eq(list_by(&reply, 4), INT_MAX);
	reply.fraglen = (uint64_t)INT_MAX + 1;
	ck_assert_int_eq(list_by(&reply, 4), -EPROTO);
	reply.fraglen = UINT64_MAX;
	ck_assert_int_eq(list_by(&reply, 4), -EPROTO);
	/* An empty reply that is never the last one. */
	reply = (struct nc_wire_reply){.size = 9, .fraglen = 70};
	ck_assert_int_eq(list_by(&reply, 4), 0);
	ck_assert_int_eq(list_by(&reply, 0), 70);
	/* A part of one; more than requested. */
	for (uint32_t length = 1; length < one; length++) {
		reply.length = length;
		ck_assert_int_eq(list_by(&reply, 4), -EPROTO);
		ck_assert_int_eq(list_by(&reply, 0), -EPROTO);
	}
	reply.length = 5 * one;
	ck_assert_int_eq(list_by(&reply, 4), -EPROTO);
	reply.length = NC_WIRE_BEHIND_MAX;
	ck_assert_int_eq(list_by(&reply, 4), -EPROTO);
	/* An older owner. */
	reply = (struct nc_wire_reply){.error = EOPNOTSUPP};
	ck_assert_int_eq(list_by(&reply, 4), -EOPNOTSUPP);
}
END_TEST

START_TEST(test_list_past_the_dead)
{
	struct NC_stat unit;
	size_t cursor = 0, id;

	open_all();
	for (unsigned i = 0; i < 150; i++)
		ck_assert_int_eq(nc_grants_enter(&cache.grants, nc_id(0, 1, i + 1), &member.subject,
						 NULL, 100, 4096),
				 0);
	(void)make_own(1, 100);
	(void)make_own(1, 100);
	id = make_own(1, 100);
	ck_assert_int_eq(grant_user(id, 1000), 0);
	ck_assert_uint_eq(nc_grant_ops_list(&cache, &member.subject, &cursor, &unit, 1), 1);
	ck_assert_uint_eq(unit.id, nc_id(0, 1, 1));
	ck_assert_uint_eq(nc_grant_ops_list(&cache, &member.subject, &cursor, &unit, 1), 1);
	ck_assert_uint_eq(unit.id, id);
	close_all();
}
END_TEST

/* --- many threads ---------------------------------------------------------------------- */

static _Atomic bool granting;
static size_t targets[4];

static void *grant_and_export(void *context)
{
	uint64_t state = (uintptr_t)context + 1;
	struct caller *caller = context ? &member : &other;
	unsigned uid = context ? 1000 : 1001;

	while (atomic_load(&granting)) {
		size_t id = __atomic_load_n(&targets[random_next(&state) % 4], __ATOMIC_ACQUIRE);
		struct nc_export_info info;

		if (!id)
			continue;
		(void)grant_user(id, uid);
		if (nc_grant_ops_export(&cache, id, &caller->subject, &info) == 0) {
			close(info.fd);
			(void)nc_grants_return(&cache.grants, &caller->subject, info.slot);
		}
		if (random_next(&state) % 2)
			(void)revoke_user(id, uid);
	}
	return NULL;
}

/* Destroyed at the moment of the grant: no record is left behind. */
START_TEST(test_threads)
{
	pthread_t threads[2];

	open_all();
	atomic_store(&granting, true);
	for (uintptr_t i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, grant_and_export, (void *)i), 0);
	for (unsigned i = 0; i < scaled(20000); i++) {
		size_t id = make_kind(1, 100, 0, i % 8 ? NC_KIND_RECYCLED : NC_KIND_SEALED);

		id = __atomic_exchange_n(&targets[i % 4], id, __ATOMIC_ACQ_REL);
		if (id)
			(void)nc_index_destroy(&cache, id);
	}
	for (unsigned i = 0; i < 4; i++)
		if (targets[i])
			(void)nc_index_destroy(&cache, targets[i]);
	atomic_store(&granting, false);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(cache.grants.records.count, 0);
	ck_assert_uint_eq(cache.own.units.live, 0);
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_grantee);
	tcase_add_test(tcase, test_read);
	tcase_add_test(tcase, test_grant);
	tcase_add_test(tcase, test_grant_to_owner);
	tcase_add_test(tcase, test_evicted);
	tcase_add_test(tcase, test_list);
	tcase_add_test(tcase, test_grants);
	tcase_add_test(tcase, test_grants_of_a_liar);
	tcase_add_test(tcase, test_list_past_the_dead);
	tcase_add_test(tcase, test_threads);
}

RUN_SUITE("grant-ops", fill)
