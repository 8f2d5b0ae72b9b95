/* SPDX-License-Identifier: MIT */
/*
 * fastcgi-spawn.h - the FastCGI applications that the server starts itself, all
 * on one listening socket, which is their descriptor 0.
 *
 * Main thread.
 */
#ifndef SWEET_FASTCGI_SPAWN_H
#define SWEET_FASTCGI_SPAWN_H

#include "backend/gateway.h"
#include "base/address.h"

struct fastcgi_spawn;

/*
 * Makes the socket, whose address is for threads to connect to, and starts the
 * pool's processes.  0 or -errno, with the reason in the log; fastcgi_spawn_close()
 * is due either way, if *spawn is not NULL.
 */
int fastcgi_spawn_open(struct fastcgi_spawn **spawn, struct gateway_pool *pool,
		       struct listen_address *address);

/* The processes are at their end: the socket as well. */
void fastcgi_spawn_close(struct fastcgi_spawn *spawn);

/* Whether a unit was made by one of them, or by what they have started; any thread. */
bool fastcgi_spawn_made(const struct gateway_pool *pool, size_t unit);

#endif
