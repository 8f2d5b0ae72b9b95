/* SPDX-License-Identifier: MIT */
/*
 * unsent.h - limits how much of responses a socket holds while its client does not read.
 */
#ifndef SWEET_UNSENT_H
#define SWEET_UNSENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct lent;
struct loop_send;
struct sockaddr;
struct thread;

/* Of a socket: a part of who owns it, with zeros but for the first members. */
struct unsent {
	struct thread *thread;
	int fd;
	struct loop_send *send; /* of all its messages */
	/* Resets the socket, since its client reads too slowly; why: for the log.  May free this. */
	void (*reset)(struct unsent *unsent, const char *why);
	bool copies;		    /* no page is ever lent to the socket */
	bool near, reads;	    /* the peer is on this machine; it has read data */
	bool sending;		    /* a message is being sent */
	bool rate_known;	    /* the rate has been measured */
	uint64_t sent_earlier;	    /* bytes of earlier messages that the socket took */
	uint64_t looked_at;	    /* bytes of the current message at the last check */
	uint64_t acknowledged;	    /* bytes acknowledged by then */
	unsigned bytes;		    /* that the socket is counted for; 0: none */
	int bound;		    /* TCP_NOTSENT_LOWAT */
	struct list_node node;	    /* in the thread's list of counted sockets */
	uint64_t rate;		    /* bytes acknowledged per second */
	uint64_t rated, rated_ms;   /* bytes acknowledged, and the time, at the last measurement */
	struct lent *lent;	    /* the unit that a response was moved off; or NULL */
	struct list_node lent_node; /* in the thread's list of sockets with such a unit */
};

/* Before the first message; with the socket's own peer and address. */
void unsent_init(struct unsent *unsent, const struct sockaddr *peer, const struct sockaddr *own);

/* A message is about to be sent; it waits for room in the socket; it was sent, or stopped. */
void unsent_starts(struct unsent *unsent);
void unsent_waits(struct unsent *unsent);
void unsent_stops(struct unsent *unsent);

/* The client is slow: limits what its socket takes from now on. */
void unsent_shrink(struct unsent *unsent);

/* The socket is closed. */
void unsent_end(struct unsent *unsent);

/* Returns how many bytes in the socket the client has not acknowledged. */
int unsent_in_socket(int fd);

#endif
