/* SPDX-License-Identifier: MIT */
/*
 * exchange.h - the server's end of requests and responses with one worker.
 */
#ifndef NC_EXCHANGE_H
#define NC_EXCHANGE_H

#include <nabc-worker.h>

#include "membership/serve.h"
#include "os/process.h"
#include "os/segment.h"
#include "wire/send-window.h"
#include "wire/pipe-reader.h"
#include "wire/lane.h"

struct nc_exchange_lane {
	struct nc_lane queues;
	int doorbell; /* eventfd: the worker rings, the server watches; or where bytes come */
	int writer;   /* the other end of that, until the worker has it; -1 */
	struct nc_pipe_reader *reader; /* NULL: bodies come by id */
	char *record;		       /* the last response, copied out of shared memory */
	struct nc_send_windows windows;
	uint64_t submitted; /* requests, ever */
	bool owing; /* a window has credit of which the full queue kept the worker from hearing */
};

struct nc_exchange {
	struct nc_serve *serve;
	struct nc_index *index;
	struct nc_guest *guest;
	struct nc_remote_member *remote;
	struct nc_segment queues;
	struct nc_process process;
	int watch, ring; /* the pipe that wakes the worker */
	unsigned lanes;
	struct nc_exchange_lane lane[];
};

int nc_exchange_open(struct nc_serve *serve, const struct NC_exchange_options *options,
		     struct nc_exchange **exchange);
/* Another started its process; takes pidfd over.  0; -EALREADY; -EINVAL; -errno. */
int nc_exchange_adopt(struct nc_exchange *exchange, pid_t pid, int pidfd);
void nc_exchange_end(struct nc_exchange *exchange);

int nc_exchange_send(struct nc_exchange *exchange, unsigned lane, uint64_t tag,
		     const char *variables, size_t length, unsigned flags);

/* How many of the last requests its process never began with; -EBUSY: it is there; -EPROTO. */
int nc_exchange_untaken(const struct nc_exchange *exchange, unsigned lane);

/*
 * Takes up to that many requests back that the worker has not begun with, the
 * oldest first.  How many, with the number of those that stay in *left; or -EPROTO.
 */
int nc_exchange_withdraw(struct nc_exchange *exchange, unsigned lane, unsigned most,
			 unsigned *left);

/* The next piece of a request's body.  0; -EAGAIN; -ENOENT: it is over; -EINVAL. */
int nc_exchange_give(struct nc_exchange *exchange, unsigned lane, uint64_t tag,
		     const struct NC_range *piece, unsigned flags);
void nc_exchange_wake(struct nc_exchange *exchange, unsigned lane);

/* One piece has left; the client is gone.  Of a tag that is over: nothing. */
int nc_exchange_sent(struct nc_exchange *exchange, unsigned lane, uint64_t tag);
int nc_exchange_cancel(struct nc_exchange *exchange, unsigned lane, uint64_t tag);

/* 1: a response, 0: none, -EPROTO: the worker must go. */
int nc_exchange_take(struct nc_exchange *exchange, unsigned lane, uint64_t *tag,
		     struct NC_response *response);

/* Before sleeping on the doorbell, which rings for that many responses; 1: do not. */
int nc_exchange_sleep(struct nc_exchange *exchange, unsigned lane, unsigned responses);

#endif
