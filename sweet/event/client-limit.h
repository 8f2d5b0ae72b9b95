/* SPDX-License-Identifier: MIT */
/*
 * client-limit.h - limits a client's connections and its requests per second.
 *
 * A client is an IPv4 address, or the /64 network of an IPv6 address, because a
 * client usually owns all addresses of that network.  All threads share one struct
 * client_limits.  Its memory is bounded: only clients with open connections are
 * counted, and requests are counted in a table of fixed size, which evicts the
 * clients with the fewest recent requests.
 */
#ifndef SWEET_CLIENT_LIMIT_H
#define SWEET_CLIENT_LIMIT_H

#include <stdint.h>
#include <sys/socket.h>

struct client_limits;
struct limited_client;
struct sockaddr;

/* The part of an address that identifies a client. */
struct client_address {
	uint64_t family;
	uint8_t net[8];
};

/* A bucket of a burst of requests, to which each interval adds one. */
struct rate_limit {
	uint64_t scope; /* different scopes have different buckets */
	uint64_t interval_ns;
	uint64_t burst_ns; /* of the requests after the first */
};

/* entries: clients with recent requests; returns NULL without memory or random numbers. */
struct client_limits *client_limits_open(unsigned entries);
void client_limits_close(struct client_limits *limits);

/* Names what is counted: each scope has counts of its own, the same after a reload. */
uint64_t client_limits_scope(const char *name);

/*
 * Counts a connection of this client until client_limits_leave(); scope 0: any connection.  Returns
 * NULL if it has at_most connections already, or there is no memory.
 */
struct limited_client *client_limits_enter(struct client_limits *limits, uint64_t scope,
					   const struct sockaddr *address, unsigned at_most);
void client_limits_leave(struct client_limits *limits, struct limited_client *client);

/*
 * name identifies the scope; it must be the same after a reload, so that the
 * client's bucket remains. rate: requests per second, at least 1; burst: requests
 * at once, at least 1.  Returns NULL without memory.
 */
struct rate_limit *rate_new(const char *name, unsigned rate, unsigned burst);
void rate_free(struct rate_limit *rate);

/*
 * Takes one request out of the client's bucket and returns 0.  If the bucket is
 * empty, it takes nothing and returns the nanoseconds until the next request is
 * available. now_ns is monotonic.
 */
uint64_t client_limits_take(struct client_limits *limits, const struct rate_limit *rate,
			    const struct sockaddr *address, uint64_t now_ns);

/* Returns one request to the bucket. */
void client_limits_put_back(struct client_limits *limits, const struct rate_limit *rate,
			    const struct client_address *from);

/* Returns zeros for NULL. */
struct client_address client_address(const struct sockaddr *address);

#endif
