/* SPDX-License-Identifier: MIT */
/*
 * serve-fixture.h - a cache whose owner serves it at a path, and members of this
 * process that attach it.
 */
#ifndef SERVE_FIXTURE_H
#define SERVE_FIXTURE_H

#include <grp.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/id.h"
#include "cache/index.h"
#include "membership/serve.h"
#include "membership/handle.h"
#include "membership/attach.h"
#include "os/peer.h"
#include "send/transmit.h"
#include "wire/wire.h"

#include "process-fixture.h"
#include "plain-ids.h"
#include "suite.h"

#define PAGE ((size_t)4096)
#define MIB ((size_t)1 << 20)

static struct nc_index cache;
static struct nc_transmit transmit;
static struct nc_serve owner;
static char directory[64], path[128];

static inline void open_owner(void)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = MIB, .member_size = 128 << 10,
				      .flags = NC_CACHE_NO_URING);

	make_directory(directory);
	snprintf(path, sizeof(path), "%s/cache", directory);
	ck_assert_int_eq(nc_index_init_owner(&cache, &options), 0);
	use_plain_ids(&cache);
	nc_transmit_init(&transmit, &cache);
	ck_assert_int_eq(nc_serve_init(&owner, &cache), 0);
	ck_assert_int_eq(nc_serve_listen(&owner, path, NULL), 0);
}

static inline void close_owner(void)
{
	nc_transmit_fini(&transmit);
	nc_serve_fini(&owner);
	nc_index_fini(&cache);
	ck_assert_int_lt(access(path, F_OK), 0);
	rmdir(directory);
}

/* Waits for work and does it until there are that many members. */
static inline void dispatch_until(unsigned members)
{
	while (cache.members != members) {
		await(owner.epoll, POLLIN);
		ck_assert_int_ge(nc_serve_dispatch(&owner), 0);
	}
}

/* --- attaching within one process --------------------------------------------- */

static struct nc_index attached;

/* The welcome is read when the owner has sent it, so one thread can play both. */
static inline int join_here(int *socket_fd)
{
	struct nc_wire_welcome welcome;
	int fds[NC_PEER_FDS_MAX], error;

	*socket_fd = nc_peer_connect(path, 5000);
	ck_assert_int_ge(*socket_fd, 0);
	ck_assert_int_eq(nc_attach_hello(*socket_fd, NC_WIRE_SEGMENT), 0);
	while (!readable(*socket_fd)) {
		await(owner.epoll, POLLIN);
		ck_assert_int_ge(nc_serve_dispatch(&owner), 1);
	}
	error = nc_attach(&attached, *socket_fd, 1000, &welcome, fds);
	if (error)
		close(*socket_fd);
	return error;
}

#endif
