/* SPDX-License-Identifier: MIT */
/*
 * responder.h - the worker's end of requests and responses.
 */
#ifndef NC_RESPONDER_H
#define NC_RESPONDER_H

#include <nabc-worker.h>

#include "cache.h"
#include "lane.h"
#include "segment.h"
#include "wire.h"

struct nc_responder {
	struct nc_cache *cache; /* joined; the caller's */
	struct nc_segment queues;
	int watch; /* rung when requests or room for responses come */
	unsigned lanes;
	unsigned next; /* the lane to look at first: fair */
	char *record;  /* the last request */
	struct {
		struct nc_lane queues;
		int doorbell;
	} lane[];
};

/*
 * Joins the cache of the server over the inherited socket, into cache, and
 * opens the queues.  0, -EPROTO or another -errno.
 */
int nc_responder_open(struct nc_cache *cache, int socket, struct nc_responder **responder);
void nc_responder_close(struct nc_responder *responder);

/* 1: a request; 0: the server is gone; -errno.  Blocks. */
int nc_responder_accept(struct nc_responder *responder, struct NC_request *request);

/* Blocks while the queue is full. */
int nc_responder_respond(struct nc_responder *responder, const struct NC_request *request,
			 const struct NC_response *response);

#endif
