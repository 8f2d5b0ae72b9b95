/* SPDX-License-Identifier: MIT */
/*
 * ctl-route.c - the command routes: shows what the owner of a cache has learned
 * about its routes, and fixes their methods; see ctl.h.
 */
#include <base/json.h>
#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "ctl-counter.h"
#include "ctl-show.h"
#include "ctl.h"

#define MANY 1024u /* more than any cache has */

static const char *method_name(int method)
{
	if (method == NC_ROUTE_LEARN)
		return "learn";
	return method >= 0 && method < (int)CTL_METHODS ? ctl_methods[method] : "unknown";
}

static const char *family_name(int family)
{
	switch (family) {
	case AF_INET:
		return "inet";
	case AF_INET6:
		return "inet6";
	case AF_UNIX:
		return "unix";
	}
	return "unknown";
}

static struct NC_method_count count_of(const struct NC_route *route, unsigned method)
{
	return ctl_by_method(route, offsetof(struct NC_route, by_copy), method);
}

static void by_method(struct json *json, const struct NC_route *route)
{
	json_open(json, "sends", '{');
	for (unsigned i = 0; i < CTL_METHODS; i++)
		json_number(json, ctl_methods[i], count_of(route, i).sends);
	json_close(json, '}');
	json_open(json, "bytes", '{');
	for (unsigned i = 0; i < CTL_METHODS; i++)
		json_number(json, ctl_methods[i], count_of(route, i).bytes);
	json_close(json, '}');
}

static void route_json(struct json *json, const struct NC_route *route)
{
	json_open(json, NULL, '{');
	json_text(json, "address", route->address);
	json_text(json, "family", family_name(route->family));
	json_number(json, "local", route->local != 0);
	json_text(json, "method", method_name(route->method));
	json_text(json, "recycled", method_name((int)route->recycled));
	json_text(json, "lasting", method_name((int)route->lasting));
	by_method(json, route);
	json_number(json, "partial", route->partial);
	json_number(json, "kept", route->kept);
	json_number(json, "copied", route->copied);
	json_text(json, "why", route->why);
	json_close(json, '}');
}

static struct NC_method_count sum(const struct NC_route *route)
{
	struct NC_method_count total = {0};

	for (unsigned i = 0; i < CTL_METHODS; i++) {
		total.sends += count_of(route, i).sends;
		total.bytes += count_of(route, i).bytes;
	}
	return total;
}

static void print_route(const struct NC_route *route)
{
	char *address = ctl_printable(route->address), *why = ctl_printable(route->why);
	struct NC_method_count total = sum(route);

	printf("%-39s %-5s %-8s %-8s %-8s %12" PRIu64 " %16" PRIu64 " %10" PRIu64 " %s\n", address,
	       route->local ? "yes" : "no", method_name(route->method),
	       method_name((int)route->recycled), method_name((int)route->lasting), total.sends,
	       total.bytes, route->partial, why);
	g_free(address);
	g_free(why);
}

static int show(struct ctl *ctl)
{
	struct NC_route *routes = g_new(struct NC_route, MANY);
	struct json json = {.to = stdout};
	int count = NC_routes(ctl->cache, routes, sizeof(*routes), MANY);

	if (count < 0) {
		g_free(routes);
		return ctl_cache_failed(ctl, "routes", errno);
	}
	if (count > (int)MANY)
		count = MANY;
	if (ctl->json)
		json_open(&json, NULL, '[');
	else
		printf("%-39s %-5s %-8s %-8s %-8s %12s %16s %10s %s\n", "ADDRESS", "LOCAL",
		       "METHOD", "RECYCLED", "LASTING", "SENDS", "BYTES", "PARTIAL", "WHY");
	for (int i = 0; i < count; i++) {
		if (ctl->json)
			route_json(&json, &routes[i]);
		else
			print_route(&routes[i]);
	}
	if (ctl->json)
		json_close(&json, ']');
	g_free(routes);
	return ctl_flush();
}

static bool read_method(const char *word, int *method)
{
	for (*method = NC_ROUTE_LEARN; *method < (int)CTL_METHODS; ++*method)
		if (strcmp(word, method_name(*method)) == 0)
			return true;
	return false;
}

static int set(struct ctl *ctl, const char *address, int method)
{
	if (NC_route_set(ctl->cache, address, method) == 0)
		return 0;
	switch (errno) {
	case EINVAL:
		return ctl_complain("\"%s\": must be an IPv4 or IPv6 address, unix or *", address);
	case ENOSPC:
		return ctl_complain("%s: the owner cannot fix more routes: let some "
				    "learn again (nabcctl routes set ADDRESS learn)",
				    address);
	case EOPNOTSUPP:
		return ctl_complain("%s: the owner of the cache cannot send by %s: the fields "
				    "uring and kernel of nabcctl stat state the reason",
				    address, method_name(method));
	}
	return ctl_cache_failed(ctl, "setting a route", errno);
}

int ctl_routes(struct ctl *ctl, int argc, char **argv)
{
	int status = ctl_options(ctl, NULL, &argc, &argv);
	int method = NC_ROUTE_LEARN;
	bool sets = argc > 1;

	if (!status && sets && (argc != 4 || strcmp(argv[1], "set") != 0))
		status = ctl_misused(ctl, "routes takes no arguments, or: set ADDRESS METHOD");
	if (!status && sets && !read_method(argv[3], &method))
		status = ctl_misused(ctl, "\"%s\": must be copy, splice, zerocopy or learn",
				     argv[3]);
	if (!status)
		status = ctl_attach(ctl, CTL_OPERATOR);
	if (status)
		return status;
	return sets ? set(ctl, argv[2], method) : show(ctl);
}
