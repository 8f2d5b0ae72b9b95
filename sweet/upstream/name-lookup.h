/* SPDX-License-Identifier: MIT */
/*
 * name-lookup.h - the addresses of a host name, as the system knows them; blocks.
 *
 * The answer of a name server is not trusted: any number of addresses in any order becomes a set of
 * at most NAME_ADDRESSES_MAX, always the same one for the same answer.
 */
#ifndef SWEET_NAME_LOOKUP_H
#define SWEET_NAME_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct addrinfo;

#define NAME_ADDRESSES_MAX 64u

struct name_addresses {
	unsigned count;
	unsigned left_out; /* further ones */
	/* IP addresses with port 0, sorted, each once. */
	struct sockaddr_storage all[NAME_ADDRESSES_MAX];
};

/*
 * Looks a name up as the system's configuration says (nsswitch.conf(5)): in /etc/hosts, by DNS.
 * Returns true, or false with the reason.
 */
bool name_lookup(const char *host, struct name_addresses *found, char *why, size_t why_size);

/* Returns the bytes of an IP address's structure. */
socklen_t name_address_size(const struct sockaddr *address);

/* Returns an order of IP addresses; 0: equal.  Ignores the ports. */
int name_address_compare(const struct sockaddr *one, const struct sockaddr *other);

/*
 * Makes the set of what getaddrinfo(3) has returned, without those that no connection can be meant
 * for: addresses of groups, and the unspecified one, which some servers give for names that they
 * block, and which would be this host.  can_reach returns false if the host has no way to that
 * address; they are left out unless there are no others.
 */
void name_addresses_set(struct name_addresses *found, const struct addrinfo *list,
			bool (*can_reach)(const struct sockaddr *address));

#endif
