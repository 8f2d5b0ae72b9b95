/* SPDX-License-Identifier: MIT */
/*
 * test-grant.c - unit tests of grant.c: which processes have a grant, what is exported
 * and revoked, and that every descriptor is closed again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <nabc.h>

#include "base/hash-table.h"
#include "base/id.h"
#include "cache/grant.h"
#include "os/identity.h"
#include "os/segment.h"
#include "store/revocation-map.h"

#include "grant-fixture.h"
#include "process-fixture.h"
#include "suite.h"

static int take(size_t id, struct nc_grantee from)
{
	return nc_grants_revoke(&grants, id, &from);
}

START_TEST(test_enter)
{
	struct nc_subject maker;
	bool made = true;

	open_grants();
	join(&maker, 0, 1000, 10 * PAGE);
	ck_assert(!nc_grants_known(&grants, 5, &maker, &made));
	ck_assert(!made);
	ck_assert_int_eq(nc_grants_enter(&grants, 5, &maker, NULL, 100, 64), 0);
	ck_assert_int_eq(nc_grants_enter(&grants, 5, &maker, NULL, 100, 64), -EEXIST);
	ck_assert_int_eq(nc_grants_enter(&grants, 5, NULL, NULL, 100, 64), -EEXIST);
	ck_assert(nc_grants_known(&grants, 5, &maker, &made));
	ck_assert(made);
	ck_assert(nc_grants_known(&grants, 5, NULL, &made));
	ck_assert(!made);
	/* The unit costs whole pages. */
	ck_assert_uint_eq(maker.sealed, PAGE);
	ck_assert_int_eq(nc_grants_room(&grants, &maker, 9 * PAGE), 0);
	ck_assert_int_eq(nc_grants_room(&grants, &maker, 9 * PAGE + 1), -EDQUOT);
	ck_assert_int_eq(nc_grants_room(&grants, &maker, SIZE_MAX), -EDQUOT);
	ck_assert_int_eq(nc_grants_enter(&grants, 6, &maker, NULL, 9 * PAGE + 1, 0), -EDQUOT);
	ck_assert_int_eq(nc_grants_enter(&grants, 6, &maker, NULL, 9 * PAGE, 0), 0);
	ck_assert_int_eq(nc_grants_enter(&grants, 7, &maker, NULL, 1, 0), -EDQUOT);
	/* Here the owner has no quota. */
	ck_assert_int_eq(nc_grants_enter(&grants, 7, NULL, NULL, 1 << 30, 0), 0);
	nc_grants_drop(&grants, 6);
	ck_assert_uint_eq(maker.sealed, PAGE);
	nc_grants_drop(&grants, 6);
	nc_grants_drop(&grants, 5);
	ck_assert_uint_eq(maker.sealed, 0);
	part(&maker);
	close_grants();
}
END_TEST

/*
 * The creator of a unit may use it, and so may the leader of its session, if that is
 * the same as at creation.
 */
START_TEST(test_admits)
{
	static struct nc_subject maker, member;
	struct nc_identity other = {.pid = 500, .pidfd = -1, .uid = 9, .gid = 8},
			   leader = {.pid = 400, .pidfd = -1, .uid = 9, .gid = 8};
	const struct nc_grantee user = {.principal = NC_USER, .who = 9, .pidfd = -1};
	const size_t sealed = nc_id(0, 5, 1), owners = nc_id(0, 6, 1), own = nc_id(3, 1, 1);

	open_grants();
	join(&maker, 0, 1000, 10 * PAGE);
	join(&member, 3, 1000, 10 * PAGE);
	maker.who.pid = member.who.pid = 500;
	maker.who.session = member.who.session = 400;
	maker.who.since = member.who.since = 1000;
	ck_assert_int_eq(nc_grants_enter(&grants, sealed, &maker, NULL, PAGE, PAGE), 0);
	ck_assert_int_eq(nc_grants_enter(&grants, owners, NULL, NULL, PAGE, PAGE), 0);
	for (unsigned turn = 0; turn < 2; turn++) {
		ck_assert(nc_grants_admits(&grants, sealed, &other, 1000));
		ck_assert(nc_grants_admits(&grants, sealed, &leader, 1000));
		ck_assert(!nc_grants_admits(&grants, sealed, &other, 1001));
		ck_assert(!nc_grants_admits(&grants, sealed, &leader, 1001));
		ck_assert(!nc_grants_admits(&grants, sealed, &leader, UINT64_MAX));
		/* Units in a member's own segment are dropped with it. */
		ck_assert(nc_grants_admits(&grants, own, &other, 1000) == !turn);
		ck_assert(nc_grants_admits(&grants, own, &leader, 1000) == !turn);
		ck_assert(!nc_grants_admits(&grants, own, &other, 1001));
		if (turn == 0) {
			part(&maker);
			part(&member);
		}
	}
	/*
	 * If the process of the creator is unknown, or the unit is the owner's, only a grant
	 * counts.
	 */
	other.pid = 0;
	for (unsigned i = 0; i < 2; i++) {
		size_t id = i ? owners : sealed;

		ck_assert(!nc_grants_admits(&grants, id, &other, 0));
		ck_assert_int_eq(nc_grants_add(&grants, id, &user), 0);
		ck_assert(nc_grants_admits(&grants, id, &other, UINT64_MAX));
		ck_assert_int_eq(nc_grants_revoke(&grants, id, &user), 0);
		ck_assert(!nc_grants_admits(&grants, id, &other, 0));
	}
	ck_assert(!nc_grants_admits(&grants, nc_id(0, 7, 1), &leader, 0));
	close_grants();
}
END_TEST

/* A copy is closed with its record; on failure the caller keeps it. */
/*
 * The session is known of sealed units after their creator has exited, and of others
 * while it exists.
 */
START_TEST(test_session)
{
	static struct nc_subject maker, member;
	uint64_t since;

	join(&maker, 0, 1000, 10 * PAGE);
	join(&member, 3, 1000, 10 * PAGE);
	maker.who.since = 500;
	maker.who.session = 77;
	member.who.session = 88;
	ck_assert_int_eq(nc_grants_enter(&grants, nc_id(0, 5, 1), &maker, NULL, PAGE, PAGE), 0);
	ck_assert_int_eq(nc_grants_enter(&grants, nc_id(0, 6, 1), NULL, NULL, PAGE, PAGE), 0);
	ck_assert_int_eq(nc_grants_session(&grants, nc_id(0, 5, 1), &since), 77);
	ck_assert_uint_eq(since, 500);
	ck_assert_int_eq(nc_grants_session(&grants, nc_id(0, 6, 1), &since), 0);
	ck_assert_uint_eq(since, 0);
	ck_assert_int_eq(nc_grants_session(&grants, nc_id(0, 7, 1), &since), 0);
	ck_assert_int_eq(nc_grants_session(&grants, nc_id(3, 1, 1), &since), 88);
	ck_assert_int_eq(nc_grants_session(&grants, nc_id(4, 1, 1), &since), 0);
	part(&maker);
	part(&member);
	ck_assert_int_eq(nc_grants_session(&grants, nc_id(0, 5, 1), &since), 77);
	ck_assert_uint_eq(since, 500);
	ck_assert_int_eq(nc_grants_session(&grants, nc_id(3, 1, 1), &since), 0);
}
END_TEST

START_TEST(test_copies)
{
	struct nc_segment first = frozen(3 * PAGE), second = frozen(PAGE);
	struct nc_subject maker;

	descriptors_before = open_descriptors() - 2;
	nc_grants_init(&grants, 16 * PAGE);
	join(&maker, 3, 1000, 3 * PAGE);
	ck_assert_int_eq(nc_grants_enter(&grants, 5, &maker, &first, 9000, 4096), 0);
	ck_assert_uint_eq(maker.sealed, 3 * PAGE);
	ck_assert_int_eq(nc_grants_enter(&grants, 6, &maker, &second, 1, 4096), -EDQUOT);
	ck_assert_int_eq(nc_grants_enter(&grants, 5, NULL, &second, 1, 4096), -EEXIST);
	ck_assert_int_eq(fcntl(second.fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(nc_grants_enter(&grants, 6, NULL, &second, 1, 4096), 0);
	/* A copy is dropped with its last grant and export. */
	ck_assert_int_eq(give(6, user(7)), 0);
	ck_assert_int_eq(give(6, user(8)), 0);
	ck_assert_int_eq(take(6, user(7)), 0);
	ck_assert_uint_eq(grants.records.count, 2);
	ck_assert_int_eq(take(6, user(8)), 0);
	ck_assert_uint_eq(grants.records.count, 1);
	ck_assert_int_eq(take(6, user(8)), -ENOENT);
	part(&maker);
	close_grants();
}
END_TEST

START_TEST(test_grant)
{
	struct nc_subject maker, other, member, overseer;
	struct nc_grantee group = {.principal = NC_GROUP, .who = 77, .pidfd = -1};
	uint32_t slot = 0, same;

	open_grants();
	join(&maker, 0, 1000, PAGE);
	join(&other, 0, 1001, PAGE);
	join(&member, 0, 1002, PAGE);
	join(&overseer, 0, 0, PAGE);
	overseer.operates = true;
	member.who.groups[0] = 77;
	member.who.group_count = 1;
	ck_assert_int_eq(export_unit(5, &maker, &slot), -EACCES);
	ck_assert_int_eq(give(5, user(1001)), -ENOENT);
	ck_assert_int_eq(nc_grants_enter(&grants, 5, &maker, NULL, 100, 64), 0);
	/* Its creator and operators may import it; others need a grant. */
	ck_assert_int_eq(export_unit(5, &maker, &slot), 0);
	ck_assert_int_eq(export_unit(5, &overseer, &slot), 0);
	ck_assert_int_eq(export_unit(5, &other, &slot), -EACCES);
	ck_assert_int_eq(export_unit(5, &member, &slot), -EACCES);
	ck_assert_ptr_null(other.exports);
	ck_assert_int_eq(give(5, user(1001)), 0);
	ck_assert_int_eq(export_unit(5, &other, &slot), 0);
	ck_assert_uint_eq(shown(&other, slot), 5);
	ck_assert_int_eq(export_unit(5, &member, &same), -EACCES);
	/* A unit that is exported twice has one slot. */
	ck_assert_int_eq(export_unit(5, &other, &same), 0);
	ck_assert_uint_eq(same, slot);
	/* A revoked grant ends at once. */
	ck_assert_int_eq(take(5, user(1002)), -ENOENT);
	ck_assert_uint_eq(shown(&other, slot), 5);
	ck_assert_int_eq(take(5, user(1001)), 0);
	ck_assert_uint_eq(shown(&other, slot), NC_REVOCATION_REVOKED);
	ck_assert_int_eq(export_unit(5, &other, &same), -EACCES);
	/* By a supplementary group, and by the primary one. */
	ck_assert_int_eq(give(5, group), 0);
	ck_assert_int_eq(export_unit(5, &member, &slot), 0);
	ck_assert_int_eq(export_unit(5, &other, &same), -EACCES);
	group.who = 500;
	ck_assert_int_eq(give(5, group), 0);
	ck_assert_int_eq(export_unit(5, &other, &same), 0);
	ck_assert_int_eq(take(5, group), 0);
	ck_assert_uint_eq(shown(&other, same), NC_REVOCATION_REVOKED);
	ck_assert_uint_eq(shown(&member, slot), 5);
	/* Grants of two kinds: after one is revoked, the other is enough. */
	ck_assert_int_eq(give(5, user(1002)), 0);
	group.who = 77;
	ck_assert_int_eq(take(5, group), 0);
	ck_assert_uint_eq(shown(&member, slot), 5);
	/* An unknown kind permits nobody. */
	group.principal = (enum NC_principal)99;
	group.who = 500;
	ck_assert_int_eq(give(5, group), 0);
	ck_assert_int_eq(export_unit(5, &other, &same), -EACCES);
	nc_grants_drop(&grants, 5);
	ck_assert_uint_eq(shown(&member, slot), NC_REVOCATION_DESTROYED);
	part(&overseer);
	part(&member);
	part(&other);
	part(&maker);
	close_grants();
}
END_TEST

START_TEST(test_processes)
{
	struct nc_subject subject;
	unsigned descriptors;
	uint32_t slot;
	pid_t pid;

	if (skip_without_pidfds("grant: processes"))
		return;
	open_grants();
	pid = fork_paused();
	join(&subject, 0, 1000, PAGE);
	subject.who.pid = pid;
	subject.who.pidfd = nc_identity_open(pid);
	ck_assert_int_eq(nc_grants_enter(&grants, 5, NULL, NULL, 100, 64), 0);
	ck_assert_int_eq(give(5, process(getpid())), 0);
	ck_assert_int_eq(export_unit(5, &subject, &slot), -EACCES);
	descriptors = open_descriptors();
	ck_assert_int_eq(give(5, process(pid)), 0);
	ck_assert_int_eq(export_unit(5, &subject, &slot), 0);
	ck_assert_int_eq(take(5, (struct nc_grantee){.principal = NC_PROCESS,
						     .who = (unsigned)pid,
						     .pidfd = -1}),
			 0);
	ck_assert_uint_eq(shown(&subject, slot), NC_REVOCATION_REVOKED);
	/* One revocation map more, one pidfd fewer. */
	ck_assert_uint_eq(open_descriptors(), descriptors + 1);
	/* A process that has exited has no grant, and its pidfd is closed soon. */
	ck_assert_int_eq(give(5, process(pid)), 0);
	end_child(pid);
	ck_assert_int_eq(export_unit(5, &subject, &slot), -EACCES);
	ck_assert_int_eq(give(5, user(1)), 0);
	ck_assert_uint_eq(open_descriptors(), descriptors + 1);
	part(&subject);
	close_grants();
}
END_TEST

/* Two equal grants are one; it costs one descriptor and is revoked by one call. */
START_TEST(test_twice)
{
	struct nc_subject subject;
	unsigned descriptors;
	uint32_t slot;

	open_grants();
	join(&subject, 0, 1000, PAGE);
	ck_assert_int_eq(nc_grants_enter(&grants, 5, NULL, NULL, 100, 64), 0);
	for (unsigned i = 0; i < 3 * NC_GRANTS_MAX; i++)
		expect(give(5, user(1000)) == 0);
	ck_assert_int_eq(take(5, user(1000)), 0);
	ck_assert_int_eq(take(5, user(1000)), -ENOENT);
	ck_assert_int_eq(export_unit(5, &subject, &slot), -EACCES);
	if (!skip_without_pidfds("grant: twice")) {
		ck_assert_int_eq(give(5, process(getpid())), 0);
		descriptors = open_descriptors();
		for (unsigned i = 0; i < 3 * NC_GRANTS_MAX; i++)
			expect(give(5, process(getpid())) == 0);
		ck_assert_uint_eq(open_descriptors(), descriptors);
	}
	part(&subject);
	close_grants();
}
END_TEST

START_TEST(test_many_grants)
{
	struct nc_subject subject;
	uint32_t slot;

	open_grants();
	join(&subject, 0, 1000, PAGE);
	ck_assert_int_eq(nc_grants_enter(&grants, 5, NULL, NULL, 100, 64), 0);
	for (unsigned i = 0; i < NC_GRANTS_MAX; i++)
		expect(give(5, user(1000 + i)) == 0);
	ck_assert_int_eq(give(5, user(9)), -ENOSPC);
	ck_assert_int_eq(export_unit(5, &subject, &slot), 0);
	ck_assert_int_eq(take(5, user(1500)), 0);
	ck_assert_int_eq(give(5, user(9)), 0);
	ck_assert_int_eq(give(5, user(10)), -ENOSPC);
	part(&subject);
	close_grants();
}
END_TEST

/* Lists all grants in steps, the newest first: each once. */
static void check_grants(unsigned step, unsigned first, unsigned last)
{
	struct NC_grant_info infos[NC_GRANTS_MAX];
	uint64_t cursor = 0;
	unsigned next = last, count, total;

	do {
		count = nc_grants_describe(&grants, 5, &cursor, infos, step, &total);
		ck_assert_uint_le(count, step);
		ck_assert_uint_eq(total, last - first + 1);
		for (unsigned i = 0; i < count; i++) {
			expect(infos[i].principal == NC_USER && infos[i].who == next--);
			expect(infos[i].imports == 0);
		}
		/* Otherwise the caller would make no progress. */
		ck_assert(count || !cursor);
	} while (cursor);
	ck_assert_uint_eq(next, first - 1);
}

START_TEST(test_grants)
{
	struct NC_grant_info infos[4];
	uint64_t cursor = 0;
	unsigned total = 7;

	open_grants();
	ck_assert_uint_eq(nc_grants_describe(&grants, 5, &cursor, infos, 4, &total), 0);
	ck_assert_uint_eq(total, 0);
	cursor = 99;
	ck_assert_uint_eq(nc_grants_describe(&grants, 5, &cursor, infos, 4, &total), 0);
	ck_assert_uint_eq(cursor, 0);
	ck_assert_int_eq(nc_grants_enter(&grants, 5, NULL, NULL, 100, 64), 0);
	ck_assert_int_eq(nc_grants_enter(&grants, 6, NULL, NULL, 100, 64), 0);
	ck_assert_uint_eq(nc_grants_describe(&grants, 5, &cursor, infos, 4, &total), 0);
	for (unsigned i = 0; i < NC_GRANTS_MAX; i++)
		expect(give(5, user(1000 + i)) == 0);
	ck_assert_int_eq(give(6, user(1)), 0);
	for (unsigned step = 1; step <= NC_GRANTS_MAX; step = step * 3 + 1)
		check_grants(step, 1000, 1000 + NC_GRANTS_MAX - 1);
	check_grants(NC_GRANTS_MAX, 1000, 1000 + NC_GRANTS_MAX - 1);
	/* Only the number. */
	ck_assert_uint_eq(nc_grants_describe(&grants, 5, &cursor, infos, 0, &total), 0);
	ck_assert_uint_eq(total, NC_GRANTS_MAX);
	/* Behind the end, and before the start. */
	cursor = 1;
	ck_assert_uint_eq(nc_grants_describe(&grants, 5, &cursor, infos, 4, &total), 0);
	ck_assert_uint_eq(cursor, 0);
	cursor = UINT64_MAX;
	ck_assert_uint_eq(nc_grants_describe(&grants, 5, &cursor, infos, 4, &total), 4);
	ck_assert_uint_eq(infos[0].who, 1000 + NC_GRANTS_MAX - 1);
	/* Grants that are made and revoked meanwhile do not move any other. */
	for (unsigned i = 0; i < 10; i++)
		expect(take(5, user(1000 + NC_GRANTS_MAX - 1 - i)) == 0);
	ck_assert_int_eq(give(5, user(9)), 0);
	ck_assert_uint_eq(nc_grants_describe(&grants, 5, &cursor, infos, 4, &total), 4);
	ck_assert_uint_eq(infos[0].who, 1000 + NC_GRANTS_MAX - 1 - 10);
	ck_assert_uint_eq(total, NC_GRANTS_MAX - 9);
	close_grants();
}
END_TEST

/* Which of the grantees has imported the unit; the grant of an exited process is not listed. */
START_TEST(test_leaves_in_use)
{
	struct nc_subject one, two;
	struct NC_grant_info infos[4];
	uint64_t cursor = 0;
	uint32_t slot[2];
	unsigned total, descriptors;
	pid_t pid;

	open_grants();
	join(&one, 0, 1000, PAGE);
	join(&two, 0, 1001, PAGE);
	ck_assert_int_eq(nc_grants_enter(&grants, 5, NULL, NULL, 100, 64), 0);
	ck_assert_int_eq(
		give(5, (struct nc_grantee){.principal = NC_GROUP, .who = 500, .pidfd = -1}), 0);
	ck_assert_int_eq(give(5, user(1001)), 0);
	ck_assert_int_eq(export_unit(5, &one, &slot[0]), 0);
	ck_assert_int_eq(export_unit(5, &two, &slot[1]), 0);
	ck_assert_uint_eq(nc_grants_describe(&grants, 5, &cursor, infos, 4, &total), 2);
	ck_assert_int_eq(infos[0].principal, NC_USER);
	ck_assert_uint_eq(infos[0].imports, 1);
	ck_assert_int_eq(infos[1].principal, NC_GROUP);
	ck_assert_uint_eq(infos[1].who, 500);
	ck_assert_uint_eq(infos[1].imports, 2);
	ck_assert_int_eq(nc_grants_return(&grants, &one, slot[0]), 0);
	ck_assert_uint_eq(nc_grants_describe(&grants, 5, &cursor, infos, 4, &total), 2);
	ck_assert_uint_eq(infos[1].imports, 1);
	if (!skip_without_pidfds("grant: grants in use")) {
		pid = fork_paused();
		descriptors = open_descriptors();
		ck_assert_int_eq(give(5, process(pid)), 0);
		ck_assert_uint_eq(nc_grants_describe(&grants, 5, &cursor, infos, 4, &total), 3);
		ck_assert_int_eq(infos[0].principal, NC_PROCESS);
		ck_assert_uint_eq(infos[0].who, (unsigned)pid);
		ck_assert_uint_eq(infos[0].imports, 0);
		end_child(pid);
		ck_assert_uint_eq(nc_grants_describe(&grants, 5, &cursor, infos, 4, &total), 2);
		ck_assert_uint_eq(total, 2);
		ck_assert_uint_eq(open_descriptors(), descriptors);
	}
	part(&one);
	part(&two);
	close_grants();
}
END_TEST

/* A copy for a process that has exited is dropped when that is noticed. */
START_TEST(test_leaves_of_the_dead)
{
	struct nc_segment copy = frozen(PAGE);
	struct NC_grant_info infos[1];
	uint64_t cursor = 0;
	unsigned total;
	bool made;
	pid_t pid;

	if (skip_without_pidfds("grant: grants of the dead")) {
		nc_segment_close(&copy);
		return;
	}
	nc_grants_init(&grants, 16 * PAGE);
	pid = fork_paused();
	ck_assert_int_eq(nc_grants_enter(&grants, 5, NULL, &copy, 100, 64), 0);
	ck_assert_int_eq(give(5, process(pid)), 0);
	end_child(pid);
	ck_assert_uint_eq(nc_grants_describe(&grants, 5, &cursor, infos, 1, &total), 0);
	ck_assert(!nc_grants_known(&grants, 5, NULL, &made));
	ck_assert_uint_eq(grants.copied, 0);
	nc_grants_fini(&grants);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_enter);
	tcase_add_test(tcase, test_session);
	tcase_add_test(tcase, test_admits);
	tcase_add_test(tcase, test_copies);
	tcase_add_test(tcase, test_grant);
	tcase_add_test(tcase, test_processes);
	tcase_add_test(tcase, test_twice);
	tcase_add_test(tcase, test_many_grants);
	tcase_add_test(tcase, test_grants);
	tcase_add_test(tcase, test_leaves_in_use);
	tcase_add_test(tcase, test_leaves_of_the_dead);
}

RUN_SUITE("grant", fill)
