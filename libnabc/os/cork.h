/* SPDX-License-Identifier: MIT */
/*
 * cork.h - remembers which TCP sockets this library has corked, by descriptor.
 *
 * MSG_MORE holds a partial segment back only until an acknowledgement comes, which
 * for more than one segment is at once.  TCP_CORK holds it until the cork is lifted
 * (or 200 ms), so a later call must know whether to lift one.  A descriptor that
 * was closed meanwhile costs at most a needless system call.  Any thread;
 * lock-free.
 */
#ifndef NC_CORK_H
#define NC_CORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

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
