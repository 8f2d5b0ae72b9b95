/* SPDX-License-Identifier: MIT */
/*
 * test-grant.c - unit tests of grant.c: the book alone, with made-up members.
 * Who has leave, what is exported and revoked, what is charged to whom, what stays
 * when a maker goes, and that every descriptor is closed again.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "base/fragment.h"
#include "base/id.h"
#include "cache/grant.h"
#include "wire/wire.h"

#include "process-fixture.h"
#include "suite.h"

#define PAGE ((size_t)4096)

static struct nc_grants book;
static unsigned descriptors_before;

static void open_book(void)
{
	descriptors_before = open_descriptors();
	nc_grants_init(&book, 16 * PAGE);
}

static void close_book(void)
{
	nc_grants_fini(&book);
	ck_assert_uint_eq(open_descriptors(), descriptors_before);
}

static void join(struct nc_subject *subject, unsigned number, uid_t uid, size_t quota)
{
	*subject = (struct nc_subject){
		.who = {.pid = getpid(), .pidfd = -1, .uid = uid, .gid = 500},
		.number = number,
		.quota = quota,
		.revocations = {.segment = {.fd = -1}},
	};
	nc_grants_join(&book, subject);
}

static size_t orphans[256];
static unsigned orphan_count;

static void note_orphan(void *context, size_t id)
{
	bool made;

	ck_assert_ptr_eq(context, orphans);
	ck_assert_uint_lt(orphan_count, 256);
	orphans[orphan_count++] = id;
	/* The book may be asked from here. */
	ck_assert(nc_grants_known(&book, id, NULL, &made));
	ck_assert(made);
}

static void part(struct nc_subject *subject)
{
	nc_grants_part(&book, subject, note_orphan, orphans);
	ck_assert_ptr_null(subject->exports);
	ck_assert_ptr_null(subject->revocations.segment.base);
}

static struct nc_segment frozen(size_t size)
{
	struct nc_segment segment;

	ck_assert_int_eq(nc_segment_create(&segment, size, false, false), 0);
	ck_assert_int_eq(nc_segment_freeze(&segment), 0);
	return segment;
}

static struct nc_grantee user(unsigned uid)
{
	return (struct nc_grantee){.principal = NC_USER, .who = uid, .pidfd = -1};
}

static struct nc_grantee process(pid_t pid)
{
	struct nc_grantee grantee = {
		.principal = NC_PROCESS, .who = (unsigned)pid, .pidfd = nc_identity_open(pid)};

	ck_assert_int_ge(grantee.pidfd, 0);
	return grantee;
}

static int give(size_t id, struct nc_grantee to)
{
	int error = nc_grants_give(&book, id, &to);

	if (error && to.pidfd >= 0)
		close(to.pidfd);
	return error;
}

static int take(size_t id, struct nc_grantee from)
{
	return nc_grants_take(&book, id, &from);
}

/* Borrows from a descriptor that is there; *slot says where it is shown. */
static int export_unit(size_t id, struct nc_subject *to, uint32_t *slot)
{
	struct nc_export_info info = {.fd = -1};
	int error = nc_grants_export(&book, id, to, STDIN_FILENO, &info);

	if (!error) {
		ck_assert_int_ge(info.fd, 0);
		ck_assert_int_eq(fcntl(info.fd, F_GETFD), FD_CLOEXEC);
		close(info.fd);
		*slot = info.slot;
		/* The revocation map is handed over by others: here it only costs a descriptor. */
	}
	return error;
}

static uint64_t shown(const struct nc_subject *subject, uint32_t slot)
{
	return nc_revocation_map_read(&subject->revocations.segment, slot);
}

START_TEST(test_enter)
{
	struct nc_subject maker;
	bool made = true;

	open_book();
	join(&maker, 0, 1000, 10 * PAGE);
	ck_assert(!nc_grants_known(&book, 5, &maker, &made));
	ck_assert(!made);
	ck_assert_int_eq(nc_grants_enter(&book, 5, &maker, NULL, 100, 64), 0);
	ck_assert_int_eq(nc_grants_enter(&book, 5, &maker, NULL, 100, 64), -EEXIST);
	ck_assert_int_eq(nc_grants_enter(&book, 5, NULL, NULL, 100, 64), -EEXIST);
	ck_assert(nc_grants_known(&book, 5, &maker, &made));
	ck_assert(made);
	ck_assert(nc_grants_known(&book, 5, NULL, &made));
	ck_assert(!made);
	/* Whole pages are what it costs. */
	ck_assert_uint_eq(maker.sealed, PAGE);
	ck_assert_int_eq(nc_grants_room(&book, &maker, 9 * PAGE), 0);
	ck_assert_int_eq(nc_grants_room(&book, &maker, 9 * PAGE + 1), -EDQUOT);
	ck_assert_int_eq(nc_grants_room(&book, &maker, SIZE_MAX), -EDQUOT);
	ck_assert_int_eq(nc_grants_enter(&book, 6, &maker, NULL, 9 * PAGE + 1, 0), -EDQUOT);
	ck_assert_int_eq(nc_grants_enter(&book, 6, &maker, NULL, 9 * PAGE, 0), 0);
	ck_assert_int_eq(nc_grants_enter(&book, 7, &maker, NULL, 1, 0), -EDQUOT);
	/* The owner has no quota here. */
	ck_assert_int_eq(nc_grants_enter(&book, 7, NULL, NULL, 1 << 30, 0), 0);
	nc_grants_drop(&book, 6);
	ck_assert_uint_eq(maker.sealed, PAGE);
	nc_grants_drop(&book, 6);
	nc_grants_drop(&book, 5);
	ck_assert_uint_eq(maker.sealed, 0);
	part(&maker);
	close_book();
}
END_TEST

/* Who made a unit may use it, and the leader of that one's session, if it is the same as then. */
START_TEST(test_admits)
{
	static struct nc_subject maker, member;
	struct nc_identity other = {.pid = 500, .pidfd = -1, .uid = 9, .gid = 8},
			   leader = {.pid = 400, .pidfd = -1, .uid = 9, .gid = 8};
	const struct nc_grantee user = {.principal = NC_USER, .who = 9, .pidfd = -1};
	const size_t sealed = nc_id(0, 5, 1), owners = nc_id(0, 6, 1), own = nc_id(3, 1, 1);

	open_book();
	join(&maker, 0, 1000, 10 * PAGE);
	join(&member, 3, 1000, 10 * PAGE);
	maker.who.pid = member.who.pid = 500;
	maker.who.session = member.who.session = 400;
	maker.who.since = member.who.since = 1000;
	ck_assert_int_eq(nc_grants_enter(&book, sealed, &maker, NULL, PAGE, PAGE), 0);
	ck_assert_int_eq(nc_grants_enter(&book, owners, NULL, NULL, PAGE, PAGE), 0);
	for (unsigned turn = 0; turn < 2; turn++) {
		ck_assert(nc_grants_admits(&book, sealed, &other, 1000));
		ck_assert(nc_grants_admits(&book, sealed, &leader, 1000));
		ck_assert(!nc_grants_admits(&book, sealed, &other, 1001));
		ck_assert(!nc_grants_admits(&book, sealed, &leader, 1001));
		ck_assert(!nc_grants_admits(&book, sealed, &leader, UINT64_MAX));
		/* What lies in a member's own segment goes with it. */
		ck_assert(nc_grants_admits(&book, own, &other, 1000) == !turn);
		ck_assert(nc_grants_admits(&book, own, &leader, 1000) == !turn);
		ck_assert(!nc_grants_admits(&book, own, &other, 1001));
		if (turn == 0) {
			part(&maker);
			part(&member);
		}
	}
	/* Of one whose process is unknown, or of the owner's units, nothing but leave counts. */
	other.pid = 0;
	for (unsigned i = 0; i < 2; i++) {
		size_t id = i ? owners : sealed;

		ck_assert(!nc_grants_admits(&book, id, &other, 0));
		ck_assert_int_eq(nc_grants_give(&book, id, &user), 0);
		ck_assert(nc_grants_admits(&book, id, &other, UINT64_MAX));
		ck_assert_int_eq(nc_grants_take(&book, id, &user), 0);
		ck_assert(!nc_grants_admits(&book, id, &other, 0));
	}
	ck_assert(!nc_grants_admits(&book, nc_id(0, 7, 1), &leader, 0));
	close_book();
}
END_TEST

/* A copy is closed with its record; on failure it stays the caller's. */
/* Known of what is sealed when its maker has gone, and of what is not while it is there. */
START_TEST(test_session)
{
	static struct nc_subject maker, member;
	uint64_t since;

	join(&maker, 0, 1000, 10 * PAGE);
	join(&member, 3, 1000, 10 * PAGE);
	maker.who.since = 500;
	maker.who.session = 77;
	member.who.session = 88;
	ck_assert_int_eq(nc_grants_enter(&book, nc_id(0, 5, 1), &maker, NULL, PAGE, PAGE), 0);
	ck_assert_int_eq(nc_grants_enter(&book, nc_id(0, 6, 1), NULL, NULL, PAGE, PAGE), 0);
	ck_assert_int_eq(nc_grants_session(&book, nc_id(0, 5, 1), &since), 77);
	ck_assert_uint_eq(since, 500);
	ck_assert_int_eq(nc_grants_session(&book, nc_id(0, 6, 1), &since), 0);
	ck_assert_uint_eq(since, 0);
	ck_assert_int_eq(nc_grants_session(&book, nc_id(0, 7, 1), &since), 0);
	ck_assert_int_eq(nc_grants_session(&book, nc_id(3, 1, 1), &since), 88);
	ck_assert_int_eq(nc_grants_session(&book, nc_id(4, 1, 1), &since), 0);
	part(&maker);
	part(&member);
	ck_assert_int_eq(nc_grants_session(&book, nc_id(0, 5, 1), &since), 77);
	ck_assert_uint_eq(since, 500);
	ck_assert_int_eq(nc_grants_session(&book, nc_id(3, 1, 1), &since), 0);
}
END_TEST

START_TEST(test_copies)
{
	struct nc_segment first = frozen(3 * PAGE), second = frozen(PAGE);
	struct nc_subject maker;

	descriptors_before = open_descriptors() - 2;
	nc_grants_init(&book, 16 * PAGE);
	join(&maker, 3, 1000, 3 * PAGE);
	ck_assert_int_eq(nc_grants_enter(&book, 5, &maker, &first, 9000, 4096), 0);
	ck_assert_uint_eq(maker.sealed, 3 * PAGE);
	ck_assert_int_eq(nc_grants_enter(&book, 6, &maker, &second, 1, 4096), -EDQUOT);
	ck_assert_int_eq(nc_grants_enter(&book, 5, NULL, &second, 1, 4096), -EEXIST);
	ck_assert_int_eq(fcntl(second.fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(nc_grants_enter(&book, 6, NULL, &second, 1, 4096), 0);
	/* With its last leave and export a copy goes. */
	ck_assert_int_eq(give(6, user(7)), 0);
	ck_assert_int_eq(give(6, user(8)), 0);
	ck_assert_int_eq(take(6, user(7)), 0);
	ck_assert_uint_eq(book.records.count, 2);
	ck_assert_int_eq(take(6, user(8)), 0);
	ck_assert_uint_eq(book.records.count, 1);
	ck_assert_int_eq(take(6, user(8)), -ENOENT);
	part(&maker);
	close_book();
}
END_TEST

START_TEST(test_leave)
{
	struct nc_subject maker, other, member, overseer;
	struct nc_grantee group = {.principal = NC_GROUP, .who = 77, .pidfd = -1};
	uint32_t slot = 0, same;

	open_book();
	join(&maker, 0, 1000, PAGE);
	join(&other, 0, 1001, PAGE);
	join(&member, 0, 1002, PAGE);
	join(&overseer, 0, 0, PAGE);
	overseer.operates = true;
	member.who.groups[0] = 77;
	member.who.group_count = 1;
	ck_assert_int_eq(export_unit(5, &maker, &slot), -EACCES);
	ck_assert_int_eq(give(5, user(1001)), -ENOENT);
	ck_assert_int_eq(nc_grants_enter(&book, 5, &maker, NULL, 100, 64), 0);
	/* Its maker and those who look after all may; nobody else without leave. */
	ck_assert_int_eq(export_unit(5, &maker, &slot), 0);
	ck_assert_int_eq(export_unit(5, &overseer, &slot), 0);
	ck_assert_int_eq(export_unit(5, &other, &slot), -EACCES);
	ck_assert_int_eq(export_unit(5, &member, &slot), -EACCES);
	ck_assert_ptr_null(other.exports);
	ck_assert_int_eq(give(5, user(1001)), 0);
	ck_assert_int_eq(export_unit(5, &other, &slot), 0);
	ck_assert_uint_eq(shown(&other, slot), 5);
	ck_assert_int_eq(export_unit(5, &member, &same), -EACCES);
	/* Lent twice is shown once. */
	ck_assert_int_eq(export_unit(5, &other, &same), 0);
	ck_assert_uint_eq(same, slot);
	/* Taken away, at once. */
	ck_assert_int_eq(take(5, user(1002)), -ENOENT);
	ck_assert_uint_eq(shown(&other, slot), 5);
	ck_assert_int_eq(take(5, user(1001)), 0);
	ck_assert_uint_eq(shown(&other, slot), NC_REVOCATION_REVOKED);
	ck_assert_int_eq(export_unit(5, &other, &same), -EACCES);
	/* By a group that is a supplementary one, and by its own. */
	ck_assert_int_eq(give(5, group), 0);
	ck_assert_int_eq(export_unit(5, &member, &slot), 0);
	ck_assert_int_eq(export_unit(5, &other, &same), -EACCES);
	group.who = 500;
	ck_assert_int_eq(give(5, group), 0);
	ck_assert_int_eq(export_unit(5, &other, &same), 0);
	ck_assert_int_eq(take(5, group), 0);
	ck_assert_uint_eq(shown(&other, same), NC_REVOCATION_REVOKED);
	ck_assert_uint_eq(shown(&member, slot), 5);
	/* Leave of two kinds: one taken, the other is enough. */
	ck_assert_int_eq(give(5, user(1002)), 0);
	group.who = 77;
	ck_assert_int_eq(take(5, group), 0);
	ck_assert_uint_eq(shown(&member, slot), 5);
	/* A kind that does not exist lets nobody in. */
	group.principal = (enum NC_principal)99;
	group.who = 500;
	ck_assert_int_eq(give(5, group), 0);
	ck_assert_int_eq(export_unit(5, &other, &same), -EACCES);
	nc_grants_drop(&book, 5);
	ck_assert_uint_eq(shown(&member, slot), NC_REVOCATION_DESTROYED);
	part(&overseer);
	part(&member);
	part(&other);
	part(&maker);
	close_book();
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
	open_book();
	pid = fork_paused();
	join(&subject, 0, 1000, PAGE);
	subject.who.pid = pid;
	subject.who.pidfd = nc_identity_open(pid);
	ck_assert_int_eq(nc_grants_enter(&book, 5, NULL, NULL, 100, 64), 0);
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
	/* A revocation map more, a pidfd less. */
	ck_assert_uint_eq(open_descriptors(), descriptors + 1);
	/* Who has ended has no leave, and its pidfd is kept no longer than needed. */
	ck_assert_int_eq(give(5, process(pid)), 0);
	end_child(pid);
	ck_assert_int_eq(export_unit(5, &subject, &slot), -EACCES);
	ck_assert_int_eq(give(5, user(1)), 0);
	ck_assert_uint_eq(open_descriptors(), descriptors + 1);
	part(&subject);
	close_book();
}
END_TEST

/* The same leave twice is one; it costs one descriptor and is taken by one call. */
START_TEST(test_twice)
{
	struct nc_subject subject;
	unsigned descriptors;
	uint32_t slot;

	open_book();
	join(&subject, 0, 1000, PAGE);
	ck_assert_int_eq(nc_grants_enter(&book, 5, NULL, NULL, 100, 64), 0);
	for (unsigned i = 0; i < 3 * NC_LEAVES_MAX; i++)
		expect(give(5, user(1000)) == 0);
	ck_assert_int_eq(take(5, user(1000)), 0);
	ck_assert_int_eq(take(5, user(1000)), -ENOENT);
	ck_assert_int_eq(export_unit(5, &subject, &slot), -EACCES);
	if (!skip_without_pidfds("grant: twice")) {
		ck_assert_int_eq(give(5, process(getpid())), 0);
		descriptors = open_descriptors();
		for (unsigned i = 0; i < 3 * NC_LEAVES_MAX; i++)
			expect(give(5, process(getpid())) == 0);
		ck_assert_uint_eq(open_descriptors(), descriptors);
	}
	part(&subject);
	close_book();
}
END_TEST

START_TEST(test_many_leaves)
{
	struct nc_subject subject;
	uint32_t slot;

	open_book();
	join(&subject, 0, 1000, PAGE);
	ck_assert_int_eq(nc_grants_enter(&book, 5, NULL, NULL, 100, 64), 0);
	for (unsigned i = 0; i < NC_LEAVES_MAX; i++)
		expect(give(5, user(1000 + i)) == 0);
	ck_assert_int_eq(give(5, user(9)), -ENOSPC);
	ck_assert_int_eq(export_unit(5, &subject, &slot), 0);
	ck_assert_int_eq(take(5, user(1500)), 0);
	ck_assert_int_eq(give(5, user(9)), 0);
	ck_assert_int_eq(give(5, user(10)), -ENOSPC);
	part(&subject);
	close_book();
}
END_TEST

/* All leaves, in steps, from the last one given on: each once. */
static void check_leaves(unsigned step, unsigned first, unsigned last)
{
	struct NC_grant_info infos[NC_LEAVES_MAX];
	uint64_t cursor = 0;
	unsigned next = last, count, total;

	do {
		count = nc_grants_leaves(&book, 5, &cursor, infos, step, &total);
		ck_assert_uint_le(count, step);
		ck_assert_uint_eq(total, last - first + 1);
		for (unsigned i = 0; i < count; i++) {
			expect(infos[i].principal == NC_USER && infos[i].who == next--);
			expect(infos[i].imports == 0);
		}
		/* Without this nobody would get on. */
		ck_assert(count || !cursor);
	} while (cursor);
	ck_assert_uint_eq(next, first - 1);
}

START_TEST(test_leaves)
{
	struct NC_grant_info infos[4];
	uint64_t cursor = 0;
	unsigned total = 7;

	open_book();
	ck_assert_uint_eq(nc_grants_leaves(&book, 5, &cursor, infos, 4, &total), 0);
	ck_assert_uint_eq(total, 0);
	cursor = 99;
	ck_assert_uint_eq(nc_grants_leaves(&book, 5, &cursor, infos, 4, &total), 0);
	ck_assert_uint_eq(cursor, 0);
	ck_assert_int_eq(nc_grants_enter(&book, 5, NULL, NULL, 100, 64), 0);
	ck_assert_int_eq(nc_grants_enter(&book, 6, NULL, NULL, 100, 64), 0);
	ck_assert_uint_eq(nc_grants_leaves(&book, 5, &cursor, infos, 4, &total), 0);
	for (unsigned i = 0; i < NC_LEAVES_MAX; i++)
		expect(give(5, user(1000 + i)) == 0);
	ck_assert_int_eq(give(6, user(1)), 0);
	for (unsigned step = 1; step <= NC_LEAVES_MAX; step = step * 3 + 1)
		check_leaves(step, 1000, 1000 + NC_LEAVES_MAX - 1);
	check_leaves(NC_LEAVES_MAX, 1000, 1000 + NC_LEAVES_MAX - 1);
	/* The number alone. */
	ck_assert_uint_eq(nc_grants_leaves(&book, 5, &cursor, infos, 0, &total), 0);
	ck_assert_uint_eq(total, NC_LEAVES_MAX);
	/* Behind the end, and before the beginning. */
	cursor = 1;
	ck_assert_uint_eq(nc_grants_leaves(&book, 5, &cursor, infos, 4, &total), 0);
	ck_assert_uint_eq(cursor, 0);
	cursor = UINT64_MAX;
	ck_assert_uint_eq(nc_grants_leaves(&book, 5, &cursor, infos, 4, &total), 4);
	ck_assert_uint_eq(infos[0].who, 1000 + NC_LEAVES_MAX - 1);
	/* What is taken and given meanwhile moves no other one. */
	for (unsigned i = 0; i < 10; i++)
		expect(take(5, user(1000 + NC_LEAVES_MAX - 1 - i)) == 0);
	ck_assert_int_eq(give(5, user(9)), 0);
	ck_assert_uint_eq(nc_grants_leaves(&book, 5, &cursor, infos, 4, &total), 4);
	ck_assert_uint_eq(infos[0].who, 1000 + NC_LEAVES_MAX - 1 - 10);
	ck_assert_uint_eq(total, NC_LEAVES_MAX - 9);
	close_book();
}
END_TEST

/* Who of those that have leave has imported the unit; a leave of a process that ended is none. */
START_TEST(test_leaves_in_use)
{
	struct nc_subject one, two;
	struct NC_grant_info infos[4];
	uint64_t cursor = 0;
	uint32_t slot[2];
	unsigned total, descriptors;
	pid_t pid;

	open_book();
	join(&one, 0, 1000, PAGE);
	join(&two, 0, 1001, PAGE);
	ck_assert_int_eq(nc_grants_enter(&book, 5, NULL, NULL, 100, 64), 0);
	ck_assert_int_eq(
		give(5, (struct nc_grantee){.principal = NC_GROUP, .who = 500, .pidfd = -1}), 0);
	ck_assert_int_eq(give(5, user(1001)), 0);
	ck_assert_int_eq(export_unit(5, &one, &slot[0]), 0);
	ck_assert_int_eq(export_unit(5, &two, &slot[1]), 0);
	ck_assert_uint_eq(nc_grants_leaves(&book, 5, &cursor, infos, 4, &total), 2);
	ck_assert_int_eq(infos[0].principal, NC_USER);
	ck_assert_uint_eq(infos[0].imports, 1);
	ck_assert_int_eq(infos[1].principal, NC_GROUP);
	ck_assert_uint_eq(infos[1].who, 500);
	ck_assert_uint_eq(infos[1].imports, 2);
	ck_assert_int_eq(nc_grants_return(&book, &one, slot[0]), 0);
	ck_assert_uint_eq(nc_grants_leaves(&book, 5, &cursor, infos, 4, &total), 2);
	ck_assert_uint_eq(infos[1].imports, 1);
	if (!skip_without_pidfds("grant: leaves in use")) {
		pid = fork_paused();
		descriptors = open_descriptors();
		ck_assert_int_eq(give(5, process(pid)), 0);
		ck_assert_uint_eq(nc_grants_leaves(&book, 5, &cursor, infos, 4, &total), 3);
		ck_assert_int_eq(infos[0].principal, NC_PROCESS);
		ck_assert_uint_eq(infos[0].who, (unsigned)pid);
		ck_assert_uint_eq(infos[0].imports, 0);
		end_child(pid);
		ck_assert_uint_eq(nc_grants_leaves(&book, 5, &cursor, infos, 4, &total), 2);
		ck_assert_uint_eq(total, 2);
		ck_assert_uint_eq(open_descriptors(), descriptors);
	}
	part(&one);
	part(&two);
	close_book();
}
END_TEST

/* A copy that was there for a process that has ended goes when that is noticed. */
START_TEST(test_leaves_of_the_dead)
{
	struct nc_segment copy = frozen(PAGE);
	struct NC_grant_info infos[1];
	uint64_t cursor = 0;
	unsigned total;
	bool made;
	pid_t pid;

	if (skip_without_pidfds("grant: leaves of the dead")) {
		nc_segment_close(&copy);
		return;
	}
	nc_grants_init(&book, 16 * PAGE);
	pid = fork_paused();
	ck_assert_int_eq(nc_grants_enter(&book, 5, NULL, &copy, 100, 64), 0);
	ck_assert_int_eq(give(5, process(pid)), 0);
	end_child(pid);
	ck_assert_uint_eq(nc_grants_leaves(&book, 5, &cursor, infos, 1, &total), 0);
	ck_assert(!nc_grants_known(&book, 5, NULL, &made));
	ck_assert_uint_eq(book.copied, 0);
	nc_grants_fini(&book);
}
END_TEST

START_TEST(test_return)
{
	struct nc_subject subject;
	uint32_t slot, again;

	open_book();
	join(&subject, 0, 1000, PAGE);
	ck_assert_int_eq(nc_grants_return(&book, &subject, 0), -EINVAL);
	ck_assert_int_eq(nc_grants_enter(&book, 5, &subject, NULL, 100, 64), 0);
	ck_assert_int_eq(export_unit(5, &subject, &slot), 0);
	for (uint32_t bad = 0; bad < NC_REVOCATION_MAP_SLOTS; bad++)
		expect(bad == slot || nc_grants_return(&book, &subject, bad) == -EINVAL);
	ck_assert_int_eq(nc_grants_return(&book, &subject, NC_REVOCATION_MAP_SLOTS), -EINVAL);
	ck_assert_int_eq(nc_grants_return(&book, &subject, UINT32_MAX), -EINVAL);
	ck_assert_int_eq(nc_grants_return(&book, &subject, slot), 0);
	ck_assert_int_eq(nc_grants_return(&book, &subject, slot), -EINVAL);
	/* Returned when it has been struck, too. */
	ck_assert_int_eq(export_unit(5, &subject, &again), 0);
	nc_grants_drop(&book, 5);
	ck_assert_int_eq(nc_grants_return(&book, &subject, again), 0);
	part(&subject);
	close_book();
}
END_TEST

/* A member that returns nothing has 4096 exports and no more; others have theirs. */
START_TEST(test_many_imports)
{
	struct nc_subject greedy, other;
	struct nc_grantee all = user(1000);
	unsigned descriptors;
	uint32_t slot;

	open_book();
	join(&greedy, 0, 1000, PAGE);
	join(&other, 0, 1000, PAGE);
	for (size_t id = 1; id <= NC_REVOCATION_MAP_SLOTS + 1; id++) {
		expect(nc_grants_enter(&book, id, NULL, NULL, 100, 64) == 0);
		expect(give(id, all) == 0);
	}
	for (size_t id = 1; id <= NC_REVOCATION_MAP_SLOTS; id++)
		expect(export_unit(id, &greedy, &slot) == 0);
	descriptors = open_descriptors();
	ck_assert_int_eq(export_unit(NC_REVOCATION_MAP_SLOTS + 1, &greedy, &slot), -ENOSPC);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	ck_assert_int_eq(export_unit(NC_REVOCATION_MAP_SLOTS + 1, &other, &slot), 0);
	/* What was struck takes its slot until it is returned. */
	nc_grants_drop(&book, 17);
	ck_assert_int_eq(export_unit(NC_REVOCATION_MAP_SLOTS + 1, &greedy, &slot), -ENOSPC);
	ck_assert_int_eq(nc_grants_return(&book, &greedy, 16), 0);
	ck_assert_int_eq(export_unit(NC_REVOCATION_MAP_SLOTS + 1, &greedy, &slot), 0);
	ck_assert_uint_eq(slot, 16);
	part(&greedy);
	part(&other);
	close_book();
}
END_TEST

START_TEST(test_part)
{
	struct nc_segment copy = frozen(PAGE);
	struct nc_subject maker, other;
	size_t own = nc_id(3, 7, 1), sealed[3] = {nc_id(0, 1, 1), nc_id(0, 2, 1), nc_id(0, 3, 9)};
	uint32_t slot, mine;
	bool made;

	descriptors_before = open_descriptors() - 1;
	nc_grants_init(&book, 16 * PAGE);
	orphan_count = 0;
	join(&maker, 3, 1000, 10 * PAGE);
	join(&other, 0, 1001, 10 * PAGE);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(nc_grants_enter(&book, sealed[i], &maker, NULL, 100, 64), 0);
	ck_assert_int_eq(nc_grants_enter(&book, own, &maker, &copy, 100, 64), 0);
	ck_assert_int_eq(give(own, user(1001)), 0);
	ck_assert_int_eq(give(sealed[1], user(1001)), 0);
	ck_assert_int_eq(export_unit(own, &other, &mine), 0);
	ck_assert_int_eq(export_unit(sealed[1], &other, &slot), 0);
	ck_assert_int_eq(export_unit(sealed[1], &maker, &(uint32_t){0}), 0);
	/* Copies of what was in its segment go with it; what it made sealed stands. */
	part(&maker);
	ck_assert_uint_eq(orphan_count, 3);
	ck_assert_uint_eq(orphans[0] ^ orphans[1] ^ orphans[2], sealed[0] ^ sealed[1] ^ sealed[2]);
	ck_assert_uint_eq(shown(&other, mine), NC_REVOCATION_DESTROYED);
	ck_assert_uint_eq(shown(&other, slot), sealed[1]);
	ck_assert(!nc_grants_known(&book, own, NULL, &made));
	ck_assert_int_eq(export_unit(sealed[1], &other, &mine), 0);
	ck_assert_int_eq(export_unit(sealed[0], &other, &mine), -EACCES);
	/* One that had nothing leaves nothing. */
	orphan_count = 0;
	part(&other);
	ck_assert_uint_eq(orphan_count, 0);
	ck_assert_uint_eq(book.records.count, 3);
	close_book();
}
END_TEST

START_TEST(test_list)
{
	struct nc_subject maker, other;
	size_t ids[300], cursor = 0, seen = 0;
	unsigned count;

	open_book();
	join(&maker, 0, 1000, SIZE_MAX / 2);
	join(&other, 0, 1001, PAGE);
	for (size_t i = 0; i < 250; i++) {
		size_t id = (i * 7919 % 250 + 1) << 28 | 1;

		expect(nc_grants_enter(&book, id, i % 2 ? &maker : NULL, NULL, 1, 0) == 0);
	}
	ck_assert_uint_eq(nc_grants_list(&book, &other, 0, ids, 300), 0);
	ck_assert_uint_eq(nc_grants_list(&book, &maker, 0, ids, 0), 0);
	ck_assert_uint_eq(nc_grants_list(&book, &maker, SIZE_MAX, ids, 10), 0);
	/* All of them, in order, each once, however many are asked for at a time. */
	for (unsigned step = 1; step < 200; step += 33) {
		cursor = seen = 0;
		while ((count = nc_grants_list(&book, &maker, cursor, ids, step))) {
			for (unsigned i = 0; i < count; i++) {
				expect(ids[i] > cursor);
				cursor = ids[i];
			}
			seen += count;
		}
		ck_assert_uint_eq(seen, 125);
	}
	ck_assert_int_eq(give(1 << 28 | 1, user(1001)), 0);
	ck_assert_uint_eq(nc_grants_list(&book, &other, 0, ids, 300), 1);
	ck_assert_uint_eq(ids[0], 1 << 28 | 1);
	other.operates = true;
	ck_assert_uint_eq(nc_grants_list(&book, &other, 0, ids, 300), 250);
	part(&other);
	orphan_count = 0;
	part(&maker);
	ck_assert_uint_eq(orphan_count, 125);
	close_book();
}
END_TEST

/* Units and processes cost descriptors: each member has its share, and all have theirs. */
START_TEST(test_shares)
{
	struct nc_subject makers[6];
	struct rlimit limit;
	size_t id = 0, first = 0;
	unsigned made = 0;
	int error = 0;

	open_book();
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 80;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (unsigned i = 0; i < 6; i++)
		join(&makers[i], 0, 1000 + i, SIZE_MAX / 2);
	ck_assert(!nc_grants_orphan(&book, &id));
	for (unsigned i = 0; i < 5; i++) {
		while ((error = nc_grants_enter(&book, ++made, &makers[i], NULL, 1, 0)) == 0)
			ck_assert_int_eq(nc_grants_room(&book, &makers[i], 1),
					 makers[i].descriptors < 10 ? made < 40 ? 0 : -EMFILE
								    : -EDQUOT);
		made--;
		ck_assert_int_eq(error, i < 4 ? -EDQUOT : -EMFILE);
		ck_assert_uint_eq(makers[i].descriptors, i < 4 ? 10 : 0);
	}
	ck_assert_uint_eq(made, 40);
	/* The owner's own are not counted. */
	ck_assert_int_eq(nc_grants_enter(&book, 1000, NULL, NULL, 1, 0), 0);
	if (has_pidfds()) {
		ck_assert_int_eq(give(1000, process(getpid())), 0);
		ck_assert_int_eq(give(1, process(getpid())), -EDQUOT);
		nc_grants_drop(&book, 2);
		ck_assert_int_eq(give(1, process(getpid())), 0);
		ck_assert_int_eq(give(1, process(getpid())), 0);
		ck_assert_uint_eq(makers[0].descriptors, 10);
		nc_grants_drop(&book, 1);
		ck_assert_uint_eq(makers[0].descriptors, 8);
	}
	/* What is left behind counts on, and the oldest of it is the first to go. */
	orphan_count = 0;
	part(&makers[2]);
	first = orphans[0];
	part(&makers[1]);
	ck_assert_uint_eq(book.descriptors, has_pidfds() ? 38 : 40);
	for (unsigned i = 0; i < 20; i++) {
		ck_assert(nc_grants_orphan(&book, &id));
		ck_assert_uint_eq(id, i ? orphans[i] : first);
		nc_grants_drop(&book, id);
	}
	ck_assert(!nc_grants_orphan(&book, &id));
	ck_assert_int_eq(nc_grants_room(&book, &makers[4], 1), 0);
	part(&makers[0]);
	part(&makers[3]);
	part(&makers[4]);
	part(&makers[5]);
	for (id = 1; id <= 1000; id++)
		nc_grants_drop(&book, id);
	ck_assert_uint_eq(book.descriptors, 0);
	close_book();
}
END_TEST

/* Without descriptors: refused, and all is as before. */
START_TEST(test_no_descriptors)
{
	struct nc_subject subject;
	uint32_t slot;

	open_book();
	join(&subject, 0, 1000, PAGE);
	ck_assert_int_eq(nc_grants_enter(&book, 5, &subject, NULL, 100, 64), 0);
	/* One is enough for the unit, not for the revocation map. */
	for (unsigned spare = 0; spare < 3; spare++) {
		hog_descriptors(200, spare);
		ck_assert_int_eq(export_unit(5, &subject, &slot), spare < 2 ? -EMFILE : 0);
		free_descriptors();
	}
	ck_assert_uint_eq(shown(&subject, slot), 5);
	ck_assert_int_eq(export_unit(5, &subject, &slot), 0);
	part(&subject);
	close_book();
}
END_TEST

/* --- many threads ------------------------------------------------------------ */

static struct nc_subject crowd[3];

static void *use_book(void *context)
{
	unsigned number = (unsigned)(uintptr_t)context;
	uint64_t state = number + 1;

	for (unsigned i = 0; i < scaled(20000); i++) {
		size_t id = random_next(&state) % 20 + 1;
		struct nc_grantee to = user(1000 + (unsigned)(random_next(&state) % 3));
		uint32_t slot;
		size_t ids[8];
		bool made;

		switch (random_next(&state) % 8) {
		case 0:
			(void)nc_grants_enter(&book, id, &crowd[number], NULL, 100, 64);
			break;
		case 1:
			(void)nc_grants_give(&book, id, &to);
			break;
		case 2:
			(void)nc_grants_take(&book, id, &to);
			break;
		case 3:
			nc_grants_drop(&book, id);
			break;
		case 4:
			(void)nc_grants_list(&book, &crowd[number], 0, ids, 8);
			break;
		case 5:
			(void)nc_grants_known(&book, id, &crowd[number], &made);
			break;
		case 6:
			(void)nc_grants_return(&book, &crowd[number], (uint32_t)id);
			break;
		default:
			(void)export_unit(id, &crowd[number], &slot);
		}
	}
	return NULL;
}

START_TEST(test_threads)
{
	pthread_t threads[3];

	open_book();
	for (unsigned i = 0; i < 3; i++)
		join(&crowd[i], 0, 1000 + i, SIZE_MAX / 2);
	for (uintptr_t i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, use_book, (void *)i), 0);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (size_t id = 1; id <= 20; id++)
		nc_grants_drop(&book, id);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(crowd[i].sealed, 0);
		part(&crowd[i]);
	}
	ck_assert_uint_eq(book.records.count, 0);
	ck_assert_uint_eq(book.count, 0);
	close_book();
}
END_TEST

/* The owner's copies are bounded as a member's are; sealed units cost it no copy. */
START_TEST(test_owners_quota)
{
	struct nc_segment copy, other;

	nc_grants_init(&book, 4 * PAGE);
	ck_assert_int_eq(nc_segment_create(&copy, 3 * PAGE, false, false), 0);
	ck_assert_int_eq(nc_segment_create(&other, 2 * PAGE, false, false), 0);
	ck_assert_int_eq(nc_grants_enter(&book, 1, NULL, &copy, 3 * PAGE, PAGE), 0);
	ck_assert_int_eq(nc_grants_enter(&book, 2, NULL, &other, 2 * PAGE, PAGE), -EDQUOT);
	ck_assert_int_eq(nc_grants_enter(&book, 3, NULL, NULL, 100 * PAGE, PAGE), 0);
	nc_grants_drop(&book, 3);
	nc_grants_drop(&book, 1);
	ck_assert_int_eq(nc_grants_enter(&book, 2, NULL, &other, 2 * PAGE, PAGE), 0);
	nc_grants_drop(&book, 2);
	ck_assert_uint_eq(book.copied, 0);
	nc_grants_fini(&book);
}
END_TEST

static void *drop_all(void *context)
{
	(void)context;
	for (size_t id = 1; id <= 40; id++)
		nc_grants_drop(&book, id);
	return NULL;
}

static void ignore_orphan(void *context, size_t id)
{
	(void)context;
	(void)id;
}

/* Its units are dropped by one thread while another sees it go: it may be freed at once. */
START_TEST(test_part_and_drop)
{
	pthread_t thread;

	open_book();
	for (unsigned i = 0; i < scaled(500); i++) {
		struct nc_subject *maker = must_alloc(sizeof(*maker));

		join(maker, 0, 1000, SIZE_MAX / 2);
		for (size_t id = 1; id <= 40; id++)
			expect(nc_grants_enter(&book, id, maker, NULL, 100, 64) == 0);
		ck_assert_int_eq(pthread_create(&thread, NULL, drop_all, NULL), 0);
		nc_grants_part(&book, maker, ignore_orphan, NULL);
		memset(maker, 0xee, sizeof(*maker));
		free(maker);
		pthread_join(thread, NULL);
		ck_assert_uint_eq(book.records.count, 0);
		ck_assert_uint_eq(book.descriptors, 0);
	}
	close_book();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_owners_quota);
	tcase_add_test(tcase, test_enter);
	tcase_add_test(tcase, test_session);
	tcase_add_test(tcase, test_admits);
	tcase_add_test(tcase, test_copies);
	tcase_add_test(tcase, test_leave);
	tcase_add_test(tcase, test_processes);
	tcase_add_test(tcase, test_twice);
	tcase_add_test(tcase, test_many_leaves);
	tcase_add_test(tcase, test_leaves);
	tcase_add_test(tcase, test_leaves_in_use);
	tcase_add_test(tcase, test_leaves_of_the_dead);
	tcase_add_test(tcase, test_return);
	tcase_add_test(tcase, test_many_imports);
	tcase_add_test(tcase, test_part);
	tcase_add_test(tcase, test_list);
	tcase_add_test(tcase, test_shares);
	tcase_add_test(tcase, test_no_descriptors);
	tcase_add_test(tcase, test_threads);
	tcase_add_test(tcase, test_part_and_drop);
}

RUN_SUITE("grant", fill)
