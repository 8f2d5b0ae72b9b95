/* SPDX-License-Identifier: MIT */
/*
 * upstream-link.h - one connection to an application, with FastCGI or HTTP: sends a request, with
 * its body from one unit or a sequence of units; the owner reads the response.
 *
 * A link belongs to one thread.  It calls its owner's callbacks, never during a
 * call of the owner, and never after upstream_link_close().
 */
#ifndef SWEET_UPSTREAM_LINK_H
#define SWEET_UPSTREAM_LINK_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <nabc.h>

#include "base/body-queue.h"
#include "base/list.h"
#include "base/timer.h"
#include "event/loop.h"
#include "program/fcgi.h"
#include "program/upstream-reply.h"

#define UPSTREAM_PART_MAX ((size_t)65528) /* bytes of a body at a time: a record, without padding */
#define UPSTREAM_FRAME_MAX 24		  /* bytes between two parts */
#define UPSTREAM_CONNECT_MS 5000 /* for an application to accept the beginning of a request */

struct client_calls;
struct upstream_link;
struct upstream_message;
struct loop;
struct upstream;

struct upstream_link_owner {
	/* fd is readable, or at its end; called once for each arrival of data. */
	void (*readable)(struct upstream_link *link);
	/* The request cannot be sent: negated errno; -ETIMEDOUT: not within UPSTREAM_CONNECT_MS. */
	void (*broke)(struct upstream_link *link, int error);
	/* The body so far was sent, and more will follow; or all of upstream_link_write() was. */
	void (*drained)(struct upstream_link *link);
	/* The idle time has passed; or the abandoned request is over, as far as can be known. */
	void (*idled)(struct upstream_link *link);
	/* The request is abandoned before the response has ended, and nothing is being sent; or NULL. */
	void (*abandon)(struct upstream_link *link);
};

/* How the parts of a body are separated. */
struct upstream_framing {
	/*
	 * Writes what precedes that many bytes of the body, which are not the first ones; 0: what
	 * ends the body.  Returns its bytes.  NULL: nothing, the length of the body is known.
	 */
	size_t (*header)(const struct upstream_message *message, char out[UPSTREAM_FRAME_MAX],
			 size_t length);
};

/* A request, up to the start of its body; fits any application. */
struct upstream_message {
	const struct upstream_framing *framing;
	char *bytes; /* with what precedes the first part of the body */
	size_t length, room;
	struct NC_range body; /* of length 0: none */
	bool more;	      /* body is only its first part */
	bool last;	      /* the application is asked to close the connection after it */
};

struct upstream_link {
	struct loop_watch watch;
	struct loop_send send;
	struct timer timer;
	struct loop *loop;
	const struct upstream_link_owner *owner;
	struct upstream *upstream;
	/* The owner's: */
	union {
		struct fcgi fcgi;
		struct upstream_reply reply;
	}; /* the response */
	void *user;
	struct list_node resting;	   /* among the idle ones */
	struct list_node waiting;	   /* among those that the application has not accepted */
	uint64_t connecting, connected_at; /* numbers of capacity.h */
	uint64_t began_ms;		   /* the current request */
	struct client_calls *calls;	   /* of the client that has abandoned the call; or NULL */
	size_t last_read;		   /* bytes; 0: none yet */
	bool last_of_many;		   /* reads of one turn */
	bool reading, closed;
	bool permit;	/* it holds a permit, see permits.h */
	bool given_up;	/* closed for another loop */
	bool abandoned; /* by upstream_link_abandon() */
	/* Private to upstream-link.c: */
	const struct upstream_message *message; /* the current request; NULL: none */
	struct body_queue queue;		/* of the body */
	struct NC_range piece;			/* being sent */
	char header[UPSTREAM_FRAME_MAX];
	struct upstream_message kept; /* of an abandoned request */
	int fd;
	bool sending;		       /* a send is pending */
	bool taken;		       /* the application accepted the beginning of the request */
	bool connected;		       /* or that of an earlier one */
	GByteArray *writing, *backlog; /* of upstream_link_write(); or NULL */
	bool ending;		       /* after that, our end closes */
	bool last;		       /* the end of the request was sent, or is being sent */
	bool sent;		       /* all of the request was sent */
	unsigned requests;
	uint64_t opened_ms;
};

/* Makes room for more bytes; returns false without memory. */
bool upstream_message_reserve(struct upstream_message *message, size_t more);
void upstream_message_free(struct upstream_message *message);

/* Connects.  Returns NULL and a negated errno in *error; EAGAIN: the queue there is full. */
struct upstream_link *upstream_link_open(struct loop *loop, struct upstream *upstream,
					 const struct upstream_link_owner *owner, int *error);

/*
 * Sends a request; message must last until the link rests or is closed, the unit of
 * its body need not.  Returns 0 or -errno.
 */
int upstream_link_request(struct upstream_link *link, const struct upstream_message *message);

/* Adds a part of the body, after drained() or earlier.  Returns 0 or -errno. */
int upstream_link_body(struct upstream_link *link, struct NC_range piece, bool more);

/*
 * The request is sent, and the protocol has changed: sends bytes.  Returns true if the system has
 * taken all of them; else drained() will be called.  An error shows when the response is read.
 */
bool upstream_link_write(struct upstream_link *link, const char *data, size_t length);

/* Closes our end after these bytes. */
void upstream_link_end(struct upstream_link *link);

/* Whether all of the request was sent: never after a send that failed. */
bool upstream_link_may_rest(const struct upstream_link *link);

/* The request is over in both directions, and may rest; idled() is called after ms. */
void upstream_link_rest(struct upstream_link *link, unsigned ms);

/*
 * Returns true if a resting link is usable: the application neither closed it nor
 * sent anything.
 */
bool upstream_link_is_alive(const struct upstream_link *link);

/* Returns true if the application has sent something that was not read yet. */
bool upstream_link_has_bytes(const struct upstream_link *link);

/* Returns true if the system has not yet accepted any byte of the request. */
bool upstream_link_is_unsent(const struct upstream_link *link);

/*
 * Returns the negated errno of a send that has failed and is not reported yet, or 0.  The system
 * tells an error once: after a send had it, a read finds only the end of the connection.
 */
int upstream_link_send_error(const struct upstream_link *link);

/*
 * Returns true if the application has read all that was sent, as far as the system tells: only for
 * Unix sockets.
 */
bool upstream_link_is_read(const struct upstream_link *link);

/*
 * Returns true if more of the body has come than the part that is being sent: the link holds memory
 * that the application does not read.
 */
bool upstream_link_has_backlog(const struct upstream_link *link);

/*
 * Nobody waits for the response any more, of which nothing has come: nothing more of the request is
 * sent, and our end closes, which is all that an application sees of a connection that is closed.
 * The link remains until the application has closed its end, or responds, or for that time: then
 * idled() is called, which has to close it.  Takes the request's message over.
 */
void upstream_link_abandon(struct upstream_link *link, struct upstream_message *message,
			   unsigned ms);

/*
 * The connection has ended without an error: returns true if the application had read all that was
 * sent, as far as the system knows.
 */
bool upstream_link_was_read(const struct upstream_link *link);

/* Abandons a current request. */
void upstream_link_close(struct upstream_link *link);

#endif
