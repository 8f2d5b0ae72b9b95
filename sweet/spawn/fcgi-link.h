/* SPDX-License-Identifier: MIT */
/*
 * fcgi-link.h - one connection to a FastCGI application: a request goes out
 * over it, with its body from a unit of the cache, or from one after the other;
 * what comes back is its owner's to read.
 *
 * A link belongs to one thread.  It is told to its owner by callbacks, never
 * during a call that the owner makes here, and never after fcgi_link_close().
 */
#ifndef SWEET_FCGI_LINK_H
#define SWEET_FCGI_LINK_H

#include "base/body-queue.h"
#include "event/loop.h"
#include "http/fcgi.h"
#include "base/balancer.h"

#define FCGI_CONNECT_MS 5000 /* for an application to take the beginning of a request */

struct fcgi_link;

struct fcgi_link_owner {
	/* Bytes, or the end, can be read from fd; told once for each time that some come. */
	void (*readable)(struct fcgi_link *link);
	/* The request cannot be sent: errno, negated; -ETIMEDOUT: within FCGI_CONNECT_MS. */
	void (*broke)(struct fcgi_link *link, int error);
	/* What there was of the body is sent, and more is to come: fcgi_link_body(). */
	void (*hungry)(struct fcgi_link *link);
	/* It has idled for as long as it was to. */
	void (*idled)(struct fcgi_link *link);
};

/* A request in records, up to where its body begins; good for any application. */
struct fcgi_message {
	char *bytes; /* the last are the header of the body's first record */
	size_t length, room;
	struct NC_range body; /* of length 0: none */
	bool more;	      /* body is the first piece of it */
};

struct fcgi_link {
	struct loop_watch watch; /* must be first */
	struct loop_send send;
	struct timer timer;
	struct loop *loop;
	const struct fcgi_link_owner *owner;
	struct upstream *upstream;
	struct fcgi fcgi; /* what comes back; the owner's to read */
	/* The owner's: */
	void *user;
	struct fcgi_link *next;
	bool reading, closed;
	bool permit;   /* it has one, see permits.h */
	bool given_up; /* for another loop */
	/* fcgi-link.c's: */
	const struct fcgi_message *message; /* that is under way; NULL */
	struct body_queue queue;	    /* of the body */
	struct NC_range piece;		    /* that is being sent */
	char header[FCGI_HEADER_SIZE];
	int fd;
	bool sending; /* a send is under way */
	bool taken;   /* the application has the beginning of the request */
	bool sent;    /* the end of the request is out, or on its way */
	unsigned requests;
	uint64_t opened_ms;
};

/*
 * Makes the records of a request's variables ("NAME=value", each ended by a
 * NUL) and of a body, or of the first piece of one that goes on.  0, or
 * -ENOMEM; -EMSGSIZE: a variable fits no record.
 */
int fcgi_message_make(struct fcgi_message *message, struct slice block, struct NC_range body,
		      bool more);
void fcgi_message_free(struct fcgi_message *message);

/* Connects; NULL with *error, an errno, negated: EAGAIN when it is crowded there. */
struct fcgi_link *fcgi_link_open(struct loop *loop, struct upstream *upstream,
				 const struct fcgi_link_owner *owner, int *error);

/*
 * Sends a request; message must last until the link rests or is closed, but
 * not the unit of its body.  0 or -errno.
 */
int fcgi_link_request(struct fcgi_link *link, const struct fcgi_message *message);

/* A further piece of its body, when it was hungry, or the rest before that.  0 or -errno. */
int fcgi_link_body(struct fcgi_link *link, struct NC_range piece, bool more);

/* The request is over in both directions; idled() comes after ms. */
void fcgi_link_rest(struct fcgi_link *link, unsigned ms);

/* Whether a link that rests can be used: the application has neither closed it nor said anything. */
bool fcgi_link_is_alive(const struct fcgi_link *link);

/* Nothing of a request was given to the system yet. */
bool fcgi_link_is_unsent(const struct fcgi_link *link);

/* A request that is under way is aborted. */
void fcgi_link_close(struct fcgi_link *link);

#endif
