/* SPDX-License-Identifier: MIT */
/*
 * responder.h - the worker's end of requests and responses.
 */
#ifndef NC_RESPONDER_H
#define NC_RESPONDER_H

#include <nabc-worker.h>

#include "cache/index.h"
#include "os/segment.h"
#include "wire/pending.h"
#include "wire/channel.h"
#include "wire/wire.h"

struct nc_responder {
	struct nc_index *index; /* attached; the caller's */
	struct nc_segment queues;
	int watch; /* rung when requests or room for responses come */
	unsigned channels;
	unsigned next; /* the channel to look at first: fair */
	char *record;  /* the last request, unless it was kept */
	struct nc_pending pending;
	char *out; /* for the records of answers that go as bytes; NULL: they go by id */
	struct {
		struct nc_channel queues;
		uint64_t claimed; /* requests: accepted, or withdrawn by the server */
		size_t waiting;	  /* bytes of bodies that the server may not have seen yet */
		int doorbell;
	} channel[];
};

/*
 * Attaches the cache of the server over the inherited socket, into cache, and
 * opens the queues.  0, -EPROTO or another -errno.
 */
int nc_responder_open(struct nc_index *index, int socket, struct nc_responder **responder);
void nc_responder_close(struct nc_responder *responder);

/* 1: a request; 0: the server is gone; -errno.  Blocks. */
int nc_responder_accept(struct nc_responder *responder, struct NC_request *request);

/* Blocks while the queue is full. */
int nc_responder_respond(struct nc_responder *responder, const struct NC_request *request,
			 const struct NC_response *response);

/* Blocks while the window is full.  -ECANCELED: the request is over; -EINVAL; as respond. */
int nc_responder_send(struct nc_responder *responder, const struct NC_request *request,
		      const struct NC_range *ranges, unsigned count, unsigned flags);

/*
 * Blocks for a piece of the body; whole is what there is if the request has
 * none in pieces.  1; 0: that was all; -ECANCELED: the client is gone; -errno.
 */
int nc_responder_body(struct nc_responder *responder, const struct NC_request *request,
		      const struct NC_range *whole, struct NC_range *piece);
int nc_responder_abort(struct nc_responder *responder, const struct NC_request *request);

/* 1: nobody waits for the answer; 0; -errno.  Does not block. */
int nc_responder_gone(struct nc_responder *responder, const struct NC_request *request);

/* --- for responder*.c ------------------------------------------------------- */

#define NC_RESPONDER_OUT                                                                           \
	(sizeof(struct nc_wire_response) + NC_WIRE_RANGES_MAX * sizeof(struct NC_range) +          \
	 NC_WIRE_BLOCK_MAX)

/* One record with ranges and header lines, once there is room for it. */
int nc_responder_push(struct nc_responder *responder, uint32_t channel,
		      const struct nc_wire_response *wire, const struct NC_range *ranges,
		      const char *headers);

/* The same as bytes: at most as many as the largest unit has. */
int nc_responder_write(struct nc_responder *responder, uint32_t channel,
		       const struct nc_wire_response *wire, const struct NC_range *ranges,
		       const char *headers);

/* That they can be sent as things are now: 0 or -errno. */
int nc_responder_check_ranges(struct nc_responder *responder, const struct NC_range *ranges,
			      unsigned count);

/* Takes all out of a channel's queue and keeps the requests.  0 or -errno. */
int nc_responder_pump(struct nc_responder *responder, uint32_t channel);

/* Sleeps until there may be more in the channel's queue.  0 or -errno; -EPIPE: the server is gone. */
int nc_responder_await(struct nc_responder *responder, uint32_t channel);

#endif
