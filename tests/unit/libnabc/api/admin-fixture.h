/* SPDX-License-Identifier: MIT */
/*
 * admin-fixture.h - a cache and an operator of it, both in this process; a thread
 * dispatches for the owner.
 */
#ifndef ADMIN_FIXTURE_H
#define ADMIN_FIXTURE_H

#include <nabc.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/registry.h"
#include "api/admin.h"
#include "base/id.h"
#include "membership/serve.h"
#include "membership/attach.h"
#include "membership/grant-ops.h"
#include "nabc-fixture.h"
#include "suite.h"
#include "os/peer.h"

static char directory[64], path[100];
static NC_cache *watcher;
static pthread_t thread;
static int stop;

static inline void *dispatch(void *context)
{
	struct pollfd waits[2] = {{.fd = NC_cache_fd(cache), .events = POLLIN},
				  {.fd = stop, .events = POLLIN}};

	(void)context;
	while (!waits[1].revents) {
		(void)poll(waits, 2, -1);
		if (NC_cache_dispatch(cache) < 0)
			return "dispatch";
	}
	return NULL;
}

static inline void set_up(void)
{
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/cache", directory);
	open_cache(16 * MIB);
	ck_assert_int_eq(NC_cache_serve(cache, path, NULL), 0);
	stop = eventfd(0, EFD_CLOEXEC);
	ck_assert_int_ge(stop, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, dispatch, NULL), 0);
}

static inline void end_dispatch(void)
{
	uint64_t one = 1;
	void *complaint;

	ck_assert_int_eq(write(stop, &one, sizeof(one)), sizeof(one));
	pthread_join(thread, &complaint);
	ck_assert_msg(!complaint, "%s", (const char *)complaint);
	close(stop);
}

static inline void tear_down(void)
{
	end_dispatch();
	if (watcher)
		ck_assert_int_eq(NC_cache_close(watcher), 0);
	watcher = NULL;
	close_cache();
	ck_assert_int_eq(rmdir(directory), 0);
}

#endif
