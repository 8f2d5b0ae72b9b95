/* SPDX-License-Identifier: MIT */
/* responder.h - the worker's end of requests and responses. */
#ifndef NC_RESPONDER_H
#define NC_RESPONDER_H

#include <nabc-worker.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/segment.h"
#include "wire/pending.h"
#include "wire/channel.h"
#include "wire/wire.h"

struct NC_range;
struct NC_request;
struct NC_response;
struct nc_index;

/* What a call waits for. */
enum nc_wait_kind {
	NC_WAIT_REQUEST, /* a new request, in any channel */
	NC_WAIT_NEWS,	 /* a record about a request, in its channel */
	NC_WAIT_ROOM,	 /* space for a record about a request, in its channel's responses */
};

/* What a call that does not wait would wait for, of its request. */
enum nc_want {
	NC_WANT_PIECE = 1,	/* of the body */
	NC_WANT_WINDOW = 2,	/* for the next piece of the response */
	NC_WANT_ROOM_BODY = 4,	/* for the record that returns a piece */
	NC_WANT_ROOM_ANSWER = 8 /* for one of the response */
};

#define NC_WANT_NEWS (NC_WANT_PIECE | NC_WANT_WINDOW)
#define NC_WANT_ROOM (NC_WANT_ROOM_BODY | NC_WANT_ROOM_ANSWER)

/* A call that waits, or may; see responder-wait.c. */
struct nc_wait {
	enum nc_wait_kind kind;
	uint32_t channel;
	uint64_t tag;
	size_t length; /* bytes of the record */
	bool nowait;   /* fail with EAGAIN instead */
	bool events;   /* NC_ACCEPT_EVENTS */
	bool drained;  /* the call has emptied the watch */
	enum nc_want want;
	/* While it waits: */
	struct nc_wait *previous, *next;
	pthread_cond_t changed;
	bool woken;
};

/* The lock protects all but what nc_responder_open() sets; a thread that sleeps has unlocked it. */
struct nc_responder {
	struct nc_index *index; /* attached; not owned */
	pthread_mutex_t lock;
	struct nc_wait *first, *last; /* threads that wait */
	struct nc_wait *leader;	      /* the one that sleeps at the watch; NULL: none */
	unsigned woken;		      /* threads that were woken and have not yet looked */
	int interrupt;		      /* wakes the leader, too; -1: not opened */
	bool ended;		      /* so has the server */
	/* For loops, see responder-poll.c: */
	int poll;	       /* readable while a call may get further; -1: not opened */
	int signal;	       /* an eventfd that makes it readable, if the watch does not */
	bool signaled;	       /* it does */
	bool events;	       /* a call asked for events */
	unsigned news, spaces; /* requests and channels with what calls want */
	struct nc_segment queues;
	int watch; /* readable when requests arrive or response queues have space */
	unsigned channels;
	unsigned next;	  /* the channel to look at first, for fairness */
	bool broken;	  /* the server violated the protocol */
	uint32_t version; /* of the protocol, which both ends speak */
	bool replace;	  /* the server was asked to replace this worker */
	struct nc_pending pending;
	char *out; /* for records of responses that are sent as bytes; NULL: sent by id */
	struct {
		struct nc_channel queues;
		unsigned wanting; /* calls that did not wait for space for a response */
		size_t largest;	  /* bytes of their largest record */
		bool space;	  /* it fits */
		bool armed;	  /* the server rings for the next request or record */
		uint64_t claimed; /* requests accepted, or withdrawn by the server */
		size_t waiting;	  /* bytes of bodies that the server may not have taken yet */
		int doorbell;
	} channel[];
};

/*
 * Attaches index to the server's cache over the inherited socket, and opens the
 * queues.  Returns 0 or -errno.
 */
int nc_responder_open(struct nc_index *index, int socket, struct nc_responder **responder);
void nc_responder_close(struct nc_responder *responder);

/*
 * --- any number of threads; with NC_*_NOWAIT in flags, -EAGAIN instead of blocking ---
 */

/*
 * Returns 1 for a request or an event, 0 if the server is gone, or -errno.  Blocks.  The
 * variables are valid until the request is over.  flags: NC_ACCEPT_*.
 */
int nc_responder_accept(struct nc_responder *responder, struct NC_request *request, unsigned flags);

/* Blocks while the queue is full. */
int nc_responder_respond(struct nc_responder *responder, const struct NC_request *request,
			 const struct NC_response *response);

/*
 * Blocks while the window is full.  Returns -ECANCELED (the request is over),
 * -EINVAL, or as nc_responder_respond().
 */
int nc_responder_send(struct nc_responder *responder, const struct NC_request *request,
		      const struct NC_range *ranges, unsigned count, unsigned flags);

/* The last piece of a response, with trailer fields instead of ranges.  The same; -EMSGSIZE. */
int nc_responder_trailers(struct nc_responder *responder, const struct NC_request *request,
			  const char *lines, size_t length, unsigned flags);

/*
 * Blocks until a piece of the body comes.  Returns 1, 0 at the end, -ECANCELED (the client
 * is gone), or -errno.
 */
int nc_responder_body(struct nc_responder *responder, const struct NC_request *request,
		      struct NC_range *piece, unsigned flags);
int nc_responder_abort(struct nc_responder *responder, const struct NC_request *request);

/* Returns 1 if the client is gone, 0, or -errno.  Does not block. */
int nc_responder_gone(struct nc_responder *responder, const struct NC_request *request);

/*
 * Sends an interim response.  Blocks while the queue is full.  Returns as nc_responder_respond(), or
 * -EOPNOTSUPP (the server is older).
 */
int nc_responder_interim(struct nc_responder *responder, const struct NC_request *request,
			 const struct NC_response *response);

/*
 * Asks the server to replace this worker, once.  Returns 0, -EOPNOTSUPP (the server is older), or
 * -EAGAIN: all queues are full.  Does not block.
 */
int nc_responder_replace(struct nc_responder *responder);

/* --- for responder*.c: call these with the lock ------------------------------- */

/* The version of the protocol that has interim responses, trailers and NC_RESPONSE_REPLACE. */
#define NC_RESPONDER_HEADS 9u

#define NC_RESPONDER_OUT                                                                           \
	(sizeof(struct nc_wire_response) + NC_WIRE_RANGES_MAX * sizeof(struct NC_range) +          \
	 NC_WIRE_BLOCK_MAX)

/*
 * Pushes one record with ranges and header lines.  Returns 0, 1 (yield the CPU to the
 * server, without the lock), -EAGAIN (the queue is full), or -errno.
 */
int nc_responder_push(struct nc_responder *responder, const struct NC_request *request,
		      const struct nc_wire_response *wire, const struct NC_range *ranges,
		      const char *headers);

/* Pushes a record that has only flags.  Returns 0, -EAGAIN, or -errno. */
int nc_responder_report(struct nc_responder *responder, const struct NC_request *request,
			uint32_t flags);

/* Waits until a record of that length fits.  Returns as nc_responder_wait(). */
int nc_responder_await_room(struct nc_responder *responder, struct nc_wait *wait, enum nc_want want,
			    size_t length);

/* Ends a request that is complete. */
void nc_responder_end(struct nc_responder *responder, struct nc_open_request *open);

/*
 * Writes the same as bytes, and blocks with the lock: this way exists to be compared with
 * the other.  The body is limited to the size of the largest unit.
 */
int nc_responder_write(struct nc_responder *responder, uint32_t channel,
		       const struct nc_wire_response *wire, const struct NC_range *ranges,
		       const char *headers);

/* Wakes the server's threads that sleep until more responses come. */
void nc_responder_ring_all(struct nc_responder *responder);

/* Returns a request that the worker has accepted and not completed, or NULL. */
static inline struct nc_open_request *nc_responder_find(struct nc_responder *responder,
							const struct NC_request *request)
{
	struct nc_open_request *open =
		nc_pending_find(&responder->pending, request->channel, request->tag);

	return open && open->accepted ? open : NULL;
}

/* Takes a request out of a channel's queue.  Returns 1, 0 if there is none, or -errno. */
int nc_responder_take(struct nc_responder *responder, uint32_t channel, struct NC_request *request);

/*
 * Takes the first request that was kept.  Returns 1, 0 if there is none, -EAGAIN (one whose
 * client is gone cannot be aborted: its channel's queue is full), or -errno.
 */
int nc_responder_take_kept(struct nc_responder *responder, struct NC_request *request);

/* Takes all records out of a channel's queue and keeps the requests.  Returns 0 or -errno. */
int nc_responder_pump(struct nc_responder *responder, uint32_t channel);

/* --- responder-wait.c ---------------------------------------------------------- */

/* The latter also looks at the queues for the threads that wait. */
void nc_responder_lock(struct nc_responder *responder);
void nc_responder_unlock(struct nc_responder *responder);

/*
 * Waits, without the lock, until there may be what the caller waits for: look again, also
 * for the request, which another thread may have completed.  Returns 0, -EAGAIN, -EPIPE
 * (the server is gone), or -errno.
 */
int nc_responder_wait(struct nc_responder *responder, struct nc_wait *wait);

/* Wake those that wait for a request; for news of one; or for anything of one that is over. */
void nc_responder_kept(struct nc_responder *responder);
void nc_responder_noted(struct nc_responder *responder, uint32_t channel, uint64_t tag);
void nc_responder_over(struct nc_responder *responder, uint32_t channel, uint64_t tag);

/* Looks at all queues for those that wait. */
void nc_responder_settle(struct nc_responder *responder);

/* Handles the result of nc_doorbell_wait().  Returns 0 or -errno. */
int nc_responder_rung(struct nc_responder *responder, int result);

/* --- responder-poll.c ---------------------------------------------------------- */

/* Returns the descriptor of NC_worker_fd(), or -errno.  Call it without the lock. */
int nc_responder_fd(struct nc_responder *responder);
void nc_responder_fd_close(struct nc_responder *responder);

/* A call that does not wait is about to fail.  Returns -EAGAIN, or 0: look again. */
int nc_responder_refuse(struct nc_responder *responder, struct nc_wait *wait);

/* A request is tried again, or ends: forgets these wants. */
void nc_responder_unwant(struct nc_responder *responder, struct nc_open_request *open,
			 unsigned wants);

/* A record about the request has come. */
void nc_responder_has_news(struct nc_responder *responder, struct nc_open_request *open);

/* Finds out where records of such calls fit, and makes the descriptor readable or not. */
void nc_responder_signal(struct nc_responder *responder);

/* Whether the client of a kept request is gone, and no record fits that aborts the request. */
bool nc_responder_is_stuck(const struct nc_responder *responder,
			   const struct nc_open_request *open);

/* Checks that the ranges can be sent now.  Returns 0 or -errno.  Call it without the lock. */
int nc_responder_check_ranges(struct nc_responder *responder, const struct NC_range *ranges,
			      unsigned count);

#endif
