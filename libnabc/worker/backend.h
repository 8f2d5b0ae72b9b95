/* SPDX-License-Identifier: MIT */
/*
 * backend.h - one worker as its server sees it: requests to it, responses from it.
 */
#ifndef NC_BACKEND_H
#define NC_BACKEND_H

#include <nabc-worker.h>

#include "membership/serve.h"
#include "os/process.h"
#include "os/segment.h"
#include "wire/send-window.h"
#include "wire/pipe-reader.h"
#include "wire/channel.h"

struct nc_backend_channel {
	struct nc_channel queues;
	int doorbell; /* eventfd: the worker rings, the server watches; or where bytes come */
	int writer;   /* the other end of that, until the worker has it; -1 */
	struct nc_pipe_reader *reader; /* NULL: bodies come by id */
	char *record;		       /* the last response, copied out of shared memory */
	struct NC_hold holds[NC_WIRE_RANGES_MAX]; /* of its ranges */
	struct nc_send_windows windows;
	uint64_t submitted; /* requests, ever */
	bool owing; /* a window has credit of which the full queue kept the worker from hearing */
};

struct NC_backend {
	struct nc_serve *serve;
	_Atomic unsigned *open; /* the caller's count of those that are */
	struct nc_index *index;
	struct nc_guest *guest;
	struct nc_remote_member *remote;
	struct nc_segment queues;
	struct nc_process process;
	int watch, ring; /* the pipe that wakes the worker */
	unsigned channels;
	struct nc_backend_channel channel[];
};

int nc_backend_open(struct nc_serve *serve, _Atomic unsigned *open,
		    const struct NC_backend_options *options, struct NC_backend **backend);
/* Another started its process; takes pidfd over.  0; -EALREADY; -EINVAL; -errno. */
int nc_backend_adopt(struct NC_backend *backend, pid_t pid, int pidfd);
void nc_backend_end(struct NC_backend *backend);

int nc_backend_send(struct NC_backend *backend, unsigned channel, uint64_t tag,
		    const char *variables, size_t length, unsigned flags);

/* How many of the last requests its process never began with; -EBUSY: it is there; -EPROTO. */
int nc_backend_untaken(const struct NC_backend *backend, unsigned channel);

/*
 * Takes up to that many requests back that the worker has not begun with, the
 * oldest first.  How many, with the number of those that stay in *left; or -EPROTO.
 */
int nc_backend_withdraw(struct NC_backend *backend, unsigned channel, unsigned most,
			unsigned *left);

/* The next piece of a request's body.  0; -EAGAIN; -ENOENT: it is over; -EINVAL. */
int nc_backend_give(struct NC_backend *backend, unsigned channel, uint64_t tag,
		    const struct NC_range *piece, unsigned flags);
void nc_backend_wake(struct NC_backend *backend, unsigned channel);

/* One piece has left; the client is gone.  Of a tag that is over: nothing. */
int nc_backend_sent(struct NC_backend *backend, unsigned channel, uint64_t tag);
int nc_backend_cancel(struct NC_backend *backend, unsigned channel, uint64_t tag);

/* 1: a response, 0: none, -EPROTO: the worker must go. */
int nc_backend_take(struct NC_backend *backend, unsigned channel, uint64_t *tag,
		    struct NC_response *response);

/* Before sleeping on the doorbell, which rings for that many responses; 1: do not. */
int nc_backend_sleep(struct NC_backend *backend, unsigned channel, unsigned responses);

#endif
