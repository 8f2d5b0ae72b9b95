/* SPDX-License-Identifier: MIT */
/*
 * interface.c - see interface.h.
 *
 * For a TCP socket, IP_PKTOPTIONS returns the interface on which the handshake ended, if packet
 * information is requested (net/ipv4/ip_sockglue.c, net/ipv6/ipv6_sockglue.c); it has no other
 * effect on TCP.
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "os/interface.h"

/* How a family of addresses is asked. */
struct family {
	int level, wanted, options, type;
	size_t at; /* of the index within the data */
	size_t length;
};

static const struct family version_4 = {.level = IPPROTO_IP,
					.wanted = IP_PKTINFO,
					.options = IP_PKTOPTIONS,
					.type = IP_PKTINFO,
					.at = offsetof(struct in_pktinfo, ipi_ifindex),
					.length = sizeof(struct in_pktinfo)};
static const struct family version_6 = {.level = IPPROTO_IPV6,
					.wanted = IPV6_RECVPKTINFO,
					.options = IPV6_2292PKTOPTIONS,
					.type = IPV6_PKTINFO,
					.at = offsetof(struct in6_pktinfo, ipi6_ifindex),
					.length = sizeof(struct in6_pktinfo)};

/* Returns the index in the control messages; 0: there is none. */
static int find_index(const struct family *family, void *control, size_t length)
{
	struct msghdr message = {.msg_control = control, .msg_controllen = length};
	int index = 0;

	for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one))
		if (one->cmsg_level == family->level && one->cmsg_type == family->type &&
		    one->cmsg_len >= CMSG_LEN(family->length))
			memcpy(&index, CMSG_DATA(one) + family->at, sizeof(index));
	return index;
}

static int ask(int socket, const struct family *family)
{
	alignas(struct cmsghdr) char control[256];
	socklen_t length = sizeof(control), size = sizeof(int);
	int before, on = 1, index, error;

	if (getsockopt(socket, family->level, family->wanted, &before, &size) < 0 ||
	    (!before && setsockopt(socket, family->level, family->wanted, &on, sizeof(on)) < 0))
		return -errno;
	error = getsockopt(socket, family->level, family->options, control, &length) < 0 ? -errno
											 : 0;
	if (!before)
		(void)setsockopt(socket, family->level, family->wanted, &before, sizeof(before));
	if (error)
		return error;
	index = find_index(family, control, length);
	return index > 0 ? index : -ENODATA;
}

int nc_interface_of(int socket)
{
	socklen_t length = sizeof(int);
	int domain, index;

	if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &length) < 0)
		return -errno;
	if (domain != AF_INET && domain != AF_INET6)
		return -EAFNOSUPPORT;
	index = domain == AF_INET6 ? ask(socket, &version_6) : -ENODATA;
	/* A socket of IPv6 may be connected by IPv4. */
	return index > 0 ? index : ask(socket, &version_4);
}

/* Asks for a feature of the interface with that name; these commands need no privilege. */
static int has_feature(int socket, const char *name, uint32_t command)
{
	struct ethtool_value value = {.cmd = command};
	struct ifreq request = {.ifr_data = (void *)&value};

	memcpy(request.ifr_name, name, sizeof(request.ifr_name));
	return ioctl(socket, SIOCETHTOOL, &request) < 0 ? -errno : value.data != 0;
}

int nc_interface_offloads(int socket, int index)
{
	struct ifreq named = {.ifr_ifindex = index};
	int result;

	if (ioctl(socket, SIOCGIFNAME, &named) < 0)
		return -errno;
	result = has_feature(socket, named.ifr_name, ETHTOOL_GTXCSUM);
	return result > 0 ? has_feature(socket, named.ifr_name, ETHTOOL_GSG) : result;
}
