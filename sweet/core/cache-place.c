/* SPDX-License-Identifier: MIT */
/*
 * cache-place.c - see cache-place.h.  No state, no allocation: any thread may call it.
 *
 * The names are those of the configuration, which stay the same after a reload; a pool without a
 * name has that of its option.
 */
#include <assert.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/slice.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/cache-place.h"
#include "core/transaction.h"
#include "http/request.h"

static_assert(CACHE_PLACE_HOST_MAX >= INET6_ADDRSTRLEN + sizeof("[]:65535"), "any address fits");

struct slice cache_place_host(const struct transaction *transaction,
			      char host[CACHE_PLACE_HOST_MAX])
{
	const char *address = transaction->peer.server_addr;
	/* IPv6 addresses have several colons; "unix:" has one. */
	bool bare = strchr(address, ':') != strrchr(address, ':');
	int length = snprintf(host, CACHE_PLACE_HOST_MAX, bare ? "[%.45s]:%u" : "%.45s:%u", address,
			      transaction->peer.server_port);

	return (struct slice){host, (size_t)length};
}

/* Adds a name with its end, so that no two lists give the same text; false: no room. */
static bool add(struct slice *text, char *out, const void *name, size_t length)
{
	if (length >= CACHEKEY_PLACE_MAX - 2 - text->length)
		return false;
	memcpy(out + text->length, name, length);
	out[text->length + length] = '\0';
	text->length += length + 1;
	return true;
}

static bool add_name(struct slice *text, char *out, const char *name)
{
	return add(text, out, name, strlen(name));
}

/* Addresses as hosts are selected by them: all Unix sockets are equal. */
static bool add_address(struct slice *text, char *out, const struct sockaddr *address)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;

	if (!add(text, out, &address->sa_family, sizeof(address->sa_family)))
		return false;
	if (address->sa_family == AF_INET)
		return add(text, out, &in->sin_port, sizeof(in->sin_port)) &&
		       add(text, out, &in->sin_addr, sizeof(in->sin_addr));
	if (address->sa_family == AF_INET6)
		return add(text, out, &in6->sin6_port, sizeof(in6->sin6_port)) &&
		       add(text, out, &in6->sin6_addr, sizeof(in6->sin6_addr));
	return true;
}

bool cache_place_write(struct cache_place *place, const struct transaction *transaction,
		       const struct pool_config *pool)
{
	struct slice *text = &place->key.text;

	/* Nearly all requests have a Host field. */
	place->key.host = (struct slice){NULL, 0};
	if (transaction->request->host.length == 0)
		place->key.host = cache_place_host(transaction, place->host);
	*text = (struct slice){place->text, 0};
	return add_name(text, place->text, transaction->peer.https ? "https" : "http") &&
	       add_address(text, place->text, transaction->peer.local) &&
	       add_name(text, place->text, transaction->host->name) &&
	       add_name(text, place->text, transaction->scope->prefix) &&
	       add_name(text, place->text, pool->label);
}
