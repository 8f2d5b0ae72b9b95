/* SPDX-License-Identifier: MIT */
/*
 * route-stat.c - the routes for people: what is known of each, and what they fix; see
 * route.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "send/route-internal.h"

/* Which sizes a method is not tried for at present, as bits of classes. */
static unsigned avoided(const struct nc_route *route, enum NC_method method)
{
	unsigned classes = 0;

	for (unsigned class = 0; class < NC_ROUTE_CLASSES; class ++)
		if (atomic_load_explicit(&route->taken[method][class].level, memory_order_relaxed))
			classes |= 1u << class;
	return classes;
}

static void explain(const struct nc_route *route, struct NC_route *told, bool zerocopy)
{
	uint32_t level = atomic_load_explicit(&route->copied.level, memory_order_relaxed);
	const unsigned large = 1u << (NC_ROUTE_CLASSES - 1);
	const char *copied;
	char text[32];

	told->method = atomic_load_explicit(&route->fixed, memory_order_relaxed);
	if (told->method != NC_ROUTE_LEARN) {
		told->recycled =
			told->method == NC_METHOD_SPLICE || told->method == NC_METHOD_KERNEL
				? NC_METHOD_COPY
				: (enum NC_method)told->method;
		told->lasting = (enum NC_method)told->method;
		snprintf(told->why, sizeof(told->why), "fixed");
		return;
	}
	if (!zerocopy)
		copied = "no io_uring";
	else if (route->local)
		copied = "stays on this machine";
	else if (level) {
		copied = text;
		snprintf(text, sizeof(text), "the kernel copies, %u to go",
			 nc_route_refusals(level) -
				 atomic_load_explicit(&route->copied.since, memory_order_relaxed));
	} else
		copied = told->kept ? "not copied" : "not known yet";
	zerocopy &= !route->local && !level && !(avoided(route, NC_METHOD_ZEROCOPY) & large);
	told->recycled = zerocopy ? NC_METHOD_ZEROCOPY : NC_METHOD_COPY;
	told->lasting =
		avoided(route, NC_METHOD_SPLICE) & large ? told->recycled : NC_METHOD_SPLICE;
	snprintf(told->why, sizeof(told->why), "%s%s", copied,
		 avoided(route, NC_METHOD_SPLICE) || avoided(route, NC_METHOD_ZEROCOPY)
			 ? "; sockets take little at a time"
			 : "");
}

static void tell(const struct nc_route *route, struct NC_route *told, bool zerocopy)
{
	struct NC_method_count *const by[NC_METHODS] = {
		[NC_METHOD_COPY] = &told->by_copy,
		[NC_METHOD_SPLICE] = &told->by_splice,
		[NC_METHOD_ZEROCOPY] = &told->by_zerocopy,
		[NC_METHOD_KERNEL] = &told->by_kernel,
	};

	*told = (struct NC_route){.family = route->family, .local = route->local};
	if (route->family == AF_INET)
		memcpy(told->octets, route->address + NC_ROUTE_MAPPED, 4);
	else
		memcpy(told->octets, route->address, sizeof(told->octets));
	if (route->family == AF_UNIX)
		snprintf(told->address, sizeof(told->address), "unix");
	else
		inet_ntop(route->family, told->octets, told->address, sizeof(told->address));
	for (unsigned i = 0; i < NC_ROUTE_SHARDS; i++) {
		for (unsigned method = 0; method < NC_METHODS; method++) {
			by[method]->sends += nc_route_get(&route->counts[i].sends[method]);
			by[method]->bytes += nc_route_get(&route->counts[i].bytes[method]);
		}
		told->partial += nc_route_get(&route->counts[i].partial);
	}
	told->kept = nc_route_get(&route->kept);
	told->copied = nc_route_get(&route->copied_count);
	explain(route, told, zerocopy);
}

unsigned nc_routes_tell(struct nc_routes *routes, struct NC_route *list, unsigned count,
			bool zerocopy)
{
	unsigned found = 0;

	pthread_mutex_lock(&routes->lock);
	for (unsigned i = 0; i < NC_ROUTES; i++) {
		if (routes->table[i].family == AF_UNSPEC)
			continue;
		if (found < count)
			tell(&routes->table[i], &list[found], zerocopy);
		found++;
	}
	pthread_mutex_unlock(&routes->lock);
	return found;
}

static bool parse(const char *address, struct nc_route_key *key)
{
	struct sockaddr_storage storage = {0};

	if (strcmp(address, "unix") == 0)
		storage.ss_family = AF_UNIX;
	else if (inet_pton(AF_INET, address, &((struct sockaddr_in *)(void *)&storage)->sin_addr) ==
		 1)
		storage.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, address,
			   &((struct sockaddr_in6 *)(void *)&storage)->sin6_addr) == 1)
		storage.ss_family = AF_INET6;
	else
		return false;
	return nc_route_key_of(&storage, key);
}

static void fix(struct nc_route *route, int method)
{
	atomic_store_explicit(&route->fixed, method, memory_order_relaxed);
	if (method == NC_ROUTE_LEARN)
		nc_route_forget_all(route);
}

static int fix_locked(struct nc_routes *routes, const struct nc_route_key *key, int method)
{
	bool any = false, fixed = false;

	/* Before there is traffic, or after its entry was given away. */
	if (key && method != NC_ROUTE_LEARN) {
		bool there = false;

		for (unsigned i = 0; i < NC_ROUTES; i++)
			there |= nc_route_same_address(&routes->table[i], key);
		if (!there && !nc_routes_enter_locked(routes, key))
			return -ENOSPC;
	}
	if (!key)
		routes->fixed = method;
	for (unsigned i = 0; i < NC_ROUTES; i++) {
		struct nc_route *route = &routes->table[i];

		if (route->family == AF_UNSPEC)
			continue;
		if (!key || nc_route_same_address(route, key))
			fix(route, method);
		any |= atomic_load_explicit(&route->fixed, memory_order_relaxed) != NC_ROUTE_LEARN;
	}
	fixed = any || routes->fixed != NC_ROUTE_LEARN;
	atomic_store_explicit(&routes->any_fixed, fixed, memory_order_relaxed);
	return 0;
}

int nc_routes_fix(struct nc_routes *routes, const char *address, int method)
{
	bool all = strcmp(address, "*") == 0;
	struct nc_route_key key;
	int error;

	if (!all && !parse(address, &key))
		return -EINVAL;
	pthread_mutex_lock(&routes->lock);
	error = fix_locked(routes, all ? NULL : &key, method);
	pthread_mutex_unlock(&routes->lock);
	return error;
}
