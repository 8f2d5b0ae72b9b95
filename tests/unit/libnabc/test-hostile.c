/* SPDX-License-Identifier: MIT */
/*
 * test-hostile.c - hostile members, as other users in processes of their own: none may
 * read, send, destroy, list or guess units of others, write to exported ones, or
 * impersonate another process.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>
#include <nabc.h>

#include "base/id.h"
#include "os/identity.h"
#include "os/peer.h"
#include "os/segment.h"
#include "wire/wire.h"

#include "hostile-fixture.h"
#include "hostile-loot.h"
#include "nabc-fixture.h"
#include "process-fixture.h"
#include "suite.h"
#include "unit-holds.h"

/* --- with the public calls --------------------------------------------------------- */

static int try_calls_on(NC_cache *in, size_t id)
{
	struct NC_range range = {.id = id, .length = 1};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	struct NC_stat stat;
	char bytes[16];
	size_t run;
	uint32_t sum;
	int pair[2];

	CHILD_FAILS(hold_id(in, id), EACCES);
	CHILD_FAILS(NC_pread(in, id, bytes, sizeof(bytes), 0), EACCES);
	CHILD(!data_of_id(in, id, 0, &run) && errno == EINVAL);
	CHILD_FAILS(NC_stat(in, id, &stat, sizeof(stat)), EACCES);
	CHILD_FAILS(NC_destroy(in, id), EACCES);
	CHILD_FAILS(release_id(in, id), EINVAL);
	CHILD_FAILS(NC_grant(in, id, NC_USER, getuid()), EACCES);
	CHILD_FAILS(NC_revoke(in, id, NC_USER, 4999), EACCES);
	CHILD_FAILS(NC_checksum(in, id, &sum, NC_CHECKSUM_DEFAULT, 1, 0), EACCES);
	CHILD_FAILS(NC_verify(in, id), EACCES);
	CHILD(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHILD_FAILS(NC_send(in, pair[0], &message), EACCES);
	CHILD_FAILS(NC_send(in, pair[0],
			    &(struct NC_send)NC_SEND_INIT(.ranges = &(struct NC_range){id, 0, 5000},
							  .range_count = 1)),
		    EACCES);
	/* Not a byte of it was sent. */
	CHILD(recv(pair[1], bytes, 1, MSG_DONTWAIT) < 0);
	close_pair(pair);
	return 0;
}

static int call_on_loot(void)
{
	static const unsigned flags[] = {0, NC_ATTACH_LIGHT};

	for (unsigned k = 0; k < 2; k++) {
		struct NC_attach_options as = NC_ATTACH_OPTIONS_INIT(.flags = flags[k]);
		NC_cache *in = NC_cache_attach(path, &as);
		struct NC_stat unit;
		size_t cursor = 0;

		CHILD(in);
		for (unsigned i = 0; i < LOOT; i++)
			if (try_calls_on(in, loot[i]))
				return 1;
		CHILD(NC_list(in, &cursor, &unit, sizeof(unit), 1) == 0);
		CHILD(NC_cache_close(in) == 0);
	}
	CHILD(!NC_cache_attach(path, &(struct NC_attach_options)
					     NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_OPERATOR)) &&
	      errno == EPERM);
	return 0;
}

START_TEST(test_calls)
{
	if (skip_unless_root("calls"))
		return;
	open_loot();
	run_member(call_on_loot, HOSTILE);
	run_member(call_on_loot, NOBODY);
	close_loot();
}
END_TEST

/* --- by guessing -------------------------------------------------------------------- */

static int guess_one(NC_cache *in, int socket, size_t id, uint64_t *state)
{
	static const enum nc_wire_op ops[] = {NC_WIRE_FETCH, NC_WIRE_DESTROY, NC_WIRE_STAT,
					      NC_WIRE_GRANT, NC_WIRE_REVOKE,  NC_WIRE_KEEP};
	struct nc_wire_call call = {
		.op = ops[random_next(state) % 6], .id = id, .principal = NC_USER, .who = getuid()};
	char byte;
	int unit, error = child_call(socket, call, NULL, 0, &unit);

	/* A right guess and a wrong one have the same result. */
	CHILD(unit < 0);
	CHILD(error == EACCES || (error == EPERM && call.op == NC_WIRE_KEEP));
	if (random_next(state) % 8 == 0)
		CHILD_FAILS(NC_pread(in, id, &byte, 1, 0), id ? EACCES : ENOENT);
	return 0;
}

static int guess(void)
{
	NC_cache *in = NC_cache_attach(
		path, &(struct NC_attach_options)NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_LIGHT));
	struct nc_wire_welcome welcome;
	uint64_t state = 17;
	int segment, socket = child_join(0, &welcome, &segment);

	CHILD(in && socket >= 0);
	/* Around each known id: neighbours in every part of it. */
	for (unsigned i = 0; i < LOOT; i++)
		for (size_t k = 0; k < scaled(200); k++) {
			if (guess_one(in, socket, loot[i] + k, &state) ||
			    guess_one(in, socket, loot[i] - k, &state) ||
			    guess_one(in, socket, loot[i] + (k << 28), &state) ||
			    guess_one(in, socket, loot[i] ^ (size_t)1 << k % 64, &state))
				return 1;
		}
	/* The slots and generations of a known id for every member, and unusual ones. */
	for (unsigned member = 0; member < NC_ID_MEMBERS_MAX; member += 1 + member / scaled(16))
		for (unsigned slot = 0; slot < 4; slot++)
			if (guess_one(in, socket,
				      nc_id(member, nc_id_slot(loot[0]) ^ slot,
					    slot % 2 ? slot % 3 : nc_id_generation(loot[0]) + slot),
				      &state))
				return 1;
	for (unsigned i = 0; i < scaled(3000); i++) {
		size_t id = nc_id(
			i % 4 ? nc_id_member(loot[i % LOOT]) : (unsigned)random_next(&state) % 4,
			nc_id_slot(loot[i % LOOT]) ^ ((unsigned)random_next(&state) &
						      (i % 2 ? 15 : NC_ID_SLOTS_MAX - 1)),
			nc_id_generation(loot[i % LOOT]) ^ ((unsigned)random_next(&state) &
							    (i % 3 ? 7 : NC_ID_GENERATION_MAX)));

		if (guess_one(in, socket, i % 5 ? id : random_next(&state), &state))
			return 1;
	}
	return 0;
}

START_TEST(test_guessing)
{
	struct NC_cache_stat before, after;

	if (skip_unless_root("guessing"))
		return;
	open_loot();
	ck_assert_int_eq(NC_cache_stat(cache, &before, sizeof(before)), 0);
	run_member(guess, HOSTILE);
	ck_assert_int_eq(NC_cache_stat(cache, &after, sizeof(after)), 0);
	ck_assert_uint_eq(after.units, before.units);
	ck_assert_uint_eq(after.used, before.used);
	close_loot();
}
END_TEST

/* --- with exported units ------------------------------------------------------------------- */

static int check_unwritable(int fd, size_t size)
{
	char byte = 'x';
	void *base;

	CHILD(write(fd, &byte, 1) < 0);
	CHILD(pwrite(fd, &byte, 1, 1) < 0);
	CHILD(ftruncate(fd, 0) < 0);
	CHILD(ftruncate(fd, 1 << 20) < 0);
	CHILD(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE) < 0);
	CHILD(fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, PAGE) < 0);
	CHILD(mmap(NULL, size, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	CHILD(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	base = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (base != MAP_FAILED) {
		CHILD(mprotect(base, size, PROT_READ | PROT_WRITE) < 0);
		CHILD(madvise(base, size, MADV_REMOVE) < 0);
		munmap(base, size);
	}
	return 0;
}

static int check_exported(int fd, size_t size)
{
	static const int modes[] = {O_RDWR, O_WRONLY, O_RDWR | O_TRUNC, O_RDWR | O_APPEND};
	char name[64];

	if (check_unwritable(fd, size))
		return 1;
	for (unsigned i = 0; i < 8; i++) {
		int again;

		snprintf(name, sizeof(name), i < 4 ? "/proc/self/fd/%d" : "/proc/%2$d/fd/%1$d", fd,
			 getpid());
		again = open(name, modes[i % 4] | O_CLOEXEC);
		if (again >= 0 && check_unwritable(again, size))
			return 1;
		if (again >= 0)
			close(again);
	}
	return 0;
}

/* The owner's process itself: it is inaccessible. */
static int check_owner(pid_t owner, const void *address)
{
	struct iovec here = {.iov_base = &owner, .iov_len = sizeof(owner)};
	struct iovec there = {.iov_base = (void *)address, .iov_len = sizeof(owner)};
	char name[64];

	for (int fd = 0; fd < 100; fd++) {
		snprintf(name, sizeof(name), "/proc/%d/fd/%d", owner, fd);
		CHILD(open(name, O_RDONLY | O_CLOEXEC) < 0 && open(name, O_RDWR | O_CLOEXEC) < 0);
	}
	snprintf(name, sizeof(name), "/proc/%d/mem", owner);
	CHILD(open(name, O_RDWR | O_CLOEXEC) < 0);
	snprintf(name, sizeof(name), "/proc/%d/map_files", owner);
	CHILD(open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0);
	CHILD(ptrace(PTRACE_ATTACH, owner, NULL, NULL) < 0);
	CHILD(process_vm_readv(owner, &here, 1, &there, 1, 0) < 0);
	return 0;
}

static int abuse_loans(void)
{
	NC_cache *in = NC_cache_attach(path, &(struct NC_attach_options)NC_ATTACH_OPTIONS_INIT());
	struct nc_wire_welcome welcome;
	int segment, fds[NC_PEER_FDS_MAX], socket = child_join(NC_WIRE_SEGMENT, &welcome, &segment);
	struct nc_wire_call call = {.magic = NC_WIRE_MAGIC, .op = NC_WIRE_FETCH};
	struct nc_wire_reply reply;
	unsigned count;
	size_t id, run;
	const char *data;

	CHILD(in && socket >= 0 && segment >= 0);
	CHILD(heard(&id, 1));
	CHILD(holds_pattern(in, id, OWN_RECYCLED, 5000));
	CHILD(hold_id(in, id) == 0);
	data = data_of_id(in, id, 0, &run);
	CHILD(data && mprotect((void *)((uintptr_t)data & ~(PAGE - 1)), PAGE,
			       PROT_READ | PROT_WRITE) == (getpid() ? 0 : 1));
	/* At most a private mapping of it: no other process sees writes to it. */
	memset((void *)(uintptr_t)data, 'x', 100);
	/* By hand: the unit and the revocation map. */
	call.id = id;
	call.slot = NC_WIRE_NO_MAP;
	CHILD(nc_peer_send(socket, &call, sizeof(call), NULL, 0) == 0);
	CHILD(nc_peer_receive(socket, &reply, sizeof(reply), fds, &count, 10000) ==
	      (ssize_t)sizeof(reply));
	CHILD(reply.error == 0 && count == 2);
	if (check_exported(fds[0], 2 * PAGE) || check_exported(fds[1], NC_WIRE_MAP_SIZE))
		return 1;
	/* It may use its own segment, but cannot change its size, nor seal it further. */
	CHILD(ftruncate(segment, 0) < 0);
	CHILD(ftruncate(segment, 10 * MIB) < 0);
	CHILD(fcntl(segment, F_ADD_SEALS, F_SEAL_WRITE) < 0);
	CHILD(fcntl(segment, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0);
	if (getuid() == HOSTILE && check_owner(getppid(), &options))
		return 1;
	CHILD(said(&id, 1));
	stay();
	return 0;
}

START_TEST(test_loans)
{
	struct member hostile;
	size_t id;

	open_loot();
	hostile = start_member(abuse_loans, HOSTILE);
	ck_assert_int_eq(
		NC_grant(cache, loot[OWN_RECYCLED], NC_USER, geteuid() ? getuid() : HOSTILE), 0);
	send_ids(&hostile, &loot[OWN_RECYCLED], 1);
	hear_ids(&hostile, &id, 1);
	/* It wrote to its own copy only: importers of the same unit see the original bytes. */
	ck_assert(holds_pattern(cache, loot[OWN_RECYCLED], OWN_RECYCLED, 5000));
	end_member(&hostile);
	close_loot();
}
END_TEST

/* --- impersonation ------------------------------------------------------------------------- */

static int passed_on; /* the victim's socket, in the process that got it */

static int speak_for_another(void)
{
	int fds[NC_PEER_FDS_MAX], unit;
	unsigned count = 0;
	char byte;
	size_t id;

	CHILD(nc_peer_receive(TALK, &byte, 1, fds, &count, 10000) == 1 && count == 1);
	passed_on = fds[0];
	CHILD(heard(&id, 1));
	for (unsigned i = 0; i < 20; i++) {
		CHILD(child_call(passed_on, (struct nc_wire_call){.op = NC_WIRE_FETCH, .id = id},
				 NULL, 0, &unit) == EACCES);
		CHILD(unit < 0);
		CHILD(child_call(passed_on, (struct nc_wire_call){.op = NC_WIRE_DESTROY, .id = id},
				 NULL, 0, &unit) == EACCES);
		CHILD(child_call(passed_on,
				 (struct nc_wire_call){.op = NC_WIRE_GRANT,
						       .id = id,
						       .principal = NC_USER,
						       .who = getuid()},
				 NULL, 0, &unit) == EACCES);
	}
	return 0;
}

/* A member that passes its socket to another process, and continues as a member itself. */
static int pass_on(void)
{
	struct nc_wire_welcome welcome;
	int segment, unit, socket = child_join(0, &welcome, &segment);
	struct nc_segment frozen;
	size_t id = 0;

	CHILD(socket >= 0);
	CHILD(nc_segment_create(&frozen, PAGE, false, false) == 0);
	CHILD(nc_segment_freeze(&frozen) == 0);
	CHILD(child_call(socket,
			 (struct nc_wire_call){.op = NC_WIRE_SEAL, .size = 9, .fraglen = 64},
			 &frozen.fd, 1, &unit) == 0);
	CHILD(nc_peer_send(TALK, "s", 1, &socket, 1) == 0);
	CHILD(heard(&id, 1));
	CHILD(child_call(socket, (struct nc_wire_call){.op = NC_WIRE_FETCH, .id = id}, NULL, 0,
			 &unit) == 0);
	CHILD(unit >= 0);
	return 0;
}

START_TEST(test_passed_socket)
{
	struct member giver, taker;
	int fds[NC_PEER_FDS_MAX];
	struct NC_stat units[LOOT + 1];
	size_t cursor = 0, id = 0;
	unsigned count;
	char byte;
	int listed;

	open_loot();
	giver = start_member(pass_on, VICTIM);
	serve_until(giver.talk);
	ck_assert_int_eq(nc_peer_receive(giver.talk, &byte, 1, fds, &count, 1000), 1);
	ck_assert_uint_eq(count, 1);
	listed = NC_list(cache, &cursor, units, sizeof(*units), LOOT + 1);
	for (int i = 0; i < listed; i++)
		if (units[i].size == 9)
			id = units[i].id;
	ck_assert_uint_ne(id, 0);
	taker = start_member(speak_for_another, HOSTILE);
	ck_assert_int_eq(nc_peer_send(taker.talk, "s", 1, fds, 1), 0);
	close(fds[0]);
	send_ids(&taker, &id, 1);
	end_member(&taker);
	send_ids(&giver, &id, 1);
	end_member(&giver);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	close_loot();
}
END_TEST

/* Attaches like the intended process; returns whether it may fetch the unit. */
static int fetch_it(void)
{
	NC_cache *in = NC_cache_attach(
		path, &(struct NC_attach_options)NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_LIGHT));
	size_t reply[2];

	CHILD(in);
	CHILD(heard(reply, 1));
	reply[1] = hold_id(in, reply[0]) == 0 ? 0 : (size_t)errno;
	CHILD(said(reply, 2));
	stay();
	return 0;
}

static int outcome(struct member *member, size_t id)
{
	size_t reply[2];

	send_ids(member, &id, 1);
	hear_ids(member, reply, 2);
	return (int)reply[1];
}

/* A process with the pid of a grantee that has exited. */
START_TEST(test_recycled_pid)
{
	struct member first, second;
	int pair[2], pidfd;
	pid_t pid;

	if (skip_without_pidfds("hostile: recycled pid"))
		return;
	/* Without a thread: race detectors take a manually cloned process for a thread. */
	open_loot_with(NC_CACHE_NO_THREAD);
	/* The right one first. */
	first = start_member(fetch_it, HOSTILE);
	ck_assert_int_eq(NC_grant(cache, loot[OWN_RECYCLED], NC_PROCESS, (id_t)first.pid), 0);
	ck_assert_int_eq(outcome(&first, loot[OWN_RECYCLED]), 0);
	end_member(&first);
	/* One that is granted the unit and exits without fetching it. */
	first = start_member(fetch_it, HOSTILE);
	pidfd = nc_identity_open(first.pid);
	ck_assert_int_eq(NC_grant(cache, loot[OWN_RECYCLED], NC_PROCESS_FD, (id_t)pidfd), 0);
	end_child(first.pid);
	close(first.talk);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid = first.pid;
	second.pid = fork_running_as(pid);
	if (second.pid == 0) {
		leave_parent(pair[1]);
		_exit(become(HOSTILE) ? fetch_it() : 99);
	}
	close(pair[1]);
	second.talk = pair[0];
	if (second.pid < 0) {
		printf("hostile: recycled pid: skipped: may not choose a pid\n");
		fflush(stdout);
		close(pair[0]);
	} else {
		ck_assert_int_eq(second.pid, pid);
		ck_assert_int_eq(outcome(&second, loot[OWN_RECYCLED]), EACCES);
		/* The new process with that pid can get a grant, too. */
		ck_assert_int_eq(NC_grant(cache, loot[OWN_SEALED], NC_PROCESS, (id_t)pid), 0);
		end_member(&second);
	}
	FAILS(NC_grant(cache, loot[OWN_RECYCLED], NC_PROCESS_FD, (id_t)pidfd), ESRCH);
	close(pidfd);
	close_loot();
}
END_TEST

/* --- with a grant --------------------------------------------------------------------------- */

static void expect_outcome(uid_t uid, int (*run)(void), size_t id, int expected)
{
	struct member member = start_member(run, uid);

	ck_assert_int_eq(outcome(&member, id), expected);
	end_member(&member);
}

/* As a user who has the supplementary group 5005. */
static int fetch_in_group(void)
{
	gid_t group = 5005;

	CHILD(setgroups(1, &group) == 0);
	CHILD(setresgid(7777, 7777, 7777) == 0 && setresuid(HOSTILE, HOSTILE, HOSTILE) == 0);
	return fetch_it();
}

START_TEST(test_users_and_groups)
{
	size_t id;

	if (skip_unless_root("users and groups"))
		return;
	open_loot();
	for (unsigned i = 0; i < LOOT; i++) {
		id = loot[i];
		/* The owner shares a unit in a member's segment by a copy, too. */
		expect_outcome(HOSTILE, fetch_it, id, EACCES);
		ck_assert_int_eq(NC_grant(cache, id, NC_USER, HOSTILE), 0);
		expect_outcome(HOSTILE, fetch_it, id, 0);
		expect_outcome(NOBODY, fetch_it, id, EACCES);
		ck_assert_int_eq(NC_revoke(cache, id, NC_USER, HOSTILE), 0);
		expect_outcome(HOSTILE, fetch_it, id, EACCES);
		ck_assert_int_eq(NC_grant(cache, id, NC_GROUP, 5005), 0);
		expect_outcome(HOSTILE, fetch_it, id, EACCES);
		expect_outcome(0, fetch_in_group, id, 0);
		expect_outcome(5005, fetch_it, id, 0);
		ck_assert_int_eq(NC_revoke(cache, id, NC_GROUP, 5005), 0);
		expect_outcome(5005, fetch_it, id, EACCES);
	}
	close_loot();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_calls);
	tcase_add_test(tcase, test_guessing);
	tcase_add_test(tcase, test_loans);
	tcase_add_test(tcase, test_passed_socket);
	tcase_add_test(tcase, test_recycled_pid);
	tcase_add_test(tcase, test_users_and_groups);
}

RUN_SUITE("hostile", fill)
