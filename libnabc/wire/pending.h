/* SPDX-License-Identifier: MIT */
/*
 * pending.h - the pending requests of a worker: those taken out of the queues and
 * not answered, and what the server has said about them since.
 *
 * While a worker waits for a record about one request, other requests precede it in
 * the queue: they are kept and accepted later.  No I/O; one thread at a time.
 */
#ifndef NC_PENDING_H
#define NC_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nabc-worker.h>
#include <nabc.h>

struct nc_wire_request;

#define NC_PENDING_KEPT_MAX ((size_t)4 << 20) /* bytes of kept requests that wait to be accepted */

/* The received pieces of a request's body. */
struct nc_inbox {
	struct NC_range piece[NC_WORKER_WINDOW];
	unsigned first, count;
	bool ended;   /* no more pieces follow */
	bool reading; /* the worker has a piece that it has not returned */
};

struct nc_open_request {
	uint64_t tag;
	uint32_t channel;
	uint8_t unsent;		/* pieces of its response that the server has not sent */
	bool begun;		/* its response has begun */
	bool gone;		/* its client is gone */
	bool taken;		/* its whole body was taken */
	struct nc_inbox *inbox; /* NULL: no body in pieces */
};

/* A record out of a queue. */
struct nc_kept {
	struct nc_kept *next;
	uint32_t channel;
	size_t length;
	char record[];
};

struct nc_pending {
	struct nc_open_request *open;
	unsigned count, room;
	unsigned begun;		       /* number of responses */
	struct nc_kept *first, **last; /* requests not yet accepted */
	size_t kept;		       /* bytes of these */
	struct nc_kept *current;       /* the request accepted last, if it was kept */
	struct nc_kept *blank;	       /* for the next record; NULL: none yet */
	struct nc_inbox *spare;	       /* for the next request with a body */
};

void nc_pending_init(struct nc_pending *pending);
void nc_pending_fini(struct nc_pending *pending);

/*
 * Allocates space for one more request of any kind.  Returns 0 or -ENOMEM.  Call it
 * before taking a request out of the queue, which would be lost otherwise.
 */
int nc_pending_grow(struct nc_pending *pending);

static inline int nc_pending_reserve(struct nc_pending *pending)
{
	return pending->count < pending->room && pending->spare ? 0 : nc_pending_grow(pending);
}

/* Adds a request, after nc_pending_reserve().  Records of other kinds go to nc_pending_note(). */
void nc_pending_add(struct nc_pending *pending, uint32_t channel,
		    const struct nc_wire_request *wire);
struct nc_open_request *nc_pending_find(struct nc_pending *pending, uint32_t channel, uint64_t tag);
void nc_pending_remove(struct nc_pending *pending, struct nc_open_request *request);

/* Handles a record that is not a request, and what follows it.  Returns 0 or -EPROTO. */
int nc_pending_note(struct nc_pending *pending, uint32_t channel,
		    const struct nc_wire_request *wire, const void *what);

/*
 * nc_pending_blank() returns a record of up to limit bytes to fill;
 * nc_pending_keep() keeps it.  Returns 0, -ENOBUFS (too many bytes are kept), or
 * -ENOMEM.
 */
int nc_pending_blank(struct nc_pending *pending, size_t limit, struct nc_kept **blank);
void nc_pending_keep(struct nc_pending *pending, uint32_t channel, size_t length);

/* Returns the oldest kept request, valid until the next call; NULL: none. */
struct nc_kept *nc_pending_next(struct nc_pending *pending);

/* Removes and returns the oldest kept request of a channel, which the caller frees; NULL: none. */
struct nc_kept *nc_pending_take(struct nc_pending *pending, uint32_t channel);

/* Frees the request that nc_pending_next() returned. */
void nc_pending_forget(struct nc_pending *pending);

#endif
