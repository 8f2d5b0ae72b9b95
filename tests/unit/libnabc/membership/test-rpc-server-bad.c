/* SPDX-License-Identifier: MIT */
/*
 * test-rpc-server-bad.c - unit tests of rpc-server.c: invalid calls, calls of other
 * processes, random calls, and failures due to a lack of descriptors.  After each the
 * owner has as many descriptors and as much memory in use as before.  Forks to let
 * other processes send over a socket that is not theirs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "base/hash-table.h"
#include "cache/grant.h"
#include "cache/index.h"
#include "os/identity.h"
#include "os/peer.h"
#include "os/segment.h"
#include "store/pool.h"
#include "store/revocation-map.h"
#include "wire/wire.h"

#include "process-fixture.h"
#include "rpc-fixture.h"
#include "rpc-server-fixture.h"
#include "suite.h"

/* --- wrong calls ------------------------------------------------------------------ */

START_TEST(test_bad_seals)
{
	int fd, ends[2], loose = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct nc_segment open_segment;
	unsigned descriptors;
	char path[64];

	open_all();
	ck_assert_int_eq(ftruncate(loose, PAGE), 0);
	ck_assert_int_eq(nc_segment_create(&open_segment, PAGE, false, true), 0);
	fd = frozen_fd(1, PAGE);
	ck_assert_int_eq(pipe(ends), 0);
	descriptors = open_descriptors();
	ck_assert_int_eq(seal_with(100, PAGE, -1), -EINVAL);
	ck_assert_int_eq(seal_with(0, PAGE, fd), -EINVAL);
	ck_assert_int_eq(seal_with(100, 0, fd), -EINVAL);
	ck_assert_int_eq(seal_with(SIZE_MAX, PAGE, fd), -EINVAL);
	ck_assert_int_eq(seal_with(SIZE_MAX / 2 + 1, 1, fd), -EINVAL);
	ck_assert_int_eq(seal_with(100, PAGE + 1, fd), -EINVAL);
	ck_assert_int_eq(seal_with(100, SIZE_MAX, fd), -EINVAL);
	ck_assert_int_eq(seal_with(100, SIZE_MAX - PAGE + 1, fd), -EINVAL);
	ck_assert_int_eq(seal_with(2 * MIB, PAGE, fd), -EFBIG);
	ck_assert_int_eq(seal_with(MIB, PAGE, fd), -EPROTO);
	ck_assert_int_eq(seal_with(PAGE + 1, PAGE, fd), -EPROTO);
	ck_assert_int_eq(seal_with(100, PAGE, ends[0]), -EPROTO);
	ck_assert_int_eq(seal_with(100, PAGE, member.socket[0]), -EPROTO);
	ck_assert_int_eq(seal_with(100, PAGE, loose), -EPROTO);
	ck_assert_int_eq(seal_with(100, PAGE, open_segment.fd), -EPROTO);
	/* Frozen, but not readable. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	close(ends[0]);
	ends[0] = open(path, O_WRONLY | O_CLOEXEC);
	if (ends[0] >= 0)
		ck_assert_int_lt(seal_with(100, PAGE, ends[0]), 0);
	close(ends[0]);
	ends[0] = open(path, O_PATH | O_CLOEXEC);
	ck_assert_int_lt(seal_with(100, PAGE, ends[0]), 0);
	/* No call left anything behind. */
	ck_assert_uint_eq(cache.own.used, 0);
	ck_assert_uint_eq(member.subject.sealed, 0);
	ck_assert_uint_eq(cache.grants.records.count, 0);
	ck_assert_ptr_null(member.subject.revocations.segment.base);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	ck_assert_int_eq(seal_with(100, PAGE, fd), 0);
	close(fd);
	close(loose);
	close_pair(ends);
	nc_segment_close(&open_segment);
	close_all();
}
END_TEST

/* --- invalid messages ------------------------------------------------------------ */

static void check_refused(const void *message, size_t length, unsigned fd_count)
{
	int fds[NC_PEER_FDS_MAX];
	unsigned descriptors = open_descriptors();

	for (unsigned i = 0; i < fd_count; i++)
		fds[i] = member.socket[0];
	say(&member, message, length, fds, fd_count);
	ck_assert_int_lt(serve(&member), 0);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	/* It gets no reply. */
	ck_assert(!readable(member.socket[1]));
}

START_TEST(test_no_question)
{
	struct {
		struct nc_wire_call call;
		char behind[NC_WIRE_BEHIND_MAX + 1];
	} message = {.call = {.magic = NC_WIRE_MAGIC, .op = NC_WIRE_LIST, .fraglen = 100}};

	open_all();
	for (size_t length = 0; length < sizeof(message.call); length++)
		check_refused(&message, length, length % 3);
	check_refused(&message, 0, 1);
	check_refused(&message, 0, NC_PEER_FDS_MAX);
	check_refused(&message, sizeof(message.call) + 1, 0);
	check_refused(&message, sizeof(message), 0);
	check_refused(&message, sizeof(message.call), 3);
	check_refused(&message, sizeof(message.call), NC_PEER_FDS_MAX);
	message.call.length = 1;
	check_refused(&message, sizeof(message.call), 0);
	check_refused(&message, sizeof(message.call) + 2, 2);
	message.call.length = UINT32_MAX;
	check_refused(&message, sizeof(message.call), 1);
	message.call.length = NC_WIRE_BEHIND_MAX + 1;
	check_refused(&message, sizeof(message), 1);
	message.call.length = 0;
	message.call.op = 0;
	check_refused(&message, sizeof(message.call), 1);
	message.call.op = NC_WIRE_LIST;
	message.call.magic++;
	check_refused(&message, sizeof(message.call), 2);
	close(member.socket[1]);
	member.socket[1] = -1;
	ck_assert_int_eq(serve(&member), -EPIPE);
	close_all();
}
END_TEST

/* Every call with every number of descriptors and unusual values: a reply or a refusal. */
START_TEST(test_random)
{
	static const uint64_t odd[] = {0,
				       1,
				       2,
				       4095,
				       4096,
				       4097,
				       MIB,
				       SIZE_MAX,
				       SIZE_MAX - 4095,
				       SIZE_MAX / 2,
				       100,
				       8192,
				       1ul << 28,
				       1ul << 28 | 1,
				       1ul << 50 | 1};
	struct caller *callers[3] = {&member, &other, &overseer};
	int fds[5], ends[2];
	unsigned descriptors;
	uint64_t state = 11;

	open_all();
	member.subject.number = 1;
	fds[0] = frozen_fd(1, 100);
	fds[1] = frozen_fd(2, 2 * PAGE);
	ck_assert_int_eq(pipe(ends), 0);
	fds[2] = ends[0];
	fds[3] = has_pidfds() ? nc_identity_open(getpid()) : ends[1];
	fds[4] = member.socket[1];
	descriptors = open_descriptors();
	for (unsigned i = 0; i < scaled(20000); i++) {
		struct caller *caller = callers[random_next(&state) % 3];
		uint64_t value[5];
		struct reply reply;
		int pair[2];

		for (unsigned k = 0; k < 5; k++)
			value[k] = odd[random_next(&state) % (sizeof(odd) / sizeof(odd[0]))];
		pair[0] = fds[random_next(&state) % 5];
		pair[1] = fds[random_next(&state) % 5];
		(void)call_with(caller,
				&(struct nc_wire_call){
					.op = (uint32_t)(random_next(&state) % NC_WIRE_OPS + 1),
					.id = value[0],
					.size = value[1],
					.fraglen = value[2],
					.slot = (uint32_t)value[3],
					.principal = (uint32_t)(random_next(&state) % 6),
					.who = (uint32_t)value[4],
				},
				pair, (unsigned)(random_next(&state) % 3), &reply);
		close_reply(&reply);
	}
	for (unsigned i = 0; i < 3; i++)
		nc_grants_part(&cache.grants, &callers[i]->subject, no_orphan, NULL);
	/* The records of sealed units stay: a descriptor for each. */
	ck_assert_uint_le(open_descriptors(), descriptors + cache.grants.records.count);
	for (unsigned i = 0; i < 3; i++)
		close_pair(callers[i]->socket);
	nc_index_fini(&cache);
	close(fds[0]);
	close(fds[1]);
	close_pair(ends);
}
END_TEST

/* --- the sender of a call ----------------------------------------------------------- */

/* A child that inherited the socket, and a process that received it, are not members. */
START_TEST(test_not_its_process)
{
	struct nc_wire_call call = {.magic = NC_WIRE_MAGIC, .op = NC_WIRE_FETCH, .tag = 9};
	struct reply reply;
	int pair[2], status;
	pid_t pid;

	open_all();
	call.id = make_sealed(&member, 1, 100);
	for (unsigned passed = 0; passed < 2; passed++) {
		ck_assert_int_eq(nc_peer_pair(pair), 0);
		pid = fork_alone();
		if (pid == 0) {
			int fd = member.socket[1];

			if (passed) {
				char byte;
				int fds[NC_PEER_FDS_MAX];
				unsigned count;

				close(fd);
				if (nc_peer_receive(pair[1], &byte, 1, fds, &count, 10000) != 1)
					_exit(1);
				fd = fds[0];
			}
			_exit(nc_peer_send(fd, &call, sizeof(call), NULL, 0) ? 1 : 0);
		}
		if (passed)
			ck_assert_int_eq(nc_peer_send(pair[0], "x", 1, &member.socket[1], 1), 0);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_int_eq(status, 0);
		ck_assert_int_eq(serve(&member), 1);
		hear(&member, &reply);
		ck_assert_int_eq(reply.head.error, EACCES);
		ck_assert_uint_eq(reply.count, 0);
		close_pair(pair);
	}
	/* The member itself is served as before. */
	ck_assert_int_eq(call_id(&member, NC_WIRE_FETCH, call.id), 0);
	close_all();
}
END_TEST

/* Without credentials from the kernel, a sender is not trusted. */
START_TEST(test_no_sender)
{
	struct reply reply;
	struct nc_wire_call call = {
		.magic = NC_WIRE_MAGIC, .op = NC_WIRE_LIST, .tag = 9, .fraglen = 100};
	int off = 0, fds[12];
	unsigned descriptors;

	open_all();
	ck_assert_int_eq(setsockopt(member.socket[0], SOL_SOCKET, SO_PASSCRED, &off, sizeof(off)),
			 0);
	say(&member, &call, sizeof(call), NULL, 0);
	ck_assert_int_eq(serve(&member), 1);
	hear(&member, &reply);
	ck_assert_int_eq(reply.head.error, EACCES);
	/* A descriptor in place of the credentials is closed too. */
	descriptors = open_descriptors();
	for (unsigned i = 0; i < 12; i++)
		fds[i] = member.socket[0];
	say(&member, &call, sizeof(call), fds, 12);
	ck_assert_int_lt(serve(&member), 0);
	say(&member, &call, sizeof(call), fds, 5);
	ck_assert_int_lt(serve(&member), 0);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	close_all();
}
END_TEST

/* --- scarcity ---------------------------------------------------------------------------- */

/* The owner has no descriptors: the call fails, the member stays attached. */
START_TEST(test_no_descriptors)
{
	struct nc_wire_call seal = {.op = NC_WIRE_SEAL, .size = 100, .fraglen = PAGE};
	struct nc_wire_call fetch = {.op = NC_WIRE_FETCH};
	struct reply reply;
	int fd, error;

	if (skip_without_limits("rpc-server: no descriptors"))
		return;
	fd = frozen_fd(1, 100);
	open_all();
	for (unsigned spare = 0; spare < 6; spare++) {
		hog_descriptors(1024, spare);
		error = call_with(&member, &seal, &fd, 1, &reply);
		close_reply(&reply);
		ck_assert_msg(error == 0 || error == -EMFILE, "%u spare: %s", spare,
			      strerror(-error));
		if (spare == 0)
			ck_assert_int_eq(error, -EMFILE);
		if (error)
			ck_assert_uint_eq(cache.own.used, 0);
		free_descriptors();
		if (error == 0)
			break;
	}
	ck_assert_int_eq(error, 0);
	fetch.id = reply.head.id;
	/* An export needs one descriptor for a moment. */
	hog_descriptors(1024, 0);
	ck_assert_int_eq(call_plain(&member, &fetch, &reply), -EMFILE);
	free_descriptors();
	ck_assert_int_eq(call_with(&member, &fetch, NULL, 0, &reply), 0);
	check_bytes(&reply, 1, 100);
	close(fd);
	close_all();
}
END_TEST

/* A reply that the member could not receive: the revocation map is sent again. */
START_TEST(test_lost_map)
{
	struct nc_wire_call fetch = {.op = NC_WIRE_FETCH, .slot = NC_WIRE_NO_MAP};
	struct reply reply;
	uint32_t slot;

	open_all();
	fetch.id = make_sealed(&member, 1, 100);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(call_with(&member, &fetch, NULL, 0, &reply), 0);
		ck_assert_uint_eq(reply.head.flags, NC_WIRE_HAS_UNIT | NC_WIRE_HAS_MAP);
		ck_assert_uint_eq(reply.count, 2);
		slot = reply.head.slot;
		close_reply(&reply);
	}
	fetch.slot = 0;
	ck_assert_int_eq(call_with(&member, &fetch, NULL, 0, &reply), 0);
	ck_assert_uint_eq(reply.head.flags, NC_WIRE_HAS_UNIT);
	ck_assert_uint_eq(reply.head.slot, slot);
	check_bytes(&reply, 1, 100);
	close_all();
}
END_TEST

/*
 * A member that sends calls and never reads is dropped, before its replies use up what
 * others need.
 */
START_TEST(test_never_reads)
{
	struct nc_wire_call fetch = {.magic = NC_WIRE_MAGIC, .op = NC_WIRE_FETCH};
	unsigned answered = 0, descriptors;
	int result;

	open_all();
	fetch.id = make_sealed(&member, 1, 100);
	descriptors = open_descriptors();
	do {
		say(&member, &fetch, sizeof(fetch), NULL, 0);
		result = serve(&member);
		answered += result == 1;
	} while (result == 1 && answered < 10000);
	ck_assert_int_lt(result, 0);
	ck_assert_uint_gt(answered, 3);
	ck_assert_uint_lt(answered, 150);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	/* Others are not affected. */
	(void)make_sealed(&other, 1, 100);
	close_all();
}
END_TEST

/* Too many descriptors in flight for the kernel: refused for now; the member stays attached. */
START_TEST(test_descriptors_in_flight)
{
	struct nc_wire_call fetch = {.op = NC_WIRE_FETCH};
	static struct caller lazy[4];
	struct rlimit limit;
	struct reply reply;
	int result = 1;

	if (skip_without_limits("rpc-server: in flight") || !become_a_user("rpc-server: in flight"))
		return;
	open_all();
	fetch.id = make_sealed(&member, 1, 100);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 64;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	fetch.magic = NC_WIRE_MAGIC;
	for (unsigned i = 0; i < 4; i++) {
		caller_open(&lazy[i], 1001);
		lazy[i].subject.operates = true;
		for (unsigned k = 0; k < 40 && result == 1; k++) {
			say(&lazy[i], &fetch, sizeof(fetch), NULL, 0);
			result = serve(&lazy[i]);
		}
		ck_assert_int_eq(result, 1);
	}
	fetch.slot = NC_WIRE_NO_MAP;
	ck_assert_int_eq(call_with(&member, &fetch, NULL, 0, &reply), -EMFILE);
	ck_assert_uint_eq(reply.count, 0);
	for (unsigned i = 0; i < 4; i++)
		caller_close(&lazy[i]);
	ck_assert_int_eq(call_with(&member, &fetch, NULL, 0, &reply), 0);
	ck_assert_uint_eq(reply.head.flags, NC_WIRE_HAS_UNIT | NC_WIRE_HAS_MAP);
	check_bytes(&reply, 1, 100);
	close_all();
	become_root_again();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_bad_seals);
	tcase_add_test(tcase, test_no_question);
	tcase_add_test(tcase, test_random);
	tcase_add_test(tcase, test_not_its_process);
	tcase_add_test(tcase, test_no_sender);
	tcase_add_test(tcase, test_no_descriptors);
	tcase_add_test(tcase, test_lost_map);
	tcase_add_test(tcase, test_never_reads);
	tcase_add_test(tcase, test_descriptors_in_flight);
}

RUN_SUITE("rpc-server-bad", fill)
