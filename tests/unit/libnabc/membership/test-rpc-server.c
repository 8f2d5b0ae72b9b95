/* SPDX-License-Identifier: MIT */
/*
 * test-rpc-server.c - unit tests of rpc-server.c: every call by hand, as members
 * make it.  After each the owner has as many descriptors and as much memory in
 * use as before.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "base/hash-table.h"
#include "base/id.h"
#include "cache/grant.h"
#include "cache/index.h"
#include "os/identity.h"
#include "wire/wire.h"

#include "process-fixture.h"
#include "rpc-fixture.h"
#include "rpc-server-fixture.h"
#include "suite.h"

static int grant_user(struct caller *caller, enum nc_wire_op op, size_t id, uid_t uid)
{
	struct nc_wire_call call = {.op = op, .id = id, .principal = NC_USER, .who = uid};
	struct reply reply;

	return call_plain(caller, &call, &reply);
}

/* --- valid calls ---------------------------------------------------------------- */

START_TEST(test_seal_and_fetch)
{
	struct nc_wire_call fetch = {.op = NC_WIRE_FETCH};
	struct reply reply;

	open_all();
	fetch.id = make_sealed(&member, 1, 5000);
	ck_assert(known(fetch.id));
	ck_assert_int_eq(nc_id_member(fetch.id), 0);
	/* Its creator can fetch it; others cannot, and learn nothing. */
	ck_assert_int_eq(call_with(&member, &fetch, NULL, 0, &reply), 0);
	check_bytes(&reply, 1, 5000);
	ck_assert_int_eq(call_plain(&other, &fetch, &reply), -EACCES);
	ck_assert_int_eq(call_id(&other, NC_WIRE_FETCH, nc_id(0, 9, 9)), -EACCES);
	ck_assert_int_eq(call_id(&other, NC_WIRE_DESTROY, fetch.id), -EACCES);
	ck_assert_int_eq(call_id(&other, NC_WIRE_STAT, fetch.id), -EACCES);
	ck_assert_int_eq(grant_user(&other, NC_WIRE_GRANT, fetch.id, 1001), -EACCES);
	ck_assert_int_eq(grant_user(&other, NC_WIRE_REVOKE, fetch.id, 1001), -EACCES);
	/* Granted: they get the same bytes, but do not own them. */
	ck_assert_int_eq(grant_user(&member, NC_WIRE_GRANT, fetch.id, 1001), 0);
	ck_assert_int_eq(call_with(&other, &fetch, NULL, 0, &reply), 0);
	check_bytes(&reply, 1, 5000);
	ck_assert_int_eq(call_id(&other, NC_WIRE_DESTROY, fetch.id), -EACCES);
	ck_assert_int_eq(grant_user(&other, NC_WIRE_GRANT, fetch.id, 1002), -EACCES);
	ck_assert_int_eq(grant_user(&other, NC_WIRE_REVOKE, fetch.id, 1001), -EACCES);
	ck_assert_int_eq(grant_user(&member, NC_WIRE_REVOKE, fetch.id, 1001), 0);
	ck_assert_int_eq(call_plain(&other, &fetch, &reply), -EACCES);
	ck_assert_int_eq(call_id(&member, NC_WIRE_DESTROY, fetch.id), 0);
	ck_assert(!known(fetch.id));
	ck_assert_int_eq(call_plain(&member, &fetch, &reply), -EACCES);
	ck_assert_int_eq(call_id(&member, NC_WIRE_DESTROY, fetch.id), -EACCES);
	close_all();
}
END_TEST

START_TEST(test_operator)
{
	struct nc_wire_call fetch = {.op = NC_WIRE_FETCH};
	struct nc_wire_call stat = {.op = NC_WIRE_STAT, .size = 8};
	struct nc_wire_call list = {
		.op = NC_WIRE_LIST, .who = 10, .fraglen = sizeof(struct NC_stat)};
	struct reply reply;
	size_t sealed;

	open_all();
	fetch.id = make_own(3, 9000);
	sealed = make_sealed(&member, 1, 100);
	ck_assert_int_eq(call_plain(&member, &fetch, &reply), -EACCES);
	/* No copy is made for a process without a grant. */
	ck_assert_uint_eq(cache.grants.records.count, 1);
	ck_assert_int_eq(call_with(&overseer, &fetch, NULL, 0, &reply), 0);
	check_bytes(&reply, 3, 9000);
	ck_assert_int_eq(call_id(&overseer, NC_WIRE_FETCH, nc_id(0, 900, 1)), -ENOENT);
	stat.id = nc_id(0, 900, 1);
	ck_assert_int_eq(call_plain(&overseer, &stat, &reply), -ENOENT);
	/* As much as the caller knows, which may be older or newer. */
	stat.id = sealed;
	for (size_t size = 8; size <= sizeof(struct NC_stat) + 8; size += 8) {
		size_t got[2] = {0};

		stat.size = list.fraglen = size;
		ck_assert_int_eq(call_plain(&overseer, &stat, &reply), 0);
		ck_assert_uint_eq(reply.head.length, size);
		memcpy(got, reply.behind, 8);
		memcpy(got + 1, reply.behind + size - 8, 8);
		ck_assert_uint_eq(got[0], sealed);
		ck_assert(size <= sizeof(struct NC_stat) || got[1] == 0);
		ck_assert_int_eq(call_plain(&overseer, &list, &reply), 0);
		ck_assert_uint_eq(reply.head.length, 2 * size);
	}
	stat.size = NC_WIRE_BEHIND_MAX + 1;
	ck_assert_int_eq(call_plain(&overseer, &stat, &reply), -EPROTO);
	list.fraglen = 0;
	ck_assert_int_eq(call_plain(&overseer, &list, &reply), -EPROTO);
	list.fraglen = sizeof(struct NC_stat);
	ck_assert_int_eq(call_plain(&overseer, &list, &reply), 0);
	ck_assert_uint_eq(reply.head.length, 2 * sizeof(struct NC_stat));
	ck_assert_uint_eq(reply.head.size, 0);
	ck_assert_int_eq(grant_user(&overseer, NC_WIRE_GRANT, fetch.id, 1001), 0);
	ck_assert_int_eq(call_with(&other, &fetch, NULL, 0, &reply), 0);
	check_bytes(&reply, 3, 9000);
	ck_assert_int_eq(call_id(&overseer, NC_WIRE_DESTROY, fetch.id), 0);
	ck_assert_int_eq(call_id(&overseer, NC_WIRE_DESTROY, sealed), 0);
	ck_assert_int_eq(call_id(&overseer, NC_WIRE_DESTROY, sealed), -ENOENT);
	/* This server does not implement these; members may not even call them. */
	for (unsigned op = NC_WIRE_COUNTERS; op < NC_WIRE_NAME_SET; op++) {
		if (op == NC_WIRE_KEEP || op == NC_WIRE_GRANTS || op == NC_WIRE_JOINED)
			continue;
		ck_assert_int_eq(call_id(&overseer, op, 1), -EOPNOTSUPP);
		ck_assert_int_eq(call_id(&member, op, 1), -EPERM);
	}
	ck_assert_int_eq(call_id(&overseer, NC_WIRE_KEEP, 1), -EINVAL);
	ck_assert_int_eq(call_id(&member, NC_WIRE_KEEP, 1), -EACCES);
	ck_assert_int_eq(call_id(&member, NC_WIRE_JOINED, 1), 0);
	close_all();
}
END_TEST

static int keep(struct caller *caller, size_t id, uint32_t what, uint64_t value)
{
	struct nc_wire_call call = {.op = NC_WIRE_KEEP, .id = id, .slot = what, .size = value};
	struct reply reply;

	return call_plain(caller, &call, &reply);
}

/* The creator and operators, and only these, set how long a unit stays. */
START_TEST(test_keep)
{
	size_t own, sealed;

	open_all();
	own = make_own(3, 9000);
	sealed = make_sealed(&member, 1, 100);
	ck_assert_int_eq(grant_user(&overseer, NC_WIRE_GRANT, own, 1001), 0);
	ck_assert_int_eq(grant_user(&member, NC_WIRE_GRANT, sealed, 1001), 0);
	for (uint32_t what = 0; what < 4; what++) {
		ck_assert_int_eq(keep(&member, own, what, 0), -EACCES);
		ck_assert_int_eq(keep(&other, own, what, 0), -EACCES);
		ck_assert_int_eq(keep(&other, sealed, what, 0), -EACCES);
		ck_assert_int_eq(keep(&member, nc_id(0, 900, 1), what, 0), -EACCES);
	}
	ck_assert_int_eq(keep(&member, sealed, NC_WIRE_PRIORITY, NC_PRIORITY_LOW), 0);
	ck_assert_int_eq(keep(&member, sealed, NC_WIRE_PRIORITY, NC_PRIORITY_NORMAL), 0);
	ck_assert_int_eq(keep(&member, sealed, NC_WIRE_PRIORITY, NC_PRIORITY_HIGH), -EPERM);
	ck_assert_int_eq(keep(&member, sealed, NC_WIRE_PRIORITY, NC_PRIORITY_PINNED), -EPERM);
	ck_assert_int_eq(keep(&member, sealed, NC_WIRE_PRIORITY, NC_PRIORITY_PINNED + 1), -EINVAL);
	/* Invalid values that would be valid if cut to 32 bits. */
	ck_assert_int_eq(keep(&member, sealed, NC_WIRE_PRIORITY, (uint64_t)1 << 32), -EINVAL);
	ck_assert_int_eq(keep(&member, sealed, NC_WIRE_LIFETIME, UINT64_MAX), -EINVAL);
	ck_assert_int_eq(keep(&member, sealed, NC_WIRE_LIFETIME, 3600000), 0);
	ck_assert_int_eq(keep(&member, sealed, NC_WIRE_LIFETIME, 0), 0);
	ck_assert_int_eq(keep(&overseer, own, NC_WIRE_PRIORITY, NC_PRIORITY_PINNED), 0);
	ck_assert_int_eq(keep(&overseer, sealed, NC_WIRE_PRIORITY, NC_PRIORITY_HIGH), 0);
	ck_assert_int_eq(keep(&overseer, nc_id(0, 900, 1), NC_WIRE_LIFETIME, 1), -ENOENT);
	ck_assert_int_eq(keep(&overseer, own, 0, 0), -EINVAL);
	ck_assert_int_eq(keep(&overseer, own, NC_WIRE_LIFETIME + 1, 0), -EINVAL);
	close_all();
}
END_TEST

START_TEST(test_list)
{
	struct nc_wire_call list = {
		.op = NC_WIRE_LIST, .who = 7, .fraglen = sizeof(struct NC_stat)};
	struct NC_stat units[7];
	struct reply reply;
	unsigned seen = 0;
	size_t last = 0;

	open_all();
	for (unsigned i = 0; i < 30; i++)
		(void)make_sealed(i % 3 ? &member : &other, i, 100);
	do {
		ck_assert_int_eq(call_plain(&member, &list, &reply), 0);
		memcpy(units, reply.behind, reply.head.length);
		for (unsigned i = 0; i < reply.head.length / sizeof(units[0]); i++) {
			ck_assert_uint_gt(units[i].id, last);
			ck_assert_uint_eq(units[i].size, 100);
			ck_assert_int_eq(units[i].kind, NC_KIND_SEALED);
			last = units[i].id;
			seen++;
		}
		list.size = reply.head.size;
	} while (list.size);
	ck_assert_uint_eq(seen, 20);
	/* For any cursor and number, the list ends and fits into a reply. */
	list.who = UINT32_MAX;
	ck_assert_int_eq(call_plain(&member, &list, &reply), 0);
	ck_assert_uint_eq(reply.head.length, 20 * sizeof(struct NC_stat));
	list.size = SIZE_MAX;
	ck_assert_int_eq(call_plain(&member, &list, &reply), 0);
	ck_assert_uint_eq(reply.head.length, 0);
	ck_assert_uint_eq(reply.head.size, 0);
	for (unsigned i = 0; i < 64; i++) {
		list.size = SIZE_MAX >> i;
		ck_assert_int_eq(call_plain(&overseer, &list, &reply), 0);
		list.who = i % 2 ? 0 : UINT32_MAX;
	}
	close_all();
}
END_TEST

/* --- wrong calls ------------------------------------------------------------------ */

/* A member over its quota is refused; others are not. */
START_TEST(test_quota)
{
	unsigned made = 0;
	size_t last = 0;
	int fd = frozen_fd(1, 64 << 10), error;

	open_all();
	while ((error = seal_with(64 << 10, PAGE, fd)) == 0)
		made++;
	ck_assert_int_eq(error, -EDQUOT);
	ck_assert_uint_eq(made, 16);
	ck_assert_uint_eq(member.subject.sealed, MIB);
	last = make_sealed(&other, 2, 64 << 10);
	ck_assert(known(last));
	/* A dropped unit frees its quota. */
	ck_assert_int_eq(call_id(&member, NC_WIRE_DESTROY, last), -EACCES);
	ck_assert_int_eq(nc_index_destroy(&cache, nc_id(0, 0, 1)), 0);
	ck_assert_int_eq(seal_with(64 << 10, PAGE, fd), 0);
	ck_assert_int_eq(seal_with(64 << 10, PAGE, fd), -EDQUOT);
	close(fd);
	close_all();
}
END_TEST

static int list_grants(struct caller *caller, struct nc_wire_call *call, struct reply *reply)
{
	call->op = NC_WIRE_GRANTS;
	return call_plain(caller, call, reply);
}

/* Only the creator and operators may list the grants of a unit. */
START_TEST(test_grants)
{
	struct nc_wire_call call = {.who = 10, .fraglen = sizeof(struct NC_grant_info)};
	struct NC_grant_info grants[10];
	struct reply reply;
	size_t sealed, own;

	open_all();
	sealed = call.id = make_sealed(&member, 1, 100);
	own = make_own(3, 9000);
	ck_assert_int_eq(list_grants(&member, &call, &reply), 0);
	ck_assert_uint_eq(reply.head.length, 0);
	ck_assert_uint_eq(reply.head.fraglen, 0);
	ck_assert_int_eq(grant_user(&member, NC_WIRE_GRANT, sealed, 1001), 0);
	ck_assert_int_eq(grant_user(&overseer, NC_WIRE_GRANT, own, 1000), 0);
	ck_assert_int_eq(list_grants(&member, &call, &reply), 0);
	ck_assert_uint_eq(reply.head.length, sizeof(grants[0]));
	ck_assert_uint_eq(reply.head.fraglen, 1);
	ck_assert_uint_eq(reply.head.size, 0);
	memcpy(grants, reply.behind, sizeof(grants[0]));
	ck_assert_int_eq(grants[0].principal, NC_USER);
	ck_assert_uint_eq(grants[0].who, 1001);
	ck_assert_uint_eq(grants[0].imports, 0);
	/*
	 * Other processes, with or without a grant, learn nothing; not even whether the unit
	 * exists.
	 */
	ck_assert_int_eq(list_grants(&other, &call, &reply), -EACCES);
	ck_assert_uint_eq(reply.head.length, 0);
	ck_assert_uint_eq(reply.head.fraglen, 0);
	call.id = own;
	ck_assert_int_eq(list_grants(&member, &call, &reply), -EACCES);
	call.id = nc_id(0, 900, 1);
	ck_assert_int_eq(list_grants(&member, &call, &reply), -EACCES);
	ck_assert_int_eq(list_grants(&overseer, &call, &reply), -ENOENT);
	call.id = own;
	ck_assert_int_eq(list_grants(&overseer, &call, &reply), 0);
	ck_assert_uint_eq(reply.head.fraglen, 1);
	call.id = sealed;
	ck_assert_int_eq(list_grants(&overseer, &call, &reply), 0);
	ck_assert_uint_eq(reply.head.fraglen, 1);
	/* The number in the id is that of this creator, but there is no such unit. */
	member.subject.number = 1;
	call.id = nc_id(1, 5, 1);
	ck_assert_int_eq(list_grants(&member, &call, &reply), -ENOENT);
	ck_assert_int_eq(list_grants(&other, &call, &reply), -EACCES);
	member.subject.number = 0;
	close_all();
}
END_TEST

/* For any cursor, number and stride: the list ends, and fits into a reply. */
START_TEST(test_odd_grants)
{
	static const uint64_t good[] = {1, 8, 12, 40, 16000, NC_WIRE_BEHIND_MAX};
	static const uint64_t bad[] = {0, NC_WIRE_BEHIND_MAX + 1, 1ul << 32, 1ul << 32 | 12,
				       SIZE_MAX};
	struct nc_wire_call call = {.who = UINT32_MAX};
	struct {
		struct nc_wire_call call;
		char behind[8];
	} longer;
	struct reply reply;

	open_all();
	call.id = make_sealed(&member, 1, 100);
	for (unsigned i = 0; i < NC_GRANTS_MAX; i++)
		ck_assert_int_eq(grant_user(&member, NC_WIRE_GRANT, call.id, 2000 + i), 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		call.fraglen = bad[i];
		ck_assert_int_eq(list_grants(&member, &call, &reply), -EPROTO);
		ck_assert_uint_eq(reply.head.length, 0);
	}
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		unsigned seen = 0;

		call.fraglen = good[i];
		call.size = 0;
		do {
			ck_assert_int_eq(list_grants(&member, &call, &reply), 0);
			ck_assert_uint_gt(reply.head.length, 0);
			ck_assert_uint_eq(reply.head.length % good[i], 0);
			ck_assert_uint_eq(reply.head.fraglen, NC_GRANTS_MAX);
			seen += reply.head.length / good[i];
			/* Each step makes progress. */
			ck_assert(!call.size || reply.head.size < call.size);
			call.size = reply.head.size;
		} while (call.size);
		ck_assert_uint_eq(seen, NC_GRANTS_MAX);
	}
	call.fraglen = sizeof(struct NC_grant_info);
	call.size = 1;
	ck_assert_int_eq(list_grants(&member, &call, &reply), 0);
	ck_assert_uint_eq(reply.head.length, 0);
	ck_assert_uint_eq(reply.head.size, 0);
	for (unsigned i = 0; i < 64; i++) {
		call.size = SIZE_MAX >> i;
		call.who = i % 2 ? 1 : 0;
		ck_assert_int_eq(list_grants(&member, &call, &reply), 0);
		ck_assert_uint_le(reply.head.length, (i % 2) * call.fraglen);
	}
	/* Bytes after the call have no meaning. */
	longer.call = call;
	longer.call.magic = NC_WIRE_MAGIC;
	longer.call.length = sizeof(longer.behind);
	memset(longer.behind, 'b', sizeof(longer.behind));
	say(&member, &longer, sizeof(longer), NULL, 0);
	ck_assert_int_eq(serve(&member), 1);
	hear(&member, &reply);
	ck_assert_int_eq(reply.head.error, EPROTO);
	close_all();
}
END_TEST

/* Grants of units in a member's own segment come with a copy. */
START_TEST(test_copies)
{
	struct nc_wire_call grant = {.op = NC_WIRE_GRANT,
				     .principal = NC_USER,
				     .who = 1001,
				     .size = 100,
				     .fraglen = PAGE};
	struct reply reply;
	unsigned descriptors;
	int fds[2] = {frozen_fd(5, 100), frozen_fd(6, 100)};

	open_all();
	member.subject.number = 3;
	descriptors = open_descriptors();
	grant.id = nc_id(3, 5, 1);
	ck_assert_int_eq(call_plain(&member, &grant, &reply), -EINVAL);
	ck_assert_int_eq(call_plain(&other, &grant, &reply), -EACCES);
	/* An id with another member's number: not its own to describe. */
	grant.id = nc_id(4, 5, 1);
	ck_assert_int_eq(call_with(&member, &grant, fds, 1, &reply), -EACCES);
	grant.id = nc_id(0, 5, 1);
	ck_assert_int_eq(call_with(&member, &grant, fds, 1, &reply), -EACCES);
	grant.id = nc_id(3, 5, 1);
	for (unsigned principal = 0; principal < 10; principal++) {
		grant.principal = principal;
		if (principal != NC_USER && principal != NC_GROUP)
			ck_assert_int_eq(call_with(&member, &grant, fds, 2, &reply),
					 principal == NC_PROCESS ? -EBADF : -EINVAL);
	}
	grant.principal = UINT32_MAX;
	ck_assert_int_eq(call_with(&member, &grant, fds, 1, &reply), -EINVAL);
	grant.principal = NC_USER;
	grant.who = UINT32_MAX;
	ck_assert_int_eq(call_with(&member, &grant, fds, 1, &reply), -EINVAL);
	grant.who = 1001;
	grant.size = PAGE + 1;
	ck_assert_int_eq(call_with(&member, &grant, fds, 1, &reply), -EPROTO);
	grant.size = 100;
	ck_assert_uint_eq(open_descriptors(), descriptors);
	ck_assert_uint_eq(cache.grants.records.count, 0);
	/* There is a record now; but an export needs the unit itself. */
	ck_assert_int_eq(call_with(&member, &grant, fds, 1, &reply), 0);
	ck_assert_uint_eq(member.subject.sealed, PAGE);
	ck_assert_int_eq(call_id(&other, NC_WIRE_FETCH, grant.id), -EACCES);
	ck_assert_uint_eq(cache.grants.records.count, 0);
	ck_assert_uint_eq(member.subject.sealed, 0);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	close_pair(fds);
	close_all();
}
END_TEST

START_TEST(test_processes)
{
	struct nc_wire_call grant = {.op = NC_WIRE_GRANT, .principal = NC_PROCESS};
	struct reply reply;
	unsigned descriptors;
	int pidfd;
	pid_t pid;

	open_all();
	grant.id = make_sealed(&member, 1, 100);
	ck_assert_int_eq(call_plain(&member, &grant, &reply), -EINVAL);
	grant.who = (uint32_t)getpid();
	ck_assert_int_eq(call_plain(&member, &grant, &reply), -EINVAL);
	if (!skip_without_pidfds("rpc-server: processes")) {
		pid = fork_paused();
		pidfd = nc_identity_open(pid);
		descriptors = open_descriptors();
		/* The number is ignored, the descriptor counts. */
		ck_assert_int_eq(call_with(&member, &grant, &pidfd, 1, &reply), 0);
		ck_assert_int_eq(call_id(&other, NC_WIRE_FETCH, grant.id), -EACCES);
		other.subject.who.pid = pid;
		ck_assert_int_eq(nc_identity_of_child(pid, pidfd, &other.subject.who), 0);
		end_child(pid);
		/* A call from another process is refused; and that process has exited. */
		ck_assert_int_eq(call_id(&other, NC_WIRE_FETCH, grant.id), -EACCES);
		ck_assert_int_eq(call_with(&member, &grant, &pidfd, 1, &reply), -ESRCH);
		ck_assert_uint_eq(open_descriptors(), descriptors + 2);
		close(pidfd);
	}
	close_all();
}
END_TEST

START_TEST(test_drop)
{
	struct nc_wire_call drop = {.op = NC_WIRE_DROP};
	struct reply reply;

	open_all();
	ck_assert_int_eq(call_plain(&member, &drop, &reply), -EINVAL);
	(void)make_sealed(&member, 1, 100);
	for (unsigned bit = 0; bit < 32; bit++) {
		drop.slot = 1u << bit;
		ck_assert_int_eq(call_plain(&member, &drop, &reply), -EINVAL);
	}
	drop.slot = UINT32_MAX;
	ck_assert_int_eq(call_plain(&member, &drop, &reply), -EINVAL);
	drop.slot = 0;
	ck_assert_int_eq(call_plain(&other, &drop, &reply), -EINVAL);
	ck_assert_int_eq(call_plain(&member, &drop, &reply), 0);
	ck_assert_int_eq(call_plain(&member, &drop, &reply), -EINVAL);
	close_all();
}
END_TEST

/* A call of a newer member: it learns that this owner does not support it, and stays attached. */
START_TEST(test_newer_calls)
{
	struct nc_wire_call call = {.size = 8, .fraglen = 8, .slot = 1};
	struct caller *callers[2] = {&member, &overseer};
	struct reply reply;
	unsigned descriptors;
	int fds[2];

	open_all();
	descriptors = open_descriptors();
	for (unsigned i = 0; i < 34; i++) {
		call.op = i < 32 ? NC_WIRE_OPS + (1u << i) - 1 : i == 32 ? NC_WIRE_OPS : UINT32_MAX;
		fds[0] = fds[1] = member.socket[0];
		for (unsigned k = 0; k < 2; k++)
			ck_assert_int_eq(call_with(callers[k], &call, fds, i % 3, &reply),
					 -EOPNOTSUPP);
		ck_assert_uint_eq(reply.head.length, 0);
		ck_assert_uint_eq(reply.count, 0);
	}
	ck_assert_uint_eq(open_descriptors(), descriptors);
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_seal_and_fetch);
	tcase_add_test(tcase, test_operator);
	tcase_add_test(tcase, test_keep);
	tcase_add_test(tcase, test_list);
	tcase_add_test(tcase, test_quota);
	tcase_add_test(tcase, test_copies);
	tcase_add_test(tcase, test_processes);
	tcase_add_test(tcase, test_drop);
	tcase_add_test(tcase, test_grants);
	tcase_add_test(tcase, test_odd_grants);
	tcase_add_test(tcase, test_newer_calls);
}

RUN_SUITE("rpc-server", fill)
