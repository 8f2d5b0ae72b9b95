/* SPDX-License-Identifier: MIT */
/*
 * tunnel-limits.h - limits of connections in another protocol, as WebSocket: of a pool, and of each
 * client in it.
 *
 * A tunnel may last for hours, and most of the time it does nothing.  Therefore it does not count as
 * a request, which others would wait for, but for limits of its own.
 */
#ifndef SWEET_TUNNEL_LIMITS_H
#define SWEET_TUNNEL_LIMITS_H

#include <stdbool.h>

struct backend_call;
struct limited_client;

/* Zeros: not counted. */
struct tunnel_count {
	bool counted;		       /* for the pool */
	struct limited_client *client; /* it is also counted for one; or NULL */
};

/* Counts the call; false: the limits do not permit it, and the log says so. */
bool tunnel_limits_enter(struct backend_call *call, struct tunnel_count *count);

/* It has ended; nothing if it was not counted. */
void tunnel_limits_leave(struct backend_call *call, struct tunnel_count *count);

#endif
