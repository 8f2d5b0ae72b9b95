/* SPDX-License-Identifier: MIT */
/*
 * transmit-learn-fixture.h - pairs of sockets, the statistics of a delivery, and CPU times that
 * a test sets.
 */
#ifndef TRANSMIT_LEARN_FIXTURE_H
#define TRANSMIT_LEARN_FIXTURE_H

#include <linux/tls.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "os/ring.h"
#include "send/transmit.h"
#include "send/zerocopy.h"

#include "by-method.h"
#include "suite.h"
#include "transmit-fixture.h"

static inline struct NC_cache_stat all_statistics(void)
{
	struct NC_cache_stat stat = statistics();

	nc_transmit_stat(&transmit, &stat);
	return stat;
}

/* Waits until the kernel no longer needs the memory. */
static inline void settle(void)
{
	struct NC_cache_stat stat = all_statistics();

	while (stat.zerocopy_copied + stat.zerocopy_kept < stat.by_zerocopy.sends) {
		if (nc_transmit_reap(&transmit) == 0)
			await(nc_ring_fd(&transmit.zerocopy.ring), POLLIN);
		stat = all_statistics();
	}
}

/* Sends a whole range over a socket with space, reads it and compares. */
static inline void deliver(const int pair[2], size_t id, uint64_t seed, size_t length,
			   unsigned flags)
{
	struct NC_range range = {.id = id, .length = length};
	struct NC_send message = NC_SEND_INIT(.header = "head", .header_length = 4,
					      .ranges = &range, .range_count = 1, .flags = flags);
	char *got = must_alloc(length + 4);

	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), (ssize_t)length + 4);
	read_exactly(pair[1], got, length + 4);
	ck_assert_mem_eq(got, "head", 4);
	ck_assert_uint_eq(pattern_match(got + 4, seed, 0, length), length);
	free(got);
}

#define ROOM (4 << 20)

/* --- families --------------------------------------------------------------------- */

static inline bool pair_of(int family, int pair[2])
{
	struct sockaddr_in6 there = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	socklen_t length = sizeof(there);
	int listener, size = ROOM;

	if (family == AF_INET) {
		tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", ROOM, ROOM);
		return true;
	}
	if (family == AF_UNIX) {
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		if (setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
			printf("transmit-learn: small Unix socket buffers\n");
		return true;
	}
	listener = socket(AF_INET6, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&there, sizeof(there)) < 0) {
		printf("transmit-learn: no IPv6 on this system\n");
		close(listener);
		return false;
	}
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&there, &length), 0);
	pair[0] = socket(AF_INET6, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(pair[0], (struct sockaddr *)&there, sizeof(there)), 0);
	pair[1] = accept(listener, NULL, NULL);
	ck_assert_int_ge(pair[1], 0);
	close(listener);
	return true;
}

/* --- costs -------------------------------------------------------------------------- */

/* Nanoseconds that a byte costs by each method, and a call by any of them. */
static uint64_t prices[4], call_price;

/* The CPU time, as if these were the costs. */
static inline uint64_t priced_ns(void)
{
	struct NC_cache_stat stat = statistics();
	uint64_t ns = 0;

	for (unsigned method = 0; method < 4; method++)
		ns += BY_METHOD(stat, method).bytes * prices[method] +
		      BY_METHOD(stat, method).sends * call_price;
	return ns;
}

static inline void price(uint64_t copy, uint64_t splice, uint64_t zerocopy)
{
	prices[NC_METHOD_COPY] = copy;
	prices[NC_METHOD_SPLICE] = splice;
	prices[NC_METHOD_ZEROCOPY] = zerocopy;
}

/* --- unsent bytes -------------------------------------------------------------------- */

static inline unsigned lowat(int fd)
{
	unsigned value = 77;
	socklen_t length = sizeof(value);

	ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, &length), 0);
	return value;
}

#endif
