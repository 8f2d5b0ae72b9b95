/* SPDX-License-Identifier: MIT */
/*
 * rpc-fixture.h - an owner, and simulated members at the other ends of socket
 * pairs, for the tests of members' requests.  The test plays both ends.
 */
#ifndef RPC_FIXTURE_H
#define RPC_FIXTURE_H

#include <nabc-worker.h>
#include <nabc.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "base/fragment.h"
#include "base/id.h"
#include "cache/grant.h"
#include "cache/index.h"
#include "membership/rpc-server.h"
#include "os/peer.h"
#include "os/segment.h"
#include "store/store.h"
#include "wire/wire.h"

#include "process-fixture.h"
#include "plain-ids.h"
#include "suite.h"

#define PAGE ((size_t)4096)
#define MIB ((size_t)1 << 20)

static struct nc_index cache;

/* socket[0] is the owner's end. */
struct caller {
	int socket[2];
	struct nc_subject subject;
};

/* The reply. */
struct reply {
	struct nc_wire_reply head;
	char behind[NC_WIRE_BEHIND_MAX];
	int fds[NC_PEER_FDS_MAX];
	unsigned count;
};

static inline void open_owner(void)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB, .member_size = 128 << 10,
				      .flags = NC_CACHE_NO_URING);

	ck_assert_int_eq(nc_index_init_owner(&cache, &options), 0);
	use_plain_ids(&cache);
}

static inline void caller_open(struct caller *caller, uid_t uid)
{
	ck_assert_int_eq(nc_peer_pair(caller->socket), 0);
	ck_assert_int_eq(nc_peer_ask_sender(caller->socket[0]), 0);
	caller->subject = (struct nc_subject){.who = {.pid = getpid(), .pidfd = -1, .uid = uid},
					      .quota = MIB,
					      .revocations = {.segment = {.fd = -1}}};
	nc_grants_join(&cache.grants, &caller->subject);
}

static inline void no_orphan(void *context, size_t id)
{
	(void)context;
	(void)id;
}

static inline void caller_close(struct caller *caller)
{
	nc_grants_part(&cache.grants, &caller->subject, no_orphan, NULL);
	close_pair(caller->socket);
}

static inline int serve(struct caller *caller)
{
	return nc_rpc_server_serve(&cache, caller->socket[0], &caller->subject, NULL, NULL);
}

static inline void say(const struct caller *caller, const void *message, size_t length,
		       const int *fds, unsigned count)
{
	ck_assert_int_eq(nc_peer_send(caller->socket[1], message, length, fds, count), 0);
}

static inline void close_reply(struct reply *reply)
{
	while (reply->count)
		close(reply->fds[--reply->count]);
}

static inline void hear(const struct caller *caller, struct reply *reply)
{
	ssize_t got = nc_peer_receive(caller->socket[1], reply,
				      sizeof(reply->head) + sizeof(reply->behind), reply->fds,
				      &reply->count, 0);

	ck_assert_int_ge(got, sizeof(reply->head));
	ck_assert_int_eq(nc_wire_check_reply(reply, (size_t)got, reply->count, &reply->head), 0);
}

/* Sends a request, has it served, and receives the reply; returns its negated errno. */
static inline int call_with(struct caller *caller, const struct nc_wire_call *call, const int *fds,
			    unsigned count, struct reply *reply)
{
	static uint64_t tag;
	struct nc_wire_call full = *call;

	full.magic = NC_WIRE_MAGIC;
	full.tag = ++tag;
	say(caller, &full, sizeof(full), fds, count);
	ck_assert_int_eq(serve(caller), 1);
	ck_assert_int_eq(serve(caller), 0);
	hear(caller, reply);
	ck_assert_uint_eq(reply->head.tag, tag);
	return -reply->head.error;
}

static inline int call_plain(struct caller *caller, const struct nc_wire_call *call,
			     struct reply *reply)
{
	int error = call_with(caller, call, NULL, 0, reply);

	close_reply(reply);
	return error;
}

/* A sealed segment of a pattern. */
static inline int frozen_fd(uint64_t seed, size_t size)
{
	struct nc_segment segment;
	int fd;

	ck_assert_int_eq(nc_segment_create(&segment, (size + PAGE - 1) / PAGE * PAGE, false, false),
			 0);
	pattern_fill(segment.base, seed, 0, size);
	ck_assert_int_eq(nc_segment_freeze(&segment), 0);
	fd = fcntl(segment.fd, F_DUPFD_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	nc_segment_close(&segment);
	return fd;
}

/* Returns the id of a sealed unit that the caller makes. */
static inline size_t make_sealed(struct caller *caller, uint64_t seed, size_t size)
{
	struct nc_wire_call call = {.op = NC_WIRE_SEAL, .size = size, .fraglen = PAGE};
	struct reply reply;
	int fd = frozen_fd(seed, size);

	ck_assert_int_eq(call_with(caller, &call, &fd, 1, &reply), 0);
	close_reply(&reply);
	close(fd);
	ck_assert_uint_ne(reply.head.id, 0);
	return reply.head.id;
}

/* Makes a unit of the owner. */
static inline size_t make_own(uint64_t seed, size_t size)
{
	struct nc_layout layout;
	struct nc_unit *unit;
	size_t id;

	ck_assert_int_eq(nc_layout_init(&layout, size, 0), 0);
	ck_assert_int_eq(nc_index_alloc(&cache, &layout, NC_KIND_RECYCLED, &unit), 0);
	pattern_fill(nc_unit_base(unit), seed, 0, size);
	ck_assert_int_eq(nc_index_insert(&cache, unit, NULL, &id), 0);
	return id;
}

static inline bool known(size_t id)
{
	struct nc_view view;

	if (nc_index_hold(&cache, id, false, &view))
		return false;
	ck_assert_int_eq(nc_index_release(&cache, id), 0);
	return true;
}

#endif
