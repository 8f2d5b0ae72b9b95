/* SPDX-License-Identifier: MIT */
/*
 * pending.h - the pending requests of a worker: those taken out of the queues and
 * not answered, and what the server has said about them since.
 *
 * While a worker waits for a record about one request, other requests precede it in
 * the queue: they are kept and accepted later.  A request owns its record, so that its
 * variables are valid until it is over.  No I/O; the caller locks.
 */
#ifndef NC_PENDING_H
#define NC_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "base/hash-table.h"
#include "wire/wire.h"

#define NC_PENDING_KEPT_MAX ((size_t)4 << 20) /* bytes of kept requests that wait to be accepted */
#define NC_PENDING_RECORD_MAX (sizeof(struct nc_wire_request) + NC_WIRE_BLOCK_MAX)

/* The received pieces of a request's body. */
struct nc_inbox {
	struct NC_range piece[NC_WORKER_WINDOW];
	unsigned first, count;
	bool ended;   /* no more pieces follow */
	bool reading; /* the worker has a piece that it has not returned */
};

struct nc_open_request {
	struct nc_hash_entry entry;		 /* by its tag, among those of its channel */
	struct nc_open_request *previous, *next; /* in the list that it is in, if any */
	uint32_t channel;
	uint8_t unsent;		/* pieces of its response that the server has not sent */
	bool kept;		/* in the list of these */
	bool accepted;		/* the worker has it; else it may be withdrawn */
	bool begun;		/* its response has begun */
	bool gone;		/* its client is gone */
	bool unreported;	/* so it is in the list of events */
	bool taken;		/* its whole body was taken */
	bool switched;		/* its response is 101; then the inbox is a block of its own */
	bool replaced;		/* another request has its tag, so the server has withdrawn it */
	uint8_t wants;		/* what calls that did not wait would have waited for */
	uint8_t news;		/* those of these that have come */
	struct nc_inbox *inbox; /* NULL: no body in pieces, and no response 101 */
	size_t length;		/* bytes of the record */
	char record[];
};

struct nc_request_list {
	struct nc_open_request *first, *last;
};

struct nc_pending {
	struct nc_hash_table *open; /* of each channel */
	unsigned channels;
	unsigned begun;		       /* number of responses, without 101 */
	struct nc_request_list kept;   /* requests not yet accepted, in the order of arrival */
	size_t kept_bytes;	       /* of their records */
	struct nc_request_list events; /* accepted requests whose clients are gone, unreported */
	struct nc_open_request *blank; /* for the next record; NULL: none yet */
};

/* Returns 0 or -ENOMEM. */
int nc_pending_init(struct nc_pending *pending, unsigned channels);
void nc_pending_fini(struct nc_pending *pending);

/*
 * Allocates space for one more request of any kind: up to NC_PENDING_RECORD_MAX bytes at
 * blank->record.  Returns 0 or -ENOMEM.  Call it before taking a record out of the queue,
 * which would be lost otherwise.
 */
int nc_pending_grow(struct nc_pending *pending);

static inline int nc_pending_reserve(struct nc_pending *pending)
{
	return pending->blank ? 0 : nc_pending_grow(pending);
}

/*
 * Adds the request whose record of length bytes is in the blank.  Returns it, or NULL: the
 * worker already has one with that tag, which the protocol excludes.  Records of other
 * kinds go to nc_pending_note().
 */
struct nc_open_request *nc_pending_add(struct nc_pending *pending, uint32_t channel,
				       const struct nc_wire_request *wire, size_t length);

/* Returns NULL if there is none. */
struct nc_open_request *nc_pending_find(struct nc_pending *pending, uint32_t channel, uint64_t tag);

/* Removes and frees a request, whether it was kept or not. */
void nc_pending_remove(struct nc_pending *pending, struct nc_open_request *request);

/* Returns the request's variables. */
static inline const char *nc_pending_variables(const struct nc_open_request *request)
{
	return request->record + sizeof(struct nc_wire_request);
}

static inline size_t nc_pending_variables_length(const struct nc_open_request *request)
{
	return request->length - sizeof(struct nc_wire_request);
}

/* Handles a record that is not a request, and what follows it.  Returns 0 or -EPROTO. */
int nc_pending_note(struct nc_pending *pending, uint32_t channel,
		    const struct nc_wire_request *wire, const void *what);

/* Whether no further request may be kept. */
static inline bool nc_pending_is_full(const struct nc_pending *pending)
{
	return pending->kept_bytes + NC_PENDING_RECORD_MAX > NC_PENDING_KEPT_MAX;
}

/* Keeps a request that was added, as the last one to be accepted. */
void nc_pending_keep(struct nc_pending *pending, struct nc_open_request *request);

/* Returns the oldest kept request of a channel; NULL: none. */
struct nc_open_request *nc_pending_oldest(struct nc_pending *pending, uint32_t channel);

/* Takes a request out of the list of events. */
void nc_pending_report(struct nc_pending *pending, struct nc_open_request *request);

/*
 * A response has begun; inbox: of malloc(), for what the client sends after a response 101, or
 * NULL.  The request owns it.
 */
void nc_pending_begin(struct nc_pending *pending, struct nc_open_request *request,
		      struct nc_inbox *inbox);

/* Gives a request to the worker, whether it was kept or not. */
void nc_pending_accept(struct nc_pending *pending, struct nc_open_request *request);

#endif
