/* SPDX-License-Identifier: MIT */
/* rpc-server-fixture.h - an owner, and a caller that makes every call by hand. */
#ifndef RPC_SERVER_FIXTURE_H
#define RPC_SERVER_FIXTURE_H

#include <nabc-worker.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "cache/grant.h"
#include "cache/index.h"
#include "wire/wire.h"

#include "rpc-fixture.h"
#include "suite.h"

static struct caller member, other, overseer;

static inline void open_all(void)
{
	open_owner();
	caller_open(&member, 1000);
	caller_open(&other, 1001);
	caller_open(&overseer, 0);
	overseer.subject.operates = true;
}

static inline void close_all(void)
{
	caller_close(&member);
	caller_close(&other);
	caller_close(&overseer);
	nc_index_fini(&cache);
}

static inline int call_id(struct caller *caller, enum nc_wire_op op, size_t id)
{
	struct nc_wire_call call = {.op = op, .id = id};
	struct reply reply;

	return call_plain(caller, &call, &reply);
}

/* Checks the bytes that arrived with a FETCH. */
static inline void check_bytes(struct reply *reply, uint64_t seed, size_t size)
{
	char *base;

	ck_assert_uint_ge(reply->count, 1);
	ck_assert_uint_eq(reply->head.size, size);
	base = mmap(NULL, size, PROT_READ, MAP_PRIVATE, reply->fds[0], 0);
	ck_assert_ptr_ne(base, MAP_FAILED);
	ck_assert_uint_eq(pattern_match(base, seed, 0, size), size);
	munmap(base, size);
	close_reply(reply);
}

/* --- wrong calls ------------------------------------------------------------------ */

static inline int seal_with(size_t size, size_t fraglen, int fd)
{
	struct nc_wire_call call = {.op = NC_WIRE_SEAL, .size = size, .fraglen = fraglen};
	struct reply reply;
	int error = call_with(&member, &call, &fd, fd >= 0, &reply);

	close_reply(&reply);
	return error;
}

#endif
