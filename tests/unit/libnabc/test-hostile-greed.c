/* SPDX-License-Identifier: MIT */
/*
 * test-hostile-greed.c - hostile members, as other users in processes of their own:
 * none may keep a revoked unit, or use up the memory, units, messages or connections
 * that others need.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nabc.h>

#include "membership/attach.h"
#include "os/peer.h"
#include "wire/wire.h"

#include "hostile-fixture.h"
#include "hostile-loot.h"
#include "nabc-fixture.h"
#include "process-fixture.h"
#include "suite.h"
#include "unit-holds.h"

/* --- with a grant --------------------------------------------------------------------------- */

/* Holds an exported unit while its grant is revoked. */
static int hold_on(void)
{
	NC_cache *in = NC_cache_attach(
		path, &(struct NC_attach_options)NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_LIGHT));
	size_t id, run, done = 0;
	const char *data;
	int pair[2];

	CHILD(in && heard(&id, 1));
	CHILD(hold_id(in, id) == 0);
	CHILD(said(&done, 1) && heard(&done, 1));
	/* Refused at the next use; its existing hold is still valid. */
	CHILD_FAILS(hold_id(in, id), (int)done);
	CHILD(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHILD_FAILS(NC_send(in, pair[0],
			    &(struct NC_send)NC_SEND_INIT(.ranges = &(struct NC_range){id, 0, 10},
							  .range_count = 1)),
		    (int)done);
	data = data_of_id(in, id, 0, &run);
	CHILD(data && pattern_match(data, OWN_RECYCLED, 0, run) == run);
	CHILD(release_id(in, id) == 0);
	CHILD_FAILS(release_id(in, id), EINVAL);
	CHILD(hold_id(in, id) < 0);
	CHILD_FAILS(hold_id(in, id), EACCES);
	return 0;
}

START_TEST(test_taken_away)
{
	uid_t uid = geteuid() ? getuid() : HOSTILE;
	struct member member;
	size_t id, done;

	open_loot();
	for (unsigned destroyed = 0; destroyed < 2; destroyed++) {
		id = loot[OWN_RECYCLED];
		ck_assert_int_eq(NC_grant(cache, id, NC_USER, uid), 0);
		member = start_member(hold_on, HOSTILE);
		send_ids(&member, &id, 1);
		hear_ids(&member, &done, 1);
		if (destroyed)
			ck_assert_int_eq(NC_destroy(NULL, id), 0);
		else
			ck_assert_int_eq(NC_revoke(cache, id, NC_USER, uid), 0);
		done = destroyed ? ENOENT : EACCES;
		send_ids(&member, &done, 1);
		end_member(&member);
	}
	loot[OWN_RECYCLED] = insert(OWN_RECYCLED, 5000);
	close_loot();
}
END_TEST

/* A child that gets the path of the cache, reports the id of its unit, and exits. */
static int be_cgi(void)
{
	NC_handle handle;
	size_t id;

	setenv("NABC_CACHE", path, 1);
	CHILD(NC_alloc(&handle, 5000, 0) == 0);
	CHILD(NC_printf(&handle, 0, "from a child that has ended") == 27);
	CHILD(NC_insert(&handle) == 0);
	id = NC_cache_id(&handle);
	/* As in the paper: the unit is granted to the server, which is not necessary. */
	if (has_pidfds())
		CHILD(NC_grant(NULL, id, NC_PROCESS, (id_t)getppid()) == 0);
	CHILD(said(&id, 1));
	return 0;
}

START_TEST(test_cgi)
{
	struct NC_cache_stat before, after;
	unsigned descriptors;
	char got[27];
	int pair[2];

	open_loot();
	ck_assert_int_eq(NC_cache_stat(cache, &before, sizeof(before)), 0);
	descriptors = open_descriptors();
	tcp_pair(pair);
	for (unsigned i = 0; i < scaled(50); i++) {
		struct member child = start_member(be_cgi, i % 2 ? HOSTILE : NOBODY);
		size_t id;

		hear_ids(&child, &id, 1);
		end_member(&child);
		ck_assert_int_eq(NC_socksend(pair[0], id, 0, 27), 27);
		read_exactly(pair[1], got, 27);
		ck_assert_mem_eq(got, "from a child that has ended", 27);
		ck_assert_int_eq(NC_destroy(NULL, id), 0);
	}
	close_pair(pair);
	do {
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
		ck_assert_int_eq(NC_cache_stat(cache, &after, sizeof(after)), 0);
	} while (after.members != before.members);
	ck_assert_uint_eq(after.used, before.used);
	ck_assert_uint_eq(after.units, before.units);
	serve_until_open(descriptors);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	close_loot();
}
END_TEST

/*
 * --- members that use too much
 * --------------------------------------------------------------------
 */

static int be_honest(void);

static int be_greedy(void)
{
	NC_cache *in = NC_cache_attach(path, &(struct NC_attach_options)NC_ATTACH_OPTIONS_INIT());
	size_t made = 0, id;
	NC_handle handle;

	CHILD(in);
	/* It can use up its own segment, and no other memory. */
	while ((id = child_insert(in, 1, 8 << 10, NC_KIND_RECYCLED)))
		made++;
	CHILD(errno == ENOMEM && made > 10);
	/* And its quota of sealed memory. */
	for (made = 0; (id = child_insert(in, 1, 64 << 10, NC_KIND_SEALED)); made++)
		;
	CHILD(errno == EDQUOT && made == 16);
	CHILD_FAILS(NC_unit_alloc(in, &handle, 5 * MIB, 0, NC_KIND_SEALED, 0), EFBIG);
	CHILD(said(&made, 1));
	stay();
	return 0;
}

START_TEST(test_quota)
{
	struct NC_cache_stat before, after;
	struct member greedy[2];
	size_t made;

	open_loot();
	ck_assert_int_eq(NC_cache_stat(cache, &before, sizeof(before)), 0);
	for (unsigned i = 0; i < 2; i++) {
		greedy[i] = start_member(be_greedy, i ? NOBODY : HOSTILE);
		hear_ids(&greedy[i], &made, 1);
	}
	ck_assert_int_eq(NC_cache_stat(cache, &after, sizeof(after)), 0);
	ck_assert_uint_eq(after.used, before.used + 2 * MIB);
	for (unsigned i = 0; i < 2; i++)
		end_member(&greedy[i]);
	close_loot();
}
END_TEST

/*
 * Small units cost the member little and the owner a descriptor each: it abandons them
 * repeatedly.
 */
static int litter(void)
{
	NC_cache *in;
	size_t made;

	for (unsigned i = 0; i < 8; i++) {
		in = NC_cache_attach(
			path,
			&(struct NC_attach_options)NC_ATTACH_OPTIONS_INIT(.flags =
										  NC_ATTACH_LIGHT));
		CHILD(in);
		for (made = 0; child_insert(in, 1, 1, NC_KIND_SEALED); made++)
			;
		CHILD(errno == EDQUOT && made > 10);
		CHILD(NC_cache_close(in) == 0);
	}
	return 0;
}

START_TEST(test_litter)
{
	struct rlimit limit;
	unsigned descriptors;

	/*
	 * With such a low limit, descriptors in flight of other tests of the same user count, too.
	 */
	if (skip_unless_root("litter"))
		return;
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 240;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	open_loot();
	descriptors = open_descriptors();
	run_member(litter, HOSTILE);
	/* The owner has most of its descriptors, and others are served. */
	ck_assert_uint_le(open_descriptors(), descriptors + 120);
	run_member(be_honest, NOBODY);
	close_loot();
}
END_TEST

/* Whether the owner has called for the end. */
static bool is_over(void)
{
	char byte;

	return recv(TALK, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Sends requests without pause; rarely reads the replies. */
static int flood(void)
{
	struct nc_wire_welcome welcome;
	struct nc_wire_call call = {.magic = NC_WIRE_MAGIC, .op = NC_WIRE_LIST, .who = UINT32_MAX};
	int segment, socket = child_join(0, &welcome, &segment);
	static char reply[20000];
	size_t one = 1;

	CHILD(socket >= 0 && said(&one, 1));
	while (!is_over()) {
		while (nc_peer_send(socket, &call, sizeof(call), NULL, 0) == 0 &&
		       recv(socket, reply, sizeof(reply), MSG_DONTWAIT) != 0)
			if (is_over())
				return 0;
		while (recv(socket, reply, sizeof(reply), MSG_DONTWAIT) > 0)
			;
	}
	return 0;
}

/* Sends requests and never reads: it must be dropped, at least once, and attaches again. */
static int never_read(void)
{
	struct nc_wire_call call = {.magic = NC_WIRE_MAGIC, .op = NC_WIRE_LIST, .who = 1};
	unsigned thrown_out = 0;
	size_t one = 1;

	CHILD(said(&one, 1));
	do {
		struct nc_wire_welcome welcome;
		int segment, error, socket = child_join(0, &welcome, &segment);

		if (socket < 0)
			continue;
		do {
			error = nc_peer_send(socket, &call, sizeof(call), NULL, 0);
		} while ((error == 0 || error == -EAGAIN) && !(thrown_out && is_over()));
		thrown_out += error == -EPIPE || error == -ECONNRESET;
		close(socket);
	} while (!thrown_out || !is_over());
	return 0;
}

static int be_honest(void)
{
	NC_cache *in = NC_cache_attach(
		path, &(struct NC_attach_options)NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_LIGHT));

	CHILD(in);
	for (unsigned i = 0; i < scaled(200); i++) {
		size_t id = child_insert(in, i, 3000, NC_KIND_SEALED);

		CHILD(id);
		CHILD(holds_pattern(in, id, i, 3000));
		CHILD(NC_destroy(in, id) == 0);
	}
	return 0;
}

/* A member with few requests is served beside any flood. */
START_TEST(test_flood)
{
	struct member loud[3];
	size_t one;

	open_loot();
	for (unsigned i = 0; i < 3; i++) {
		loud[i] = start_member(i < 2 ? flood : never_read, HOSTILE);
		hear_ids(&loud[i], &one, 1);
	}
	run_member(be_honest, NOBODY);
	for (unsigned i = 0; i < 3; i++)
		end_member(&loud[i]);
	close_loot();
}
END_TEST

/* Makes hundreds of connections, in all ways that do not lead to membership. */
static int crowd_the_door(void)
{
	int held[64] = {0};
	size_t one = 1;
	unsigned turn = 0;

	CHILD(said(&one, 1));
	for (; !is_over(); turn++) {
		int *place = &held[turn % 64];

		if (*place > 0)
			close(*place);
		*place = nc_peer_connect(path, 100);
		if (*place > 0 && turn % 3 == 1)
			(void)nc_attach_hello(*place, NC_WIRE_SEGMENT);
		if (*place > 0 && turn % 3 == 2)
			(void)nc_peer_send(*place, "", 0, place, 1);
	}
	return 0;
}

START_TEST(test_crowded_door)
{
	struct member crowd[2];
	unsigned descriptors;
	size_t one;

	open_loot();
	descriptors = open_descriptors();
	for (unsigned i = 0; i < 2; i++) {
		crowd[i] = start_member(crowd_the_door, HOSTILE);
		hear_ids(&crowd[i], &one, 1);
	}
	run_member(be_honest, NOBODY);
	for (unsigned i = 0; i < 2; i++)
		end_member(&crowd[i]);
	serve_until_open(descriptors);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	close_loot();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_taken_away);
	tcase_add_test(tcase, test_cgi);
	tcase_add_test(tcase, test_quota);
	tcase_add_test(tcase, test_litter);
	tcase_add_test(tcase, test_flood);
	tcase_add_test(tcase, test_crowded_door);
}

RUN_SUITE("hostile-greed", fill)
