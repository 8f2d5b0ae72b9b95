/* SPDX-License-Identifier: MIT */
/*
 * test-rpc-client.c - unit tests of rpc-client.c: a member's calls to an owner that
 * replies late, wrongly, too much or not at all.  The owner is a thread that runs a
 * script over a socket pair.
 */
#include <nabc-worker.h>
#include <nabc.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/peer.h"
#include "os/segment.h"
#include "store/revocation-map.h"
#include "wire/rpc-client.h"
#include "wire/wire.h"

#include "process-fixture.h"
#include "suite.h"

#define PAGE ((size_t)4096)

static struct nc_rpc_client rpc;
static int pair[2];
static struct nc_revocation_map map;

/* What the owner does with the next call. */
struct act {
	void (*reply)(const struct nc_wire_call *call);
};

static unsigned descriptors_before;

static void open_session(void)
{
	descriptors_before = open_descriptors();
	map = (struct nc_revocation_map){.segment = {.fd = -1}};
	ck_assert_int_eq(nc_revocation_map_open(&map), 0);
	ck_assert_int_eq(nc_peer_pair(pair), 0);
	nc_rpc_client_init(&rpc);
	nc_rpc_client_open(&rpc, pair[1]);
	ck_assert_int_eq(rpc.owner, getpid());
}

static void close_session(void)
{
	nc_rpc_client_fini(&rpc);
	close_pair(pair);
	nc_revocation_map_close(&map);
	ck_assert_uint_eq(open_descriptors(), descriptors_before);
}

static void *play(void *context)
{
	struct act *act = context;
	struct {
		struct nc_wire_call head;
		char behind[NC_WIRE_BEHIND_MAX];
	} call;
	int fds[NC_PEER_FDS_MAX];
	unsigned count;
	ssize_t got = nc_peer_receive(pair[0], &call, sizeof(call), fds, &count, 10000);

	while (count)
		close(fds[--count]);
	if (got >= (ssize_t)sizeof(call.head))
		act->reply(&call.head);
	return NULL;
}

static int call_op(struct act *act, enum nc_wire_op op, struct nc_rpc_client_load *load,
		   struct nc_wire_reply *reply)
{
	struct nc_wire_call call = {.op = op, .id = 77};
	pthread_t owner;
	int error;

	ck_assert_int_eq(pthread_create(&owner, NULL, play, act), 0);
	error = nc_rpc_client_call(&rpc, &call, load, reply);
	pthread_join(owner, NULL);
	return error;
}

static int call_once(void (*react)(const struct nc_wire_call *call),
		     struct nc_rpc_client_load *load)
{
	struct act act = {react};
	struct nc_wire_reply reply;
	unsigned descriptors = open_descriptors();
	int error = call_op(&act, NC_WIRE_LIST, load, &reply);

	if (error) {
		ck_assert_int_eq(load->fd, -1);
		ck_assert_uint_eq(open_descriptors(), descriptors);
	}
	return error;
}

static void send_reply(struct nc_wire_reply reply, size_t length, const int *fds, unsigned count)
{
	char message[sizeof(reply) + NC_WIRE_BEHIND_MAX + 100] = {0};

	memset(message, 'b', sizeof(message));
	memcpy(message, &reply, sizeof(reply));
	(void)nc_peer_send(pair[0], message, length, fds, count);
}

static struct nc_wire_reply to(const struct nc_wire_call *call)
{
	return (struct nc_wire_reply){.magic = NC_WIRE_MAGIC, .tag = call->tag};
}

#define HEAD sizeof(struct nc_wire_reply)

static void plain(const struct nc_wire_call *call)
{
	struct nc_wire_reply reply = to(call);

	ck_assert_uint_eq(call->magic, NC_WIRE_MAGIC);
	ck_assert_uint_eq(call->id, 77);
	reply.id = 5;
	send_reply(reply, HEAD, NULL, 0);
}

static void refusing(const struct nc_wire_call *call)
{
	struct nc_wire_reply reply = to(call);

	reply.error = EDQUOT;
	send_reply(reply, HEAD, NULL, 0);
}

static void refusing_with_fd(const struct nc_wire_call *call)
{
	struct nc_wire_reply reply = to(call);

	reply.error = ENOENT;
	reply.flags = NC_WIRE_HAS_UNIT;
	send_reply(reply, HEAD, &pair[0], 1);
}

static void with_bytes(const struct nc_wire_call *call)
{
	struct nc_wire_reply reply = to(call);

	reply.length = 100;
	send_reply(reply, HEAD + 100, NULL, 0);
}

static void with_fd(const struct nc_wire_call *call)
{
	struct nc_wire_reply reply = to(call);

	reply.flags = NC_WIRE_HAS_UNIT;
	send_reply(reply, HEAD, &pair[0], 1);
}

/* Three late replies, one with a descriptor; then the right one. */
static void late(const struct nc_wire_call *call)
{
	struct nc_wire_reply reply = to(call);

	for (unsigned i = 3; i; i--) {
		reply.tag = call->tag - i;
		reply.flags = i == 2 ? NC_WIRE_HAS_UNIT : 0;
		reply.error = i == 1 ? EIO : 0;
		send_reply(reply, HEAD, &pair[0], i == 2 ? 1 : 0);
	}
	plain(call);
}

START_TEST(test_answers)
{
	struct nc_rpc_client_load load = {0};
	struct nc_wire_reply reply;
	struct act act = {plain};
	char room[100];

	open_session();
	ck_assert_int_eq(call_op(&act, NC_WIRE_LIST, &load, &reply), 0);
	ck_assert_uint_eq(reply.id, 5);
	ck_assert_int_eq(load.fd, -1);
	ck_assert_int_eq(call_once(refusing, &load), -EDQUOT);
	ck_assert_int_eq(call_once(refusing_with_fd, &load), -ENOENT);
	ck_assert_int_eq(call_once(late, &load), 0);
	/* Bytes that were not requested, or more than fit. */
	ck_assert_int_eq(call_once(with_bytes, &load), -EPROTO);
	load.room = room;
	load.room_size = 99;
	ck_assert_int_eq(call_once(with_bytes, &load), -EPROTO);
	load.room_size = 100;
	memset(room, 0, sizeof(room));
	ck_assert_int_eq(call_once(with_bytes, &load), 0);
	for (unsigned i = 0; i < 100; i++)
		expect(room[i] == 'b');
	ck_assert_int_eq(call_once(with_fd, &load), 0);
	ck_assert_int_ge(load.fd, 0);
	ck_assert_int_eq(fcntl(load.fd, F_GETFD), FD_CLOEXEC);
	close(load.fd);
	close_session();
}
END_TEST

static void short_one(const struct nc_wire_call *call)
{
	send_reply(to(call), HEAD - 1, &pair[0], 1);
}

static void empty_one(const struct nc_wire_call *call)
{
	send_reply(to(call), 0, &pair[0], 1);
}

static void long_one(const struct nc_wire_call *call)
{
	send_reply(to(call), HEAD + 1, NULL, 0);
}

static void too_long_one(const struct nc_wire_call *call)
{
	struct nc_wire_reply reply = to(call);

	reply.length = NC_WIRE_BEHIND_MAX + 1;
	send_reply(reply, HEAD + NC_WIRE_BEHIND_MAX + 1, NULL, 0);
}

static void wrong_magic(const struct nc_wire_call *call)
{
	struct nc_wire_reply reply = to(call);

	reply.magic ^= 1;
	send_reply(reply, HEAD, NULL, 0);
}

static void negative_error(const struct nc_wire_call *call)
{
	struct nc_wire_reply reply = to(call);

	reply.error = -ENOENT;
	send_reply(reply, HEAD, NULL, 0);
}

static void fd_unsaid(const struct nc_wire_call *call)
{
	send_reply(to(call), HEAD, &pair[0], 1);
}

static void fd_missing(const struct nc_wire_call *call)
{
	struct nc_wire_reply reply = to(call);

	reply.flags = NC_WIRE_HAS_UNIT;
	send_reply(reply, HEAD, NULL, 0);
}

static void many_fds(const struct nc_wire_call *call)
{
	int fds[NC_PEER_FDS_MAX];

	for (unsigned i = 0; i < NC_PEER_FDS_MAX; i++)
		fds[i] = pair[0];
	send_reply(to(call), HEAD, fds, NC_PEER_FDS_MAX);
}

/* An unrequested revocation map, and an invalid one. */
static void map_unasked(const struct nc_wire_call *call)
{
	struct nc_wire_reply reply = to(call);

	reply.flags = NC_WIRE_HAS_MAP;
	send_reply(reply, HEAD, &map.segment.fd, 1);
}

START_TEST(test_nonsense)
{
	struct nc_rpc_client_load load = {0};

	open_session();
	ck_assert_int_eq(call_once(short_one, &load), -EPROTO);
	ck_assert_int_eq(call_once(long_one, &load), -EPROTO);
	ck_assert_int_eq(call_once(too_long_one, &load), -EPROTO);
	ck_assert_int_eq(call_once(wrong_magic, &load), -EPROTO);
	ck_assert_int_eq(call_once(negative_error, &load), -EPROTO);
	ck_assert_int_eq(call_once(fd_unsaid, &load), -EPROTO);
	ck_assert_int_eq(call_once(fd_missing, &load), -EPROTO);
	ck_assert_int_eq(call_once(many_fds, &load), -EPROTO);
	ck_assert_int_eq(call_once(map_unasked, &load), -EPROTO);
	ck_assert_int_eq(call_once(empty_one, &load), -EPIPE);
	/* After all that, calls still work. */
	ck_assert_int_eq(call_once(plain, &load), 0);
	close_session();
}
END_TEST

static uint32_t told_slot;

static void with_map(const struct nc_wire_call *call)
{
	struct nc_wire_reply reply = to(call);

	told_slot = call->slot;
	reply.flags = NC_WIRE_HAS_UNIT | NC_WIRE_HAS_MAP;
	send_reply(reply, HEAD, (int[]){pair[0], map.segment.fd}, 2);
}

static void late_map(const struct nc_wire_call *call)
{
	struct nc_wire_call earlier = *call;

	earlier.tag--;
	with_map(&earlier);
	with_map(call);
}

static void false_map(const struct nc_wire_call *call)
{
	struct nc_wire_reply reply = to(call);

	reply.flags = NC_WIRE_HAS_MAP;
	send_reply(reply, HEAD, &pair[0], 1);
}

START_TEST(test_map)
{
	struct nc_rpc_client_load load = {0};
	struct nc_wire_reply reply;
	struct act act = {false_map};
	unsigned descriptors;

	open_session();
	descriptors = open_descriptors();
	ck_assert_int_eq(call_op(&act, NC_WIRE_FETCH, &load, &reply), -EPROTO);
	ck_assert_ptr_null(rpc.revocations.base);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	/* Twice before the first use: the later one counts. */
	act.reply = late_map;
	ck_assert_int_eq(call_op(&act, NC_WIRE_FETCH, &load, &reply), 0);
	ck_assert_ptr_nonnull(rpc.revocations.base);
	ck_assert_uint_eq(told_slot, NC_WIRE_NO_MAP);
	close(load.fd);
	ck_assert_uint_eq(open_descriptors(), descriptors + 1);
	ck_assert_int_ge(nc_revocation_map_add(&map, 1234), 0);
	ck_assert_uint_eq(nc_revocation_map_read(&rpc.revocations, 0), 1234);
	/* After the first use, no other is accepted. */
	act.reply = with_map;
	ck_assert_int_eq(call_op(&act, NC_WIRE_FETCH, &load, &reply), -EPROTO);
	ck_assert_uint_eq(told_slot, 0);
	ck_assert_int_eq(load.fd, -1);
	ck_assert_uint_eq(nc_revocation_map_read(&rpc.revocations, 0), 1234);
	ck_assert_uint_eq(open_descriptors(), descriptors + 1);
	close_session();
}
END_TEST

/* This process has no descriptor for the reply: the call fails, and later it works. */
START_TEST(test_no_descriptors)
{
	struct nc_rpc_client_load load = {0};
	struct nc_wire_reply reply;
	struct nc_wire_call back;
	struct act act = {with_map};

	if (skip_without_limits("rpc-client: no descriptors"))
		return;
	open_session();
	for (unsigned spare = 0; spare < 3; spare++) {
		hog_descriptors(1024, spare);
		/* One of two: none is kept. */
		ck_assert_int_eq(call_op(&act, NC_WIRE_FETCH, &load, &reply),
				 spare < 2 ? -EMFILE : 0);
		ck_assert(!rpc.revocations.base == (spare < 2));
		ck_assert((load.fd < 0) == (spare < 2));
		free_descriptors();
		/* The exports of the owner are returned. */
		if (spare < 2) {
			ck_assert_int_eq(recv(pair[0], &back, sizeof(back), MSG_DONTWAIT),
					 sizeof(back));
			ck_assert(back.op == NC_WIRE_DROP && back.slot == 0);
		}
	}
	close(load.fd);
	close_session();
}
END_TEST

static void hang_up(const struct nc_wire_call *call)
{
	(void)call;
	shutdown(pair[0], SHUT_RDWR);
}

START_TEST(test_gone)
{
	struct nc_rpc_client_load load = {0};
	struct nc_wire_call call = {.op = NC_WIRE_LIST};
	struct nc_wire_reply reply;

	open_session();
	ck_assert_int_eq(call_once(hang_up, &load), -EPIPE);
	ck_assert_int_eq(nc_rpc_client_call(&rpc, &call, &load, &reply), -EPIPE);
	close_session();
	/* The owner exits while a call is unread. */
	open_session();
	ck_assert_int_eq(nc_peer_send(pair[1], "x", 1, NULL, 0), 0);
	close(pair[0]);
	ck_assert_int_eq(nc_rpc_client_call(&rpc, &call, &load, &reply), -EPIPE);
	ck_assert_int_eq(nc_rpc_client_call(&rpc, &call, &load, &reply), -EPIPE);
	pair[0] = dup(pair[1]);
	close_session();
	/* There was never an owner. */
	nc_rpc_client_init(&rpc);
	ck_assert_int_eq(nc_rpc_client_call(&rpc, &call, &load, &reply), -EPIPE);
	call.length = NC_WIRE_BEHIND_MAX + 1;
	rpc.socket = 0;
	ck_assert_int_eq(nc_rpc_client_call(&rpc, &call, &load, &reply), -EMSGSIZE);
	nc_rpc_client_fini(&rpc);
}
END_TEST

static void say_nothing(const struct nc_wire_call *call)
{
	(void)call;
}

/* The caller waits for an owner that does not dispatch, but not forever; then calls work again. */
START_TEST(test_slow)
{
	struct nc_rpc_client_load load = {0};

	open_session();
	ck_assert_int_eq(call_once(say_nothing, &load), -ETIMEDOUT);
	ck_assert_int_eq(call_once(late, &load), 0);
	close_session();
}
END_TEST

/* --- many threads --------------------------------------------------------------- */

static _Atomic bool asking;

static void *reply_all(void *context)
{
	struct nc_wire_call call;
	int fds[NC_PEER_FDS_MAX];
	unsigned count;

	(void)context;
	while (atomic_load(&asking)) {
		if (nc_peer_receive(pair[0], &call, sizeof(call), fds, &count, 10) ==
		    (ssize_t)sizeof(call)) {
			struct nc_wire_reply reply = to(&call);

			reply.id = call.id;
			(void)nc_peer_send(pair[0], &reply, sizeof(reply), NULL, 0);
		}
	}
	return NULL;
}

static void *call_many(void *context)
{
	uintptr_t number = (uintptr_t)context;

	for (uint64_t i = 0; i < scaled(2000); i++) {
		struct nc_wire_call call = {.op = NC_WIRE_DESTROY, .id = number << 32 | i};
		struct nc_rpc_client_load load = {0};
		struct nc_wire_reply reply;

		if (nc_rpc_client_call(&rpc, &call, &load, &reply) || reply.id != call.id)
			return "answered something else";
	}
	return NULL;
}

START_TEST(test_threads)
{
	pthread_t threads[3], owner;
	void *complaint;

	open_session();
	atomic_store(&asking, true);
	ck_assert_int_eq(pthread_create(&owner, NULL, reply_all, NULL), 0);
	for (uintptr_t i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, call_many, (void *)i), 0);
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(threads[i], &complaint);
		ck_assert_msg(!complaint, "%s", (const char *)complaint);
	}
	atomic_store(&asking, false);
	pthread_join(owner, NULL);
	close_session();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_answers);
	tcase_add_test(tcase, test_nonsense);
	tcase_add_test(tcase, test_map);
	tcase_add_test(tcase, test_no_descriptors);
	tcase_add_test(tcase, test_gone);
	tcase_add_test(tcase, test_slow);
	tcase_add_test(tcase, test_threads);
}

RUN_SUITE("rpc-client", fill)
