/* SPDX-License-Identifier: MIT */
/*
 * ends.c - see ends.h.  Pure; the structure is its connection's.
 *
 * An IPv4 address is written as such even where it came mapped into IPv6.
 */
#include <string.h>
#include <arpa/inet.h>

#include "base/address.h"
#include "base/decimal.h"
#include "base/ends.h"

/* As inet_ntop() would, which takes a third of what else is done for a new connection. */
static void write_ipv4(char *text, const void *address)
{
	const uint8_t *octets = address;

	for (unsigned i = 0; i < 4; i++) {
		if (i)
			*text++ = '.';
		text = decimal_write(text, octets[i]);
	}
	*text = '\0';
}

static void describe(const struct sockaddr_storage *from, char *text, uint16_t *port)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)from;
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)from;

	*port = 0;
	if (from->ss_family == AF_INET) {
		*port = ntohs(in->sin_port);
		write_ipv4(text, &in->sin_addr);
	} else if (from->ss_family != AF_INET6) {
		strcpy(text, ADDRESS_UNIX);
	} else {
		*port = ntohs(in6->sin6_port);
		if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
			write_ipv4(text, in6->sin6_addr.s6_addr + 12);
		else
			inet_ntop(AF_INET6, &in6->sin6_addr, text, INET6_ADDRSTRLEN);
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
