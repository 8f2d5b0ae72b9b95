/* SPDX-License-Identifier: MIT */
/* responder.h - the worker's end of requests and responses. */
#ifndef NC_RESPONDER_H
#define NC_RESPONDER_H

#include <nabc-worker.h>
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

struct nc_responder {
	struct nc_index *index; /* attached; not owned */
	struct nc_segment queues;
	int watch; /* readable when requests arrive or response queues have space */
	unsigned channels;
	unsigned next; /* the channel to look at first, for fairness */
	bool broken;   /* the server violated the protocol */
	struct nc_pending pending;
	char *out; /* for records of responses that are sent as bytes; NULL: sent by id */
	struct {
		struct nc_channel queues;
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
 * Returns 1 for a request, 0 if the server is gone, or -errno.  Blocks.  The variables are
 * valid until the request is over.
 */
int nc_responder_accept(struct nc_responder *responder, struct NC_request *request);

/* Blocks while the queue is full. */
int nc_responder_respond(struct nc_responder *responder, const struct NC_request *request,
			 const struct NC_response *response);

/*
 * Blocks while the window is full.  Returns -ECANCELED (the request is over),
 * -EINVAL, or as nc_responder_respond().
 */
int nc_responder_send(struct nc_responder *responder, const struct NC_request *request,
		      const struct NC_range *ranges, unsigned count, unsigned flags);

/*
 * Blocks until a piece of the body comes.  Returns 1, 0 at the end, -ECANCELED (the client
 * is gone), or -errno.
 */
int nc_responder_body(struct nc_responder *responder, const struct NC_request *request,
		      struct NC_range *piece);
int nc_responder_abort(struct nc_responder *responder, const struct NC_request *request);

/* Returns 1 if the client is gone, 0, or -errno.  Does not block. */
int nc_responder_gone(struct nc_responder *responder, const struct NC_request *request);

/* --- for responder*.c ------------------------------------------------------- */

#define NC_RESPONDER_OUT                                                                           \
	(sizeof(struct nc_wire_response) + NC_WIRE_RANGES_MAX * sizeof(struct NC_range) +          \
	 NC_WIRE_BLOCK_MAX)

/* Pushes one record with ranges and header lines; blocks until it fits. */
int nc_responder_push(struct nc_responder *responder, uint32_t channel,
		      const struct nc_wire_response *wire, const struct NC_range *ranges,
		      const char *headers);

/* Writes the same as bytes; the body is limited to the size of the largest unit. */
int nc_responder_write(struct nc_responder *responder, uint32_t channel,
		       const struct nc_wire_response *wire, const struct NC_range *ranges,
		       const char *headers);

/* Checks that the ranges can be sent now.  Returns 0 or -errno. */
int nc_responder_check_ranges(struct nc_responder *responder, const struct NC_range *ranges,
			      unsigned count);

/* Returns a request that the worker has accepted and not completed, or NULL. */
static inline struct nc_open_request *nc_responder_find(struct nc_responder *responder,
							const struct NC_request *request)
{
	struct nc_open_request *open =
		nc_pending_find(&responder->pending, request->channel, request->tag);

	return open && open->accepted ? open : NULL;
}

/*
 * Take a request out of a channel's queue, or the first one that was kept.  Return 1, 0 if
 * there is none, or -errno.
 */
int nc_responder_take(struct nc_responder *responder, uint32_t channel, struct NC_request *request);
int nc_responder_take_kept(struct nc_responder *responder, struct NC_request *request);

/* Takes all records out of a channel's queue and keeps the requests.  Returns 0 or -errno. */
int nc_responder_pump(struct nc_responder *responder, uint32_t channel);

/*
 * Sleeps until the channel's queue may have more.  Returns 0, -errno, or -EPIPE
 * (the server is gone).
 */
int nc_responder_await(struct nc_responder *responder, uint32_t channel);

#endif
