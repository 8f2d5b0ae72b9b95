/* SPDX-License-Identifier: MIT */
/*
 * client-limit.h - how many connections a client may have, and how many requests in
 * a second.
 *
 * A client is an IPv4 address, or the /64 of an IPv6 one, since whoever has
 * one address of that has them all.  All threads share one struct client_limits.
 * Its memory is bounded: connections are counted for those that are open,
 * and requests in a table of a fixed size, in which the clients that have
 * asked for the least make room when it is full.
 */
#ifndef SWEET_CLIENT_LIMIT_H
#define SWEET_CLIENT_LIMIT_H

#include <stdint.h>
#include <sys/socket.h>

struct client_limits;
struct limited_client;

/* What of an address tells one client from others. */
struct client_address {
	uint64_t family;
	uint8_t net[8];
};

/* A bucket of `burst` requests, which is filled again by one each interval. */
struct rate_limit {
	uint64_t scope; /* buckets of different scopes are different */
	uint64_t interval_ns;
	uint64_t burst_ns; /* of the requests after the first */
};

/* entries: of clients with requests in the last time; NULL: no memory or random numbers. */
struct client_limits *client_limits_open(unsigned entries);
void client_limits_close(struct client_limits *limits);

/*
 * Counts a connection of this client, for client_limits_leave().  NULL: it has
 * `at_most` of them already, or there is no memory.
 */
struct limited_client *client_limits_enter(struct client_limits *limits,
					   const struct sockaddr *address, unsigned at_most);
void client_limits_leave(struct client_limits *limits, struct limited_client *client);

/*
 * name is what tells this scope from others, and is the same after a reload,
 * so that a client does not begin anew.  rate: requests in a second, from 1;
 * burst: how many may come at once, from 1.  NULL: no memory.
 */
struct rate_limit *rate_new(const char *name, unsigned rate, unsigned burst);
void rate_free(struct rate_limit *rate);

/*
 * Takes one request out of the client's bucket.  0, or the nanoseconds until
 * there is one in it again; then nothing was taken.  now_ns is monotonic.
 */
uint64_t client_limits_take(struct client_limits *limits, const struct rate_limit *rate,
			    const struct sockaddr *address, uint64_t now_ns);

/* Puts one back that was taken. */
void client_limits_put_back(struct client_limits *limits, const struct rate_limit *rate,
			    const struct client_address *from);

struct client_address client_address(const struct sockaddr *address);

#endif
