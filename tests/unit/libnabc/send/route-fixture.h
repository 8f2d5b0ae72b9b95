/* SPDX-License-Identifier: MIT */
/* route-fixture.h - a table of routes, and sockets of this machine that have one. */
#ifndef ROUTE_FIXTURE_H
#define ROUTE_FIXTURE_H

#include <nabc.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/un.h>

#include "send/route.h"

#include "by-method.h"
#include "suite.h"

static struct nc_routes routes;

static inline void open_routes(void)
{
	nc_routes_init(&routes);
}

static inline void close_routes(void)
{
	nc_routes_fini(&routes);
}

static inline struct nc_route_use use_between(const char *from, const char *to)
{
	struct nc_route_use use;
	int pair[2];

	tcp_pair_between(pair, from, to, 0, 0);
	ck_assert_int_eq(nc_route_find(&routes, pair[0], NULL, &use), 0);
	ck_assert_ptr_nonnull(use.route);
	close_pair(pair);
	return use;
}

/* Returns what the table lists for an address; fails the test if it lists nothing. */
static inline struct NC_route route_stat(const char *address, int local)
{
	struct NC_route list[NC_ROUTES];
	unsigned count = nc_routes_list(&routes, list, NC_ROUTES, true);

	for (unsigned i = 0; i < count; i++)
		if (strcmp(list[i].address, address) == 0 && list[i].local == local)
			return list[i];
	ck_abort_msg("no route %s", address);
}

#endif
