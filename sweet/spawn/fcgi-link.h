/* SPDX-License-Identifier: MIT */
/*
 * fcgi-link.h - one connection to a FastCGI application: sends a request, with its
 * body from one unit or a sequence of units; the owner reads the response.
 *
 * A link belongs to one thread.  It calls its owner's callbacks, never during a
 * call of the owner, and never after fcgi_link_close().
 */
#ifndef SWEET_FCGI_LINK_H
#define SWEET_FCGI_LINK_H

#include "base/body-queue.h"
#include "event/loop.h"
#include "http/fcgi.h"
#include "base/balancer.h"

#define FCGI_CONNECT_MS 5000 /* for an application to accept the beginning of a request */

struct fcgi_link;

struct fcgi_link_owner {
	/* fd is readable, or at its end; called once for each arrival of data. */
	void (*readable)(struct fcgi_link *link);
	/* The request cannot be sent: negated errno; -ETIMEDOUT: not within FCGI_CONNECT_MS. */
	void (*broke)(struct fcgi_link *link, int error);
	/* The body so far was sent, and more will follow: fcgi_link_body(). */
	void (*drained)(struct fcgi_link *link);
	/* The idle time has passed. */
	void (*idled)(struct fcgi_link *link);
};

/* A request as records, up to the start of its body; fits any application. */
struct fcgi_message {
	char *bytes; /* ends with the header of the body's first record */
	size_t length, room;
	struct NC_range body; /* of length 0: none */
	bool more;	      /* body is only its first part */
};

struct fcgi_link {
	struct loop_watch watch; /* must be first */
	struct loop_send send;
	struct timer timer;
	struct loop *loop;
	const struct fcgi_link_owner *owner;
	struct upstream *upstream;
	struct fcgi fcgi; /* the response; the owner reads it */
	/* The owner's: */
	void *user;
	struct fcgi_link *next;
	bool reading, closed;
	bool permit;   /* it holds a permit, see permits.h */
	bool given_up; /* closed for another loop */
	/* Private to fcgi-link.c: */
	const struct fcgi_message *message; /* the current request; NULL: none */
	struct body_queue queue;	    /* of the body */
	struct NC_range piece;		    /* being sent */
	char header[FCGI_HEADER_SIZE];
	int fd;
	bool sending; /* a send is pending */
	bool taken;   /* the application accepted the beginning of the request */
	bool sent;    /* the end of the request was sent, or is being sent */
	unsigned requests;
	uint64_t opened_ms;
};

/*
 * Makes the records for a request's variables ("NAME=value", each ended by a NUL)
 * and for its body, or the first part of it.  Returns 0, -ENOMEM, or -EMSGSIZE if a
 * variable fits no record.
 */
int fcgi_message_make(struct fcgi_message *message, struct slice block, struct NC_range body,
		      bool more);
void fcgi_message_free(struct fcgi_message *message);

/* Connects.  Returns NULL and a negated errno in *error; EAGAIN: the queue there is full. */
struct fcgi_link *fcgi_link_open(struct loop *loop, struct upstream *upstream,
				 const struct fcgi_link_owner *owner, int *error);

/*
 * Sends a request; message must last until the link rests or is closed, the unit of
 * its body need not.  Returns 0 or -errno.
 */
int fcgi_link_request(struct fcgi_link *link, const struct fcgi_message *message);

/* Adds a part of the body, after drained() or earlier.  Returns 0 or -errno. */
int fcgi_link_body(struct fcgi_link *link, struct NC_range piece, bool more);

/* The request is over in both directions; idled() is called after ms. */
void fcgi_link_rest(struct fcgi_link *link, unsigned ms);

/*
 * Returns true if a resting link is usable: the application neither closed it nor
 * sent anything.
 */
bool fcgi_link_is_alive(const struct fcgi_link *link);

/* Returns true if the system has not yet accepted any byte of the request. */
bool fcgi_link_is_unsent(const struct fcgi_link *link);

/* Aborts a current request. */
void fcgi_link_close(struct fcgi_link *link);

#endif
