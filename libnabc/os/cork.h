/* SPDX-License-Identifier: MIT */
/*
 * cork.h - which TCP sockets this library has corked, by descriptor.
 *
 * MSG_MORE holds a partial segment back only until an acknowledgement comes,
 * which for more than one segment is at once; TCP_CORK holds it until it is
 * lifted (or 200 ms).  So it has to be known at a later call whether to lift.
 * A descriptor that was closed meanwhile costs a needless system call at most.
 * Any thread; lock-free.
 */
#ifndef NC_CORK_H
#define NC_CORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define NC_CORK_WORDS 1024u /* of 64 descriptors */

struct nc_corks {
	_Atomic uint64_t words[NC_CORK_WORDS];
};

/*
 * Corks a socket.  false: it cannot be, because it is no TCP socket or its
 * number is too high to be remembered.  A cork of the program's own is left
 * alone, and so it is never lifted here.
 */
bool nc_cork_set(struct nc_corks *corks, int socket);

/* Lifts it if it is ours, which sends what was held back; else does nothing. */
void nc_cork_lift(struct nc_corks *corks, int socket);

/* The stream is over: there is nothing left to lift. */
void nc_cork_forget(struct nc_corks *corks, int socket);

/*
 * Sends now what the socket holds back, whether by a cork, by MSG_MORE or for
 * fuller segments.  Its options stay as they are.  TCP only; else does nothing.
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
