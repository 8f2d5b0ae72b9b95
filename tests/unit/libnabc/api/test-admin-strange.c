/* SPDX-License-Identifier: MIT */
/*
 * test-admin-strange.c - unit tests of admin.c: calls and replies of another version,
 * and an owner that sends arbitrary replies.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <nabc.h>

#include "api/admin.h"
#include "base/id.h"
#include "cache/index.h"
#include "membership/attach.h"
#include "membership/grant-ops.h"
#include "os/peer.h"
#include "send/transmit.h"
#include "wire/rpc-client.h"
#include "wire/wire.h"

#include "admin-fixture.h"
#include "suite.h"

/* Attaches by hand and makes one call followed by some bytes; returns the error of the reply. */
static int asked(uint32_t wants, struct nc_wire_call head, const char *behind)
{
	struct {
		struct nc_wire_call head;
		char bytes[NC_WIRE_BEHIND_MAX];
	} call = {.head = head};
	struct {
		struct nc_wire_reply head;
		char bytes[NC_WIRE_BEHIND_MAX];
	} reply;
	struct nc_wire_welcome welcome;
	int socket = nc_peer_connect(path, 5000), fds[NC_PEER_FDS_MAX];
	unsigned count;

	ck_assert_int_ge(socket, 0);
	ck_assert_int_eq(nc_attach_hello(socket, wants), 0);
	ck_assert_int_eq(nc_peer_receive(socket, &welcome, sizeof(welcome), fds, &count, 5000),
			 sizeof(welcome));
	ck_assert_int_eq(nc_wire_check_welcome(&welcome, sizeof(welcome), count), 0);
	call.head.magic = NC_WIRE_MAGIC;
	if (head.length)
		memcpy(call.bytes, behind, head.length);
	ck_assert_int_eq(nc_peer_send(socket, &call, sizeof(call.head) + head.length, NULL, 0), 0);
	ck_assert_int_ge(nc_peer_receive(socket, &reply, sizeof(reply), fds, &count, 5000),
			 (ssize_t)sizeof(reply.head));
	ck_assert_uint_eq(count, 0);
	ck_assert(!reply.head.error || !reply.head.length);
	close(socket);
	return reply.head.error;
}

static int asked_counters(uint32_t wants, size_t size, uint32_t length)
{
	return asked(wants,
		     (struct nc_wire_call){.op = NC_WIRE_COUNTERS, .size = size, .length = length},
		     "8 bytes ");
}

static int asked_routes(uint32_t wants, size_t size, size_t from, uint32_t count)
{
	return asked(
		wants,
		(struct nc_wire_call){.op = NC_WIRE_ROUTES, .size = size, .id = from, .who = count},
		NULL);
}

static int asked_route(uint32_t wants, const char *address, uint32_t length, uint32_t method)
{
	return asked(wants,
		     (struct nc_wire_call){.op = NC_WIRE_ROUTE, .length = length, .who = method},
		     address);
}

static int asked_purge(uint32_t wants, const char *name, uint32_t length)
{
	return asked(wants, (struct nc_wire_call){.op = NC_WIRE_PURGE, .length = length}, name);
}

START_TEST(test_strange_questions)
{
	size_t right = sizeof(struct NC_cache_stat), one = sizeof(struct NC_route);
	uint32_t operates = NC_WIRE_OPERATOR;
	char address[NC_WIRE_BEHIND_MAX];

	memset(address, '1', sizeof(address));
	set_up();
	ck_assert_int_eq(asked_counters(operates, right, 0), 0);
	/* Of an older caller, and of a newer one. */
	ck_assert_int_eq(asked_counters(operates, right - 8, 0), 0);
	ck_assert_int_eq(asked_counters(operates, right + 8, 0), 0);
	ck_assert_int_eq(asked_counters(operates, NC_WIRE_BEHIND_MAX, 0), 0);
	ck_assert_int_eq(asked_counters(operates, NC_WIRE_BEHIND_MAX + 1, 0), EPROTO);
	ck_assert_int_eq(asked_counters(operates, SIZE_MAX, 0), EPROTO);
	ck_assert_int_eq(asked_counters(operates, 0, 0), EPROTO);
	ck_assert_int_eq(asked_counters(operates, right, 8), EPROTO);
	ck_assert_int_eq(asked_routes(operates, one, 0, 1), 0);
	ck_assert_int_eq(asked_routes(operates, one, 1, UINT32_MAX), 0);
	ck_assert_int_eq(asked_routes(operates, one, SIZE_MAX, UINT32_MAX), 0);
	ck_assert_int_eq(asked_routes(operates, one - 1, 0, 1), 0);
	ck_assert_int_eq(asked_routes(operates, NC_WIRE_BEHIND_MAX, 0, 9), 0);
	ck_assert_int_eq(asked_routes(operates, NC_WIRE_BEHIND_MAX + 1, 0, 1), EPROTO);
	ck_assert_int_eq(asked_routes(operates, SIZE_MAX, 0, 1), EPROTO);
	ck_assert_int_eq(asked_routes(operates, 0, 0, 1), EPROTO);
	ck_assert_int_eq(asked_route(operates, "127.0.0.1", 9, NC_METHOD_COPY), 0);
	ck_assert_int_eq(asked_route(operates, "127.0.0.1", 10, NC_METHOD_COPY), EINVAL);
	ck_assert_int_eq(asked_route(operates, NULL, 0, NC_METHOD_COPY), EINVAL);
	ck_assert_int_eq(asked_route(operates, address, 63, NC_METHOD_COPY), EINVAL);
	ck_assert_int_eq(asked_route(operates, address, 64, NC_METHOD_COPY), EINVAL);
	ck_assert_int_eq(asked_route(operates, address, sizeof(address), NC_METHOD_COPY), EINVAL);
	ck_assert_int_eq(asked_route(operates, "127.0.0.1", 9, 1u << 31), EINVAL);
	ck_assert_int_eq(asked_purge(operates, address, NC_PURGE_MAX), EOPNOTSUPP);
	ck_assert_int_eq(asked_purge(operates, address, NC_PURGE_MAX + 1), EINVAL);
	ck_assert_int_eq(asked_purge(operates, "a\0b", 3), EINVAL);
	ck_assert_int_eq(asked_purge(operates, "a", 2), EINVAL);
	/* A caller that is no operator can read and set nothing. */
	ck_assert_int_eq(asked_purge(0, "a", 1), EPERM);
	ck_assert_int_eq(asked_counters(0, right, 0), EPERM);
	ck_assert_int_eq(asked_routes(0, one, 0, 1), EPERM);
	ck_assert_int_eq(asked_route(0, "127.0.0.1", 9, NC_METHOD_COPY), EPERM);
	ck_assert_int_eq(asked(0, (struct nc_wire_call){.op = NC_WIRE_STAT}, NULL), EACCES);
	ck_assert_int_eq(asked(0, (struct nc_wire_call){.op = NC_WIRE_KEEP, .slot = 1}, NULL),
			 EACCES);
	ck_assert_int_eq(asked(operates, (struct nc_wire_call){.op = NC_WIRE_KEEP}, NULL), EINVAL);
	ck_assert_int_eq(
		asked(operates, (struct nc_wire_call){.op = NC_WIRE_KEEP, .slot = 3}, NULL),
		EINVAL);
	tear_down();
}
END_TEST

/* --- an owner that sends arbitrary replies --------------------------------------- */

static struct nc_index guest;
static struct nc_transmit transmit;
static int ends[2];

/* The reply to the first call is queued before the call is made. */
static void reply_first(const void *bytes, uint32_t length, int error, uint64_t size)
{
	struct {
		struct nc_wire_reply head;
		char bytes[NC_WIRE_BEHIND_MAX];
	} reply = {.head = {.magic = NC_WIRE_MAGIC,
			    .tag = 1,
			    .error = error,
			    .size = size,
			    .length = length}};

	guest = (struct nc_index){.operates = true, .own.number = NC_ID_MEMBERS_MAX};
	transmit.index = &guest;
	ck_assert_int_eq(nc_peer_pair(ends), 0);
	nc_rpc_client_init(&guest.rpc);
	nc_rpc_client_open(&guest.rpc, ends[0]);
	if (length)
		memcpy(reply.bytes, bytes, length);
	ck_assert_int_eq(nc_peer_send(ends[1], &reply, sizeof(reply.head) + length, NULL, 0), 0);
}

static int ends_with(int result)
{
	nc_rpc_client_fini(&guest.rpc);
	close_pair(ends);
	return result;
}

static int counters(const void *bytes, uint32_t length, int error, struct NC_cache_stat *stat)
{
	reply_first(bytes, length, error, 0);
	return ends_with(nc_admin_counters(&transmit, stat));
}

static int unit(const void *bytes, uint32_t length)
{
	struct NC_stat stat;

	reply_first(bytes, length, 0, 0);
	return ends_with(nc_admin_stat(&guest, 1, &stat));
}

static int list(const void *bytes, uint32_t length)
{
	struct NC_stat units[4];
	size_t cursor = 0;

	reply_first(bytes, length, 0, 0);
	return ends_with(nc_grant_ops_list_all(&guest, &cursor, units, 4));
}

static int route(const void *bytes, uint32_t length, uint64_t found, struct NC_route *told)
{
	reply_first(bytes, length, 0, found);
	return ends_with(nc_admin_routes(&transmit, told, 1));
}

START_TEST(test_strange_answers)
{
	static char bytes[NC_WIRE_BEHIND_MAX];
	struct NC_cache_stat stat;
	struct NC_route told;
	uint32_t right = sizeof(stat), one = sizeof(struct NC_stat);

	memset(bytes, 'x', sizeof(bytes));
	ck_assert_int_eq(counters(bytes, right, 0, &stat), 0);
	/* The text is terminated, whatever the owner sent. */
	ck_assert_uint_eq(strnlen(stat.uring, sizeof(stat.uring)), sizeof(stat.uring) - 1);
	ck_assert_int_eq(counters(bytes, right - 8, 0, &stat), -EPROTO);
	ck_assert_int_eq(counters(bytes, right + 8, 0, &stat), -EPROTO);
	ck_assert_int_eq(counters(bytes, sizeof(bytes), 0, &stat), -EPROTO);
	ck_assert_int_eq(counters(bytes, 0, 0, &stat), -EPROTO);
	ck_assert_int_eq(counters(bytes, 0, EPERM, &stat), -EPERM);
	ck_assert_int_eq(unit(bytes, one), 0);
	ck_assert_int_eq(unit(bytes, one - 1), -EPROTO);
	ck_assert_int_eq(unit(bytes, one + 1), -EPROTO);
	ck_assert_int_eq(unit(bytes, 0), -EPROTO);
	ck_assert_int_eq(route(bytes, sizeof(told), 1, &told), 1);
	ck_assert_uint_eq(strnlen(told.address, sizeof(told.address)), sizeof(told.address) - 1);
	ck_assert_uint_eq(strnlen(told.why, sizeof(told.why)), sizeof(told.why) - 1);
	/* The reply announces more routes than it contains. */
	ck_assert_int_eq(route(bytes, sizeof(told), 7, &told), 7);
	ck_assert_int_eq(route(bytes, 0, 7, &told), 0);
	ck_assert_int_eq(route(bytes, sizeof(told), (uint64_t)INT32_MAX + 1, &told), -EPROTO);
	ck_assert_int_eq(route(bytes, sizeof(told) - 1, 1, &told), -EPROTO);
	ck_assert_int_eq(route(bytes, 2 * sizeof(told), 2, &told), -EPROTO);
	ck_assert_int_eq(list(bytes, 4 * one), 4);
	ck_assert_int_eq(list(bytes, 0), 0);
	ck_assert_int_eq(list(bytes, one - 1), -EPROTO);
	ck_assert_int_eq(list(bytes, one + 1), -EPROTO);
	ck_assert_int_eq(list(bytes, 5 * one), -EPROTO);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_strange_questions);
	tcase_add_test(tcase, test_strange_answers);
}

RUN_SUITE("admin-strange", fill)
