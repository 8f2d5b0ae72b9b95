/* SPDX-License-Identifier: MIT */
/*
 * exchange.h - the server's end of requests and responses with one worker.
 */
#ifndef NC_EXCHANGE_H
#define NC_EXCHANGE_H

#include <nabc-worker.h>

#include "attach.h"
#include "lane.h"
#include "process.h"
#include "segment.h"

struct nc_exchange_lane {
	struct nc_lane queues;
	int doorbell; /* eventfd: the worker rings, the server watches */
	char *record; /* the last response, copied out of shared memory */
};

struct nc_exchange {
	struct nc_attach *attach;
	struct nc_cache *cache;
	struct nc_guest *guest;
	struct nc_foreign *foreign;
	struct nc_segment queues;
	struct nc_process process;
	int watch, ring; /* the pipe that wakes the worker */
	unsigned lanes;
	struct nc_exchange_lane lane[];
};

int nc_exchange_open(struct nc_attach *attach, const struct NC_exchange_options *options,
		     struct nc_exchange **exchange);
void nc_exchange_end(struct nc_exchange *exchange);

int nc_exchange_send(struct nc_exchange *exchange, unsigned lane, uint64_t tag,
		     const char *variables, size_t length);
void nc_exchange_wake(struct nc_exchange *exchange, unsigned lane);

/* 1: a response, 0: none, -EPROTO: the worker must go. */
int nc_exchange_take(struct nc_exchange *exchange, unsigned lane, uint64_t *tag,
		     struct NC_response *response);

/* Before sleeping on the doorbell, which rings for that many responses; 1: do not. */
int nc_exchange_sleep(struct nc_exchange *exchange, unsigned lane, unsigned responses);

#endif
