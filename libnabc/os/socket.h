/* SPDX-License-Identifier: MIT */
/*
 * socket.h - queries and options of a socket that is sent to, with its cork.  System calls, any
 * thread.
 */
#ifndef NC_SOCKET_H
#define NC_SOCKET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

/*
 * Which TCP sockets this library has corked, by descriptor; lock-free.
 *
 * MSG_MORE holds a partial segment back only until an acknowledgement comes, which for more than one
 * segment is at once.  TCP_CORK holds it until the cork is lifted (or 200 ms), so a later call must
 * know whether to lift one.  A descriptor that was closed meanwhile costs at most a needless system
 * call.
 */
#define NC_CORK_WORDS 1024u /* of 64 descriptors each */

struct nc_corks {
	_Atomic uint64_t words[NC_CORK_WORDS];
};

/*
 * Corks a socket.  Returns false if that is impossible: it is not a TCP socket, or
 * its number is too high to be remembered.  A cork that the program has set
 * remains, and is never lifted here.
 */
bool nc_cork_set(struct nc_corks *corks, int socket);

/* Lifts the cork if it is ours, which sends what was held back; otherwise does nothing. */
void nc_cork_lift(struct nc_corks *corks, int socket);

/* Forgets the cork: after the end of the stream there is nothing to lift. */
void nc_cork_forget(struct nc_corks *corks, int socket);

/*
 * Sends now what the socket holds back for a cork, for MSG_MORE or for fuller
 * segments.  Does not change its options.  TCP only; otherwise does nothing.
 */
void nc_cork_push(int socket);

static inline bool nc_cork_is_set(const struct nc_corks *corks, int socket)
{
	return (unsigned)socket < NC_CORK_WORDS * 64 &&
	       atomic_load_explicit(&corks->words[socket / 64], memory_order_relaxed) >>
			       socket % 64 &
		       1;
}

#endif
