/* SPDX-License-Identifier: MIT */
/*
 * socket.h - what has to be asked of a socket, or told to it, before sending.
 * System calls, no state, any thread.
 */
#ifndef NC_SOCKET_H
#define NC_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Bounds the bytes of a TCP socket that wait unsent in the kernel, unless the
 * program has set a bound of its own.  Other sockets stay as they are.
 */
void nc_socket_bound_unsent(int socket, size_t limit);

/* Whether calls wait for room, as on a socket that is not O_NONBLOCK. */
bool nc_socket_waits(int socket);

/* Whether the socket tells of room to who waits for it. */
bool nc_socket_has_room(int socket);

/* Whether writing to a stream that is over is an error and not a signal. */
bool nc_socket_sigpipe_ignored(void);

#endif
