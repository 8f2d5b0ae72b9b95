/* SPDX-License-Identifier: MIT */
/*
 * socket.h - queries and options of a socket that is sent to.  System calls, no
 * state, any thread.
 */
#ifndef NC_SOCKET_H
#define NC_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Limits the unsent bytes of a TCP socket in the kernel, unless the program has set
 * a limit.  Other sockets are not changed.
 */
void nc_socket_bound_unsent(int socket, size_t limit);

/* Removes that limit, if it is the socket's. */
void nc_socket_unbound_unsent(int socket, size_t limit);

/* Whether calls block until the socket is writable: it is not O_NONBLOCK. */
bool nc_socket_waits(int socket);

/* Whether poll(2) reports the socket as writable. */
bool nc_socket_has_room(int socket);

/*
 * As sendfile(2), which a signal that is pending for the thread ends early, also one that stops the
 * process: on a non-blocking socket this continues, so that after fewer than length bytes the socket
 * is full, or the file has ended, or the next call reports an error.
 */
ssize_t nc_socket_sendfile(int socket, int file, off_t *from, size_t length);

/* Whether writing to a closed stream returns an error instead of raising a signal. */
bool nc_socket_sigpipe_ignored(void);

#endif
