/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-refused.c - with which errno the calls refuse an id: in a process that may use each unit,
 * ENOENT; in a member, EACCES for what it may not use, whether it exists or not.
 */
#include <errno.h>
#include <nabc-async.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/id.h"

#include "nabc-fixture.h"
#include "process-fixture.h"
#include "suite.h"

#define SIZE 100u

static char folder[64], path[100];
static NC_cache *owner, *member, *neighbour, *operator_of;
static int pair[2];

static void setup(void)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 16 << 20);
	struct NC_attach_options segment = NC_ATTACH_OPTIONS_INIT(.flags = 0),
				 whole = NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_OPERATOR);

	make_directory(folder);
	snprintf(path, sizeof(path), "%s/socket", folder);
	owner = NC_cache_open(&options);
	ck_assert_int_eq(NC_cache_serve(owner, path, NULL), 0);
	member = NC_cache_attach(path, &segment);
	neighbour = NC_cache_attach(path, &segment);
	operator_of = NC_cache_attach(path, &whole);
	ck_assert(member && neighbour && operator_of);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
}

static void teardown(void)
{
	close_pair(pair);
	ck_assert_int_eq(NC_cache_close(operator_of), 0);
	ck_assert_int_eq(NC_cache_close(neighbour), 0);
	ck_assert_int_eq(NC_cache_close(member), 0);
	ck_assert_int_eq(NC_cache_close(owner), 0);
	ck_assert_int_eq(rmdir(folder), 0);
}

static size_t insert_in(NC_cache *in)
{
	return insert_as(in, 1, SIZE, 0, NC_KIND_RECYCLED);
}

/* An id that no unit has: behind all that were assigned. */
static size_t never_assigned(size_t id)
{
	return nc_id(nc_id_member(id), nc_id_slot(id) + 5000, nc_id_generation(id));
}

/* A unit that the owner grants to the member and destroys, without or with a use before. */
static size_t granted_and_gone(NC_cache *user)
{
	size_t id = insert_in(owner);
	char byte;

	ck_assert_int_eq(NC_grant(owner, id, NC_USER, getuid()), 0);
	if (user)
		ck_assert_int_eq(NC_pread(user, id, &byte, 1, 0), 1);
	ck_assert_int_eq(NC_destroy(owner, id), 0);
	return id;
}

static size_t revoked(NC_cache *user)
{
	size_t id = insert_in(owner);
	char byte;

	ck_assert_int_eq(NC_grant(owner, id, NC_USER, getuid()), 0);
	ck_assert_int_eq(NC_pread(user, id, &byte, 1, 0), 1);
	ck_assert_int_eq(NC_revoke(owner, id, NC_USER, getuid()), 0);
	return id;
}

static size_t destroyed(NC_cache *in)
{
	size_t id = insert_in(in);

	ck_assert_int_eq(NC_destroy(in, id), 0);
	return id;
}

/* The calls that use the bytes of a unit, or tell of it. */
static void check_use(NC_cache *in, size_t id, int error)
{
	struct NC_range range = {.id = id, .length = 1};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	NC_sender *sender = NC_sender_open(in, 1, 0);
	struct NC_hold hold;
	struct NC_stat stat;
	uint32_t value;
	char byte;

	ck_assert_ptr_nonnull(sender);
	FAILS(NC_hold(in, id, &hold), error);
	while (NC_hold_nowait(in, id, &hold) < 0 && errno == EAGAIN)
		await(NC_cache_fd(in), POLLIN);
	ck_assert_int_eq(errno, error);
	FAILS(NC_stat(in, id, &stat, sizeof(stat)), error);
	FAILS(NC_pread(in, id, &byte, 1, 0), error);
	FAILS(NC_checksum(in, id, &value, NC_CHECKSUM_DEFAULT, 1, 0), error);
	FAILS(NC_verify(in, id), error);
	FAILS(NC_send(in, pair[0], &message), error);
	NULL_FAILS(NC_send_op_open(in, pair[0], &message, 0), error);
	FAILS(NC_sender_send(sender, pair[0], &message, NULL), error);
	ck_assert_int_eq(NC_sender_close(sender), 0);
}

/* The calls that change a unit, or tell to whom it is granted. */
static void check_change(NC_cache *in, size_t id, int error)
{
	struct NC_grant_info info;

	FAILS(NC_set_priority(in, id, NC_PRIORITY_LOW), error);
	FAILS(NC_set_lifetime(in, id, 1000), error);
	FAILS(NC_grants(in, id, &info, sizeof(info), 1), error);
	FAILS(NC_grant(in, id, NC_USER, getuid()), error);
	FAILS(NC_revoke(in, id, NC_USER, getuid()), error);
	FAILS(NC_destroy(in, id), error);
}

static void check(NC_cache *in, size_t id, int error)
{
	check_use(in, id, error);
	check_change(in, id, error);
}

START_TEST(test_owner)
{
	size_t id;

	setup();
	id = insert_in(owner);
	check(owner, 0, ENOENT);
	check(owner, never_assigned(id), ENOENT);
	check(owner, destroyed(owner), ENOENT);
	check(owner, destroyed(member), ENOENT);
	if (has_pidfds())
		FAILS(NC_access(owner, destroyed(owner), NC_PROCESS, (uint32_t)getpid()), ENOENT);
	teardown();
}
END_TEST

START_TEST(test_operator)
{
	size_t id;

	setup();
	id = insert_in(owner);
	check(operator_of, never_assigned(id), ENOENT);
	check(operator_of, destroyed(owner), ENOENT);
	check(operator_of, destroyed(member), ENOENT);
	teardown();
}
END_TEST

/* What it may not use and what does not exist are one. */
START_TEST(test_member)
{
	size_t of_owner, of_neighbour;

	setup();
	of_owner = insert_in(owner);
	of_neighbour = insert_in(neighbour);
	check(member, of_owner, EACCES);
	check(member, never_assigned(of_owner), EACCES);
	check(member, destroyed(owner), EACCES);
	check(member, of_neighbour, EACCES);
	check(member, never_assigned(of_neighbour), EACCES);
	check(member, destroyed(neighbour), EACCES);
	check(member, granted_and_gone(NULL), EACCES);
	check(member, revoked(member), EACCES);
	teardown();
}
END_TEST

/* It knows what it has inserted itself, and of what it has used, that it is gone. */
START_TEST(test_member_of_its_own)
{
	struct NC_stat stat;
	size_t id;

	setup();
	check_use(member, 0, ENOENT);
	check_use(member, destroyed(member), ENOENT);
	check_use(member, never_assigned(insert_in(member)), ENOENT);
	id = granted_and_gone(member);
	FAILS(NC_stat(member, id, &stat, sizeof(stat)), ENOENT);
	check(member, id, EACCES);
	teardown();
}
END_TEST

static void fill_suite(TCase *tcase)
{
	tcase_add_test(tcase, test_owner);
	tcase_add_test(tcase, test_operator);
	tcase_add_test(tcase, test_member);
	tcase_add_test(tcase, test_member_of_its_own);
}

RUN_SUITE("nabc-refused", fill_suite)
