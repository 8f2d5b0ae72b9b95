/* SPDX-License-Identifier: MIT */
/*
 * ends.c - see ends.h.  Pure; the structure is its connection's.
 *
 * An IPv4 address is written as such even where it came mapped into IPv6.
 */
#include <stdbool.h>
#include <string.h>
#include <arpa/inet.h>

#include <address.h>
#include <ends.h>

static void describe(const struct sockaddr_storage *from, char *text, uint16_t *port)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)from;
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)from;

	*port = 0;
	if (from->ss_family == AF_INET) {
		*port = ntohs(in->sin_port);
		inet_ntop(AF_INET, &in->sin_addr, text, INET6_ADDRSTRLEN);
	} else if (from->ss_family != AF_INET6) {
		strcpy(text, ADDRESS_UNIX);
	} else {
		bool mapped = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);

		*port = ntohs(in6->sin6_port);
		inet_ntop(mapped ? AF_INET : AF_INET6, in6->sin6_addr.s6_addr + (mapped ? 12 : 0),
			  text, INET6_ADDRSTRLEN);
	}
}

void ends_set(struct ends *ends, const struct sockaddr_storage *remote,
	      const struct sockaddr_storage *local)
{
	if (remote) {
		describe(remote, ends->remote, &ends->remote_port);
		memset(&ends->address, 0, sizeof(ends->address));
		if (remote->ss_family == AF_INET || remote->ss_family == AF_INET6)
			memcpy(&ends->address, remote, sizeof(ends->address));
		else
			ends->address.any.sa_family = remote->ss_family;
	}
	if (local)
		describe(local, ends->local, &ends->local_port);
}

void ends_set_unknown(struct ends *ends)
{
	memset(&ends->address, 0, sizeof(ends->address));
	ends->address.any.sa_family = AF_UNSPEC;
}
