/* SPDX-License-Identifier: MIT */
/*
 * pending.h - the requests pending in a worker: those that were taken out of the queues
 * and not answered, and what the server said about them since.
 *
 * While a worker waits for a record about one request, others come out of the queue
 * before it: they are kept and accepted later.  Pure; one thread at a time.
 */
#ifndef NC_PENDING_H
#define NC_PENDING_H

#include <stdbool.h>

#include <nabc-worker.h>

#include "wire/wire.h"

#define NC_PENDING_KEPT_MAX ((size_t)4 << 20) /* bytes of requests that wait to be accepted */

/* What has come of a request's body. */
struct nc_inbox {
	struct NC_range piece[NC_WORKER_WINDOW];
	unsigned first, count;
	bool ended;   /* and no more comes */
	bool reading; /* the worker has one, of which it has not said that it needs it no more */
};

struct nc_open_request {
	uint64_t tag;
	uint32_t channel;
	uint8_t unsent;		/* pieces of its response that have not left */
	bool begun;		/* its response */
	bool gone;		/* its client */
	bool taken;		/* its whole body */
	struct nc_inbox *inbox; /* NULL: no body comes in pieces */
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
	unsigned begun;		       /* responses */
	struct nc_kept *first, **last; /* requests that were not accepted */
	size_t kept;		       /* bytes of these */
	struct nc_kept *current;       /* of the request that was accepted last, if it was kept */
	struct nc_kept *blank;	       /* for the next record; NULL: none yet */
	struct nc_inbox *spare;	       /* for the next request that has a body */
};

void nc_pending_init(struct nc_pending *pending);
void nc_pending_fini(struct nc_pending *pending);

/*
 * Room for one more request, whatever it has.  0 or -ENOMEM: before it is taken
 * out of the queue, since it would be lost.
 */
int nc_pending_grow(struct nc_pending *pending);

static inline int nc_pending_reserve(struct nc_pending *pending)
{
	return pending->count < pending->room && pending->spare ? 0 : nc_pending_grow(pending);
}

/* After reserve: a request's record, the others being told of by note. */
void nc_pending_add(struct nc_pending *pending, uint32_t channel,
		    const struct nc_wire_request *wire);
struct nc_open_request *nc_pending_find(struct nc_pending *pending, uint32_t channel, uint64_t tag);
void nc_pending_remove(struct nc_pending *pending, struct nc_open_request *request);

/* A record that is no request, and what follows it.  0 or -EPROTO. */
int nc_pending_note(struct nc_pending *pending, uint32_t channel,
		    const struct nc_wire_request *wire, const void *what);

/*
 * A record of up to limit bytes to fill, and to keep then.  0; -ENOBUFS: too
 * much is kept; -ENOMEM.
 */
int nc_pending_blank(struct nc_pending *pending, size_t limit, struct nc_kept **blank);
void nc_pending_keep(struct nc_pending *pending, uint32_t channel, size_t length);

/* The request that was kept first, good until the next one; NULL: none. */
struct nc_kept *nc_pending_next(struct nc_pending *pending);

/* The same of one channel's, for the caller to free; NULL: none. */
struct nc_kept *nc_pending_take(struct nc_pending *pending, uint32_t channel);

/* The last one is not needed any more. */
void nc_pending_forget(struct nc_pending *pending);

#endif
