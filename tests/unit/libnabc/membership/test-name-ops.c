/* SPDX-License-Identifier: MIT */
/*
 * test-name-ops.c - unit tests of name-ops.c: names that members set, remove and look up by calls
 * made by hand: who may, which units, and what comes with the replies.
 */
#include <errno.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "cache/grant.h"
#include "cache/index.h"
#include "cache/names.h"
#include "membership/name-ops.h"
#include "os/peer.h"
#include "os/segment.h"
#include "store/pool.h"
#include "store/revocation-map.h"
#include "wire/wire.h"

#include "process-fixture.h"
#include "rpc-fixture.h"
#include "rpc-server-fixture.h"
#include "suite.h"

/* A call with length bytes behind it; returns its negated errno, and the reply. */
static int say_name(struct caller *caller, struct nc_wire_call call, const char *name,
		    size_t length, struct reply *reply)
{
	struct {
		struct nc_wire_call head;
		char behind[NC_WIRE_BEHIND_MAX];
	} message = {.head = call};

	message.head.magic = NC_WIRE_MAGIC;
	message.head.length = (uint32_t)length;
	memcpy(message.behind, name, length);
	say(caller, &message, sizeof(call) + length, NULL, 0);
	ck_assert_int_eq(serve(caller), 1);
	hear(caller, reply);
	return -reply->head.error;
}

static int set_name(struct caller *caller, const char *name, size_t id, unsigned flags)
{
	struct nc_wire_call call = {.op = NC_WIRE_NAME_SET, .id = id, .who = flags};
	struct reply reply;

	return say_name(caller, call, name, strlen(name), &reply);
}

static int remove_name(struct caller *caller, const char *name, size_t id)
{
	struct nc_wire_call call = {.op = NC_WIRE_NAME_REMOVE, .id = id};
	struct reply reply;

	return say_name(caller, call, name, strlen(name), &reply);
}

/* The caller still has no revocation map, or has it. */
static int look_up(struct caller *caller, const char *name, uint32_t slot, struct reply *reply)
{
	struct nc_wire_call call = {.op = NC_WIRE_NAME_HOLD, .slot = slot};

	return say_name(caller, call, name, strlen(name), reply);
}

static int grant(size_t id, uid_t uid)
{
	struct nc_wire_call call = {
		.op = NC_WIRE_GRANT, .id = id, .principal = NC_USER, .who = uid};
	struct reply reply;

	return call_plain(&overseer, &call, &reply);
}

/* Only who could be an operator sets names, of units that it may use. */
START_TEST(test_who_may)
{
	size_t own, sealed;

	open_all();
	own = make_own(1, 5000);
	sealed = make_sealed(&member, 2, 5000);
	ck_assert_int_eq(set_name(&member, "n", sealed, 0), -EPERM);
	ck_assert_int_eq(remove_name(&member, "n", 0), -EPERM);
	ck_assert_int_eq(set_name(&overseer, "n", own, 0), 0);
	ck_assert_int_eq(remove_name(&member, "n", own), -EPERM);
	ck_assert_int_eq(set_name(&overseer, "n", own + 1, 0), -ENOENT);
	ck_assert_int_eq(set_name(&overseer, "n", own, ~NC_NAME_NEW), -EINVAL);
	member.subject.names = other.subject.names = true;
	/* Whether there are such units, it does not learn. */
	ck_assert_int_eq(set_name(&other, "n", sealed, 0), -EACCES);
	ck_assert_int_eq(set_name(&other, "n", own, 0), -EACCES);
	ck_assert_int_eq(set_name(&other, "n", own + 1, 0), -EACCES);
	ck_assert_int_eq(set_name(&other, "n", 0, 0), -EACCES);
	ck_assert_int_eq(set_name(&member, "n", sealed, NC_NAME_NEW), -EEXIST);
	ck_assert_int_eq(set_name(&member, "n", sealed, 0), 0);
	ck_assert_int_eq(grant(own, 1001), 0);
	ck_assert_int_eq(set_name(&other, "n", own, 0), 0);
	ck_assert_int_eq(remove_name(&member, "n", sealed), -ENOENT);
	ck_assert_int_eq(remove_name(&member, "n", own), 0);
	ck_assert_int_eq(remove_name(&member, "n", 0), -ENOENT);
	close_all();
}
END_TEST

/* A name gives no access, and does not say that there is a unit. */
START_TEST(test_no_access)
{
	struct reply reply;
	size_t own, sealed;

	open_all();
	own = make_own(1, 5000);
	sealed = make_sealed(&member, 2, 5000);
	ck_assert_int_eq(set_name(&overseer, "own", own, 0), 0);
	ck_assert_int_eq(set_name(&overseer, "sealed", sealed, 0), 0);
	ck_assert_int_eq(look_up(&other, "none", NC_WIRE_NO_MAP, &reply), -ENOENT);
	ck_assert_int_eq(look_up(&other, "own", NC_WIRE_NO_MAP, &reply), -ENOENT);
	ck_assert_int_eq(look_up(&other, "sealed", NC_WIRE_NO_MAP, &reply), -ENOENT);
	ck_assert_uint_eq(reply.head.id, 0);
	ck_assert_uint_eq(reply.head.length, 0);
	ck_assert_uint_eq(reply.count, 0);
	ck_assert_ptr_null(other.subject.revocations.segment.base);
	/* Nor after the grant has ended. */
	ck_assert_int_eq(grant(own, 1001), 0);
	ck_assert_int_eq(look_up(&other, "own", NC_WIRE_NO_MAP, &reply), 0);
	check_bytes(&reply, 1, 5000);
	ck_assert_int_eq(
		nc_grants_revoke(&cache.grants, own, &(struct nc_grantee){NC_USER, 1001, -1}), 0);
	ck_assert_int_eq(look_up(&other, "own", 0, &reply), -ENOENT);
	close_all();
}
END_TEST

/* The unit comes once; from then on, the reply says that the caller has it. */
START_TEST(test_reply)
{
	unsigned descriptors;
	struct reply reply;
	uint32_t slot;
	size_t own, sealed;

	open_all();
	own = make_own(1, 5000);
	ck_assert_int_eq(grant(own, 1001), 0);
	ck_assert_int_eq(set_name(&overseer, "n", own, 0), 0);
	ck_assert_int_eq(look_up(&other, "n", NC_WIRE_NO_MAP, &reply), 0);
	ck_assert_uint_eq(reply.head.id, own);
	ck_assert_uint_eq(reply.head.flags, NC_WIRE_HAS_UNIT | NC_WIRE_HAS_MAP);
	slot = reply.head.slot;
	check_bytes(&reply, 1, 5000);
	descriptors = open_descriptors();
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(look_up(&other, "n", 0, &reply), 0);
		ck_assert_uint_eq(reply.head.id, own);
		ck_assert_uint_eq(reply.head.flags, 0);
		ck_assert_uint_eq(reply.count, 0);
	}
	/* If it was returned, it comes again. */
	ck_assert_int_eq(call_plain(&other,
				    &(struct nc_wire_call){.op = NC_WIRE_DROP, .slot = slot},
				    &reply),
			 0);
	ck_assert_int_eq(look_up(&other, "n", 0, &reply), 0);
	ck_assert_uint_eq(reply.head.flags, NC_WIRE_HAS_UNIT);
	check_bytes(&reply, 1, 5000);
	/* As it does if the map never arrived. */
	nc_grants_lose_map(&cache.grants, &other.subject);
	ck_assert_int_eq(look_up(&other, "n", NC_WIRE_NO_MAP, &reply), 0);
	ck_assert_uint_eq(reply.head.flags, NC_WIRE_HAS_UNIT | NC_WIRE_HAS_MAP);
	check_bytes(&reply, 1, 5000);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	/* Who made it has it. */
	sealed = make_sealed(&member, 2, 5000);
	ck_assert_int_eq(set_name(&overseer, "n", sealed, 0), 0);
	ck_assert_int_eq(look_up(&member, "n", 0, &reply), 0);
	ck_assert_uint_eq(reply.head.id, sealed);
	ck_assert_uint_eq(reply.count, 0);
	/* An end of the unit is one of the name. */
	ck_assert_int_eq(nc_index_destroy(&cache, sealed), 0);
	ck_assert_int_eq(look_up(&member, "n", 0, &reply), -ENOENT);
	ck_assert_int_eq(set_name(&overseer, "n", own, NC_NAME_NEW), 0);
	close_all();
}
END_TEST

/* A reply that does not arrive gives back what is new, and only that. */
START_TEST(test_lost_reply)
{
	struct nc_wire_call call = {.magic = NC_WIRE_MAGIC, .op = NC_WIRE_NAME_HOLD, .length = 1};
	struct {
		struct nc_wire_call head;
		char behind[1];
	} message = {.head = call, .behind = "n"};
	struct reply reply;
	bool exported;
	size_t own;

	for (unsigned known = 0; known < 2; known++) {
		open_all();
		own = make_own(1, 5000);
		ck_assert_int_eq(grant(own, 1001), 0);
		ck_assert_int_eq(set_name(&overseer, "n", own, 0), 0);
		if (known) {
			ck_assert_int_eq(look_up(&other, "n", NC_WIRE_NO_MAP, &reply), 0);
			check_bytes(&reply, 1, 5000);
		}
		say(&other, &message, sizeof(call) + 1, NULL, 0);
		ck_assert_int_eq(shutdown(other.socket[0], SHUT_WR), 0);
		(void)serve(&other);
		ck_assert(nc_grants_may(&cache.grants, own, &other.subject, &exported));
		ck_assert(exported == known);
		close_all();
	}
}
END_TEST

START_TEST(test_bad_names)
{
	static const uint32_t ops[] = {NC_WIRE_NAME_SET, NC_WIRE_NAME_HOLD, NC_WIRE_NAME_REMOVE};
	static char name[NC_WIRE_BEHIND_MAX];
	unsigned descriptors;
	struct reply reply;
	size_t own;

	open_all();
	own = make_own(1, 5000);
	descriptors = open_descriptors();
	for (unsigned i = 0; i < 3; i++) {
		struct nc_wire_call call = {.op = ops[i], .id = own};

		memset(name, 'x', sizeof(name));
		ck_assert_int_eq(say_name(&overseer, call, name, 0, &reply), -EINVAL);
		ck_assert_int_eq(say_name(&overseer, call, name, NC_NAME_MAX + 1, &reply), -EINVAL);
		ck_assert_int_eq(say_name(&overseer, call, name, sizeof(name), &reply), -EINVAL);
		name[5] = '\0';
		ck_assert_int_eq(say_name(&overseer, call, name, 6, &reply), -EINVAL);
		ck_assert_int_eq(say_name(&overseer, call, name, 10, &reply), -EINVAL);
		ck_assert_int_eq(say_name(&overseer, call, name, 5, &reply), i == 1 ? -ENOENT : 0);
		if (i == 0)
			ck_assert_int_eq(remove_name(&overseer, "xxxxx", 0), 0);
		if (i == 1)
			ck_assert_int_eq(set_name(&overseer, "xxxxx", own, 0), 0);
	}
	ck_assert_uint_eq(cache.names.count, 0);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_who_may);
	tcase_add_test(tcase, test_no_access);
	tcase_add_test(tcase, test_reply);
	tcase_add_test(tcase, test_lost_reply);
	tcase_add_test(tcase, test_bad_names);
}

RUN_SUITE("name-ops", fill)
