/* SPDX-License-Identifier: MIT */
/* route-stat.c - reports the routes to operators, and fixes their methods; see route.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <nabc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "send/choice.h"
#include "send/route-internal.h"
#include "send/route.h"

static const char *const names[NC_METHODS] = {
	[NC_METHOD_COPY] = "copy",
	[NC_METHOD_SPLICE] = "splice",
	[NC_METHOD_ZEROCOPY] = "zerocopy",
	[NC_METHOD_KERNEL] = "kernel",
};

/* Finds the choice that was made for the most messages; NULL: none was. */
static const struct nc_choice *busiest(const struct nc_route *route, unsigned *busiest_class)
{
	const struct nc_choice *found = NULL;

	for (unsigned class = 1; class < NC_ROUTE_CLASSES; class ++) {
		const struct nc_choice *const of[] = {&route->choices->recycled[class],
						      &route->choices->lasting[class]};

		for (unsigned i = 0; i < 2; i++)
			if (nc_choice_turns(of[i]) > (found ? nc_choice_turns(found) : 0)) {
				found = of[i];
				*busiest_class = class;
			}
	}
	return found;
}

/* Describes what the methods cost, as far as it is known; returns the length. */
static int say_costs(const struct nc_route *route, char *text, size_t size)
{
	unsigned class = 0;
	const struct nc_choice *choice = busiest(route, &class);
	int length = 0;

	for (unsigned way = 0; choice && way < NC_WAYS; way++) {
		uint32_t cost = nc_choice_cost(choice, way);

		if (!cost)
			continue;
		if (length)
			length += snprintf(text + length, size - (size_t)length, ", ");
		else
			length += snprintf(text, size,
					   "%zu KiB: ", NC_ROUTE_CLASS_MIN >> 10 << (class - 1));
		length += snprintf(text + length, size - (size_t)length, "%s %u", names[way], cost);
	}
	if (length)
		length += snprintf(text + length, size - (size_t)length, " ps/byte; ");
	return length;
}

/* Returns the method for pieces of the largest class. */
static enum NC_method method_of(const struct nc_choice *choices, unsigned candidates,
				enum NC_method first)
{
	return nc_choice_best(&choices[NC_ROUTE_CLASSES - 1], candidates, first);
}

static void explain(const struct nc_route *route, struct NC_route *report, bool zerocopy)
{
	const uint32_t level = atomic_load_explicit(&route->copied.level, memory_order_relaxed);
	const bool reads = nc_route_reads(route);
	const bool available = zerocopy && !level && !reads;
	unsigned candidates = 1u << NC_METHOD_COPY;
	enum NC_method first = available && !route->local ? NC_METHOD_ZEROCOPY : NC_METHOD_COPY;
	char *why = report->why;
	size_t size = sizeof(report->why);
	int length;

	report->method = atomic_load_explicit(&route->fixed, memory_order_relaxed);
	if (report->method != NC_ROUTE_LEARN) {
		report->recycled =
			report->method == NC_METHOD_SPLICE || report->method == NC_METHOD_KERNEL
				? NC_METHOD_COPY
				: (enum NC_method)report->method;
		report->lasting = (enum NC_method)report->method;
		snprintf(why, size, "fixed");
		return;
	}
	if (available)
		candidates |= 1u << NC_METHOD_ZEROCOPY;
	report->recycled = method_of(route->choices->recycled, candidates, first);
	if (!reads) {
		candidates |= 1u << NC_METHOD_SPLICE;
		if (first == NC_METHOD_COPY)
			first = NC_METHOD_SPLICE;
	}
	report->lasting = method_of(route->choices->lasting, candidates, first);
	length = say_costs(route, why, size);
	why += length;
	size -= (size_t)length;
	if (reads)
		snprintf(why, size, "the device does not offload checksums");
	else if (!zerocopy)
		snprintf(why, size, "no io_uring");
	else if (route->local)
		snprintf(why, size, "stays on this machine");
	else if (level)
		snprintf(why, size, "the kernel copies or refuses, retry in %u sends",
			 nc_route_refusals(level) -
				 atomic_load_explicit(&route->copied.since, memory_order_relaxed));
	else
		snprintf(why, size, "%s", report->kept ? "not copied" : "not known yet");
}

static void describe(const struct nc_route *route, struct NC_route *report, bool zerocopy)
{
	struct NC_method_count *const by[NC_METHODS] = {
		[NC_METHOD_COPY] = &report->by_copy,
		[NC_METHOD_SPLICE] = &report->by_splice,
		[NC_METHOD_ZEROCOPY] = &report->by_zerocopy,
		[NC_METHOD_KERNEL] = &report->by_kernel,
	};

	*report = (struct NC_route){.family = route->family, .local = route->local};
	if (route->family == AF_INET)
		memcpy(report->octets, route->address + NC_ROUTE_MAPPED, 4);
	else
		memcpy(report->octets, route->address, sizeof(report->octets));
	if (route->family == AF_UNIX)
		snprintf(report->address, sizeof(report->address), "unix");
	else
		inet_ntop(route->family, report->octets, report->address, sizeof(report->address));
	for (unsigned i = 0; i < NC_ROUTE_SHARDS; i++) {
		for (unsigned method = 0; method < NC_METHODS; method++) {
			by[method]->sends += nc_route_get(&route->counts[i].sends[method]);
			by[method]->bytes += nc_route_get(&route->counts[i].bytes[method]);
		}
		report->partial += nc_route_get(&route->counts[i].partial);
	}
	report->kept = nc_route_get(&route->kept);
	report->copied = nc_route_get(&route->copied_count);
	explain(route, report, zerocopy);
}

unsigned nc_routes_list(struct nc_routes *routes, struct NC_route *list, unsigned count,
			bool zerocopy)
{
	unsigned found = 0;

	pthread_mutex_lock(&routes->lock);
	for (unsigned i = 0; i < NC_ROUTES; i++) {
		if (routes->table[i].family == AF_UNSPEC)
			continue;
		if (found < count)
			describe(&routes->table[i], &list[found], zerocopy);
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

	/* The route may have no entry: no traffic yet, or its entry was reused. */
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
