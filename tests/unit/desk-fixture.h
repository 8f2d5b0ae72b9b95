/* SPDX-License-Identifier: MIT */
/*
 * desk-fixture.h - an owner and made-up members at the other end of socket
 * pairs, for the tests of what members ask.  The test plays both ends.
 */
#ifndef DESK_FIXTURE_H
#define DESK_FIXTURE_H

#include <stddef.h>

#include "base/id.h"
#include "membership/desk.h"
#include "os/peer.h"

#include "process-fixture.h"
#include "suite.h"

#define PAGE ((size_t)4096)
#define MIB ((size_t)1 << 20)

static struct nc_cache cache;

/* socket[0] is the owner's end. */
struct asker {
	int socket[2];
	struct nc_borrower borrower;
};

/* What came back. */
struct reply {
	struct nc_wire_answer answer;
	char behind[NC_WIRE_BEHIND_MAX];
	int fds[NC_PEER_FDS_MAX];
	unsigned count;
};

static inline void open_owner(void)
{
	struct NC_cache_options options = {
		.size = 4 * MIB, .member_size = 128 << 10, .flags = NC_CACHE_NO_URING};

	ck_assert_int_eq(nc_cache_init_owner(&cache, &options), 0);
}

static inline void asker_open(struct asker *asker, uid_t uid)
{
	ck_assert_int_eq(nc_peer_pair(asker->socket), 0);
	ck_assert_int_eq(nc_peer_ask_sender(asker->socket[0]), 0);
	asker->borrower = (struct nc_borrower){.who = {.pid = getpid(), .pidfd = -1, .uid = uid},
					       .quota = MIB,
					       .revocations = {.segment = {.fd = -1}}};
	nc_grants_join(&cache.grants, &asker->borrower);
}

static inline void no_orphan(void *context, size_t id)
{
	(void)context;
	(void)id;
}

static inline void asker_close(struct asker *asker)
{
	nc_grants_part(&cache.grants, &asker->borrower, no_orphan, NULL);
	close_pair(asker->socket);
}

static inline int serve(struct asker *asker)
{
	return nc_desk_serve(&cache, asker->socket[0], &asker->borrower, NULL, NULL);
}

static inline void say(const struct asker *asker, const void *message, size_t length,
		       const int *fds, unsigned count)
{
	ck_assert_int_eq(nc_peer_send(asker->socket[1], message, length, fds, count), 0);
}

static inline void close_reply(struct reply *reply)
{
	while (reply->count)
		close(reply->fds[--reply->count]);
}

static inline void hear(const struct asker *asker, struct reply *reply)
{
	ssize_t got = nc_peer_receive(asker->socket[1], reply,
				      sizeof(reply->answer) + sizeof(reply->behind), reply->fds,
				      &reply->count, 0);

	ck_assert_int_ge(got, sizeof(reply->answer));
	ck_assert_int_eq(nc_wire_check_answer(reply, (size_t)got, reply->count, &reply->answer), 0);
}

/* Asks, has it answered, and hears the answer: its errno negated. */
static inline int ask_with(struct asker *asker, const struct nc_wire_ask *ask, const int *fds,
			   unsigned count, struct reply *reply)
{
	static uint64_t tag;
	struct nc_wire_ask full = *ask;

	full.magic = NC_WIRE_MAGIC;
	full.tag = ++tag;
	say(asker, &full, sizeof(full), fds, count);
	ck_assert_int_eq(serve(asker), 1);
	ck_assert_int_eq(serve(asker), 0);
	hear(asker, reply);
	ck_assert_uint_eq(reply->answer.tag, tag);
	return -reply->answer.error;
}

static inline int ask_plain(struct asker *asker, const struct nc_wire_ask *ask, struct reply *reply)
{
	int error = ask_with(asker, ask, NULL, 0, reply);

	close_reply(reply);
	return error;
}

/* A frozen segment of a pattern. */
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

/* The id of a sealed unit that the asker makes. */
static inline size_t make_sealed(struct asker *asker, uint64_t seed, size_t size)
{
	struct nc_wire_ask ask = {.op = NC_WIRE_SEAL, .size = size, .fraglen = PAGE};
	struct reply reply;
	int fd = frozen_fd(seed, size);

	ck_assert_int_eq(ask_with(asker, &ask, &fd, 1, &reply), 0);
	close_reply(&reply);
	close(fd);
	ck_assert_uint_ne(reply.answer.id, 0);
	return reply.answer.id;
}

/* A unit of the owner's own. */
static inline size_t make_own(uint64_t seed, size_t size)
{
	struct nc_layout layout;
	struct nc_unit *unit;
	size_t id;

	ck_assert_int_eq(nc_layout_init(&layout, size, 0), 0);
	ck_assert_int_eq(nc_cache_alloc(&cache, &layout, NC_KIND_RECYCLED, &unit), 0);
	pattern_fill(nc_unit_base(unit), seed, 0, size);
	ck_assert_int_eq(nc_cache_insert(&cache, unit, &id), 0);
	return id;
}

static inline bool known(size_t id)
{
	struct nc_view view;

	if (nc_cache_hold(&cache, id, false, &view))
		return false;
	ck_assert_int_eq(nc_cache_release(&cache, id), 0);
	return true;
}

#endif
