/* SPDX-License-Identifier: MIT */
/* card.c - implements card.h. */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <nabc.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "card.h"
#include "guest.h"

#define HERE "10.9.2.1"

/* Cards negotiate for a while; then the peer's address is known, too. */
static bool reachable(void *context)
{
	(void)context;
	return system("ping -c 1 -W 1 " CARD_PEER " >/dev/null") == 0;
}

void card_scatter(bool on)
{
	struct ethtool_value value = {.cmd = ETHTOOL_SSG, .data = on};
	struct ifreq request = {.ifr_name = CARD, .ifr_data = (char *)&value};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	must(fd >= 0);
	must(ioctl(fd, SIOCETHTOOL, &request) == 0);
	value.cmd = ETHTOOL_GSG;
	must(ioctl(fd, SIOCETHTOOL, &request) == 0);
	must(value.data == on);
	/* Segments need it, and do not come back with it. */
	value = (struct ethtool_value){.cmd = ETHTOOL_STSO, .data = on};
	must(ioctl(fd, SIOCETHTOOL, &request) == 0 || !on);
	close(fd);
}

void card_set_up(void)
{
	/* An earlier program may have set them up. */
	if (system("/sbin/ip -n peer link show eth1 >/dev/null 2>&1") != 0)
		guest_run("/sbin/ip link set eth1 netns peer && "
			  "/sbin/ip addr add " HERE "/24 dev " CARD " && "
			  "/sbin/ip link set " CARD " up && "
			  "/sbin/ip -n peer addr add " CARD_PEER "/24 dev eth1 && "
			  "/sbin/ip -n peer link set eth1 up");
	card_scatter(true);
	if (guest_wait(reachable, NULL))
		return;
	guest_run(
		"/sbin/ip -s addr; /sbin/ip -n peer -s addr; /sbin/ip neigh; dmesg | grep e1000e");
	must(!"the peer is reachable");
}

/* Whether no byte waits for its first transmission; others may wait for acknowledgements. */
static bool transmitted(void *context)
{
	const int *socket = context;
	int waiting;

	must(ioctl(*socket, SIOCOUTQNSD, &waiting) == 0);
	return waiting == 0;
}

static ssize_t send_from(int socket, size_t id, size_t size, size_t skip)
{
	struct NC_range range = {id, 0, size};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1, .skip = skip,
					      .flags = NC_SEND_DONTWAIT);
	ssize_t sent = NC_send(NULL, socket, &message);

	must(sent > 0 || errno == EAGAIN);
	return sent;
}

size_t card_send_some(int socket, size_t id, size_t size)
{
	size_t skip = 0;
	ssize_t sent;

	while (skip < size && (sent = send_from(socket, id, size, skip)) > 0)
		skip += (size_t)sent;
	return skip;
}

/*
 * Since Linux 6.10, a send whose bytes are all appended to a packet of an earlier one
 * is reported as copied, whether it was or not; so there is no packet to append to.
 */
void card_send(int socket, size_t id, size_t size, size_t skip)
{
	struct NC_hold hold;

	must(NC_hold(NULL, id, &hold) == 0);
	while (skip < size) {
		struct pollfd room = {.fd = socket, .events = POLLOUT};
		ssize_t sent;

		must(poll(&room, 1, 60000) == 1);
		must(guest_wait(transmitted, &socket));
		sent = send_from(socket, id, size, skip);
		skip += sent > 0 ? (size_t)sent : 0;
	}
	must(NC_release(&hold) == 0);
}

static bool all_reported(void *context)
{
	struct NC_cache_stat stat = library_stat();

	(void)context;
	return stat.zerocopy_kept + stat.zerocopy_copied == stat.by_zerocopy.sends;
}

void card_settle(void)
{
	must(guest_wait(all_reported, NULL));
}

unsigned long card_pinned(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long found = 0;
	char line[200];

	must(status != NULL);
	while (fgets(line, sizeof(line), status))
		(void)sscanf(line, "VmPin: %lu", &found);
	fclose(status);
	return found;
}

static bool is_pinned(void *context)
{
	return card_pinned() == *(const unsigned long *)context;
}

void card_await_pinned(unsigned long kib)
{
	must(guest_wait(is_pinned, &kib));
}
