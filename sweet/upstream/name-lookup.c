/* SPDX-License-Identifier: MIT */
/*
 * name-lookup.c - see name-lookup.h.
 *
 * By getaddrinfo(3): what it finds is what every other program of the host finds, also by
 * /etc/hosts, search domains, systemd-resolved or mDNS.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <glib.h>

#include "upstream/name-lookup.h"

#define ANY_PORT 9 /* discard: connecting a datagram socket sends nothing */

static const struct sockaddr_in *as_in(const struct sockaddr *address)
{
	return (const struct sockaddr_in *)(const void *)address;
}

static const struct sockaddr_in6 *as_in6(const struct sockaddr *address)
{
	return (const struct sockaddr_in6 *)(const void *)address;
}

socklen_t name_address_size(const struct sockaddr *address)
{
	return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					      : sizeof(struct sockaddr_in);
}

int name_address_compare(const struct sockaddr *one, const struct sockaddr *other)
{
	int order;

	if (one->sa_family != other->sa_family)
		return one->sa_family < other->sa_family ? -1 : 1;
	if (one->sa_family == AF_INET)
		return memcmp(&as_in(one)->sin_addr, &as_in(other)->sin_addr,
			      sizeof(struct in_addr));
	order = memcmp(&as_in6(one)->sin6_addr, &as_in6(other)->sin6_addr, sizeof(struct in6_addr));
	if (order)
		return order;
	return as_in6(one)->sin6_scope_id < as_in6(other)->sin6_scope_id   ? -1
	       : as_in6(one)->sin6_scope_id > as_in6(other)->sin6_scope_id ? 1
									   : 0;
}

static int name_compare_addresses(const void *one, const void *other)
{
	return name_address_compare(one, other);
}

static bool is_v4_of_a_host(uint32_t address)
{
	/* Not 0.0.0.0/8; groups and the broadcast address are above. */
	return address >> 24 != 0 && address >> 28 < 0xe;
}

static bool is_of_a_host(const struct addrinfo *at)
{
	const struct in6_addr *in6;
	uint32_t last;

	if (at->ai_family == AF_INET && at->ai_addrlen == sizeof(struct sockaddr_in))
		return is_v4_of_a_host(ntohl(as_in(at->ai_addr)->sin_addr.s_addr));
	if (at->ai_family != AF_INET6 || at->ai_addrlen != sizeof(struct sockaddr_in6))
		return false;
	in6 = &as_in6(at->ai_addr)->sin6_addr;
	memcpy(&last, &in6->s6_addr[12], sizeof(last));
	if (IN6_IS_ADDR_V4MAPPED(in6))
		return is_v4_of_a_host(ntohl(last));
	return !IN6_IS_ADDR_UNSPECIFIED(in6) && !IN6_IS_ADDR_MULTICAST(in6);
}

/* Copies an address without its port, which is to be the same for all. */
static void copy(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from, name_address_size(from));
	if (from->sa_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)to)->sin6_port = 0;
	else
		((struct sockaddr_in *)(void *)to)->sin_port = 0;
}

/* Copies the addresses; reachable: only those.  Returns how many. */
static unsigned gather(GArray *to, const struct addrinfo *list,
		       bool (*can_reach)(const struct sockaddr *address))
{
	g_array_set_size(to, 0);
	for (const struct addrinfo *at = list; at; at = at->ai_next) {
		struct sockaddr_storage address;

		if (!is_of_a_host(at) || (can_reach && !can_reach(at->ai_addr)))
			continue;
		copy(&address, at->ai_addr);
		g_array_append_val(to, address);
	}
	return to->len;
}

void name_addresses_set(struct name_addresses *found, const struct addrinfo *list,
			bool (*can_reach)(const struct sockaddr *address))
{
	GArray *all = g_array_new(FALSE, FALSE, sizeof(struct sockaddr_storage));

	found->count = found->left_out = 0;
	if (!gather(all, list, can_reach))
		gather(all, list, NULL);
	g_array_sort(all, name_compare_addresses);
	for (unsigned i = 0; i < all->len; i++) {
		const struct sockaddr_storage *at = &g_array_index(all, struct sockaddr_storage, i);

		if (i && name_compare_addresses(at, at - 1) == 0)
			continue;
		if (found->count < NAME_ADDRESSES_MAX)
			found->all[found->count++] = *at;
		else
			found->left_out++;
	}
	g_array_free(all, TRUE);
}

/* Whether there is a route: a host without IPv6 does not get to a name's IPv6 addresses. */
static bool can_reach(const struct sockaddr *address)
{
	int fd = socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage to;
	bool can;

	if (fd < 0)
		return errno != EAFNOSUPPORT;
	copy(&to, address);
	/* At the same place in both structures. */
	((struct sockaddr_in *)(void *)&to)->sin_port = htons(ANY_PORT);
	can = connect(fd, (const struct sockaddr *)&to, name_address_size(address)) == 0 ||
	      (errno != ENETUNREACH && errno != EHOSTUNREACH && errno != EADDRNOTAVAIL &&
	       errno != EAFNOSUPPORT);
	close(fd);
	return can;
}

bool name_lookup(const char *host, struct name_addresses *found, char *why, size_t why_size)
{
	static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	int error = getaddrinfo(host, NULL, &hints, &list);

	found->count = found->left_out = 0;
	if (error) {
		g_strlcpy(why, error == EAI_SYSTEM ? g_strerror(errno) : gai_strerror(error),
			  why_size);
		return false;
	}
	name_addresses_set(found, list, can_reach);
	freeaddrinfo(list);
	if (!found->count)
		g_strlcpy(why, "it has no address of a host", why_size);
	return found->count > 0;
}
