/* SPDX-License-Identifier: MIT */
/* backend.h - one worker, seen from its server: requests to it, responses from it. */
#ifndef NC_BACKEND_H
#define NC_BACKEND_H

#include <nabc-worker.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/process.h"
#include "os/segment.h"
#include "wire/send-window.h"
#include "wire/channel.h"
#include "wire/pending-tags.h"
#include "wire/wire.h"

struct NC_backend_options;
struct NC_response;
struct nc_serve;

struct nc_backend_channel {
	struct nc_channel queues;
	/* eventfd that the worker rings and the server watches, or the pipe with the bytes */
	int doorbell;
	int writer; /* the other end of the pipe, until the worker has it; otherwise -1 */
	struct nc_pipe_reader *reader; /* NULL: bodies come by id */
	char *record;		       /* the last response, copied out of shared memory */
	struct NC_hold holds[NC_WIRE_RANGES_MAX]; /* of its ranges */
	struct nc_send_windows windows;
	struct nc_pending_tags tags;
	uint64_t submitted; /* number of requests so far */
	/* the queue was full, so a window has credit that the worker does not know of */
	bool notify_pending;
	bool replace; /* the worker has asked to be replaced */
};

struct NC_backend {
	struct nc_serve *serve;
	_Atomic unsigned *open; /* the caller's count of open backends */
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
/*
 * For a process that the caller started; takes ownership of pidfd.  Returns 0,
 * -EALREADY, -EINVAL or -errno.
 */
int nc_backend_adopt(struct NC_backend *backend, pid_t pid, int pidfd);
/* Lets the worker end by itself: it finds no further request. */
void nc_backend_stop(struct NC_backend *backend);
void nc_backend_end(struct NC_backend *backend);

int nc_backend_send(struct NC_backend *backend, unsigned channel, uint64_t tag,
		    const char *variables, size_t length, unsigned flags);

/*
 * Returns how many of the last requests the process never started; -EBUSY: it is
 * running; -EPROTO.
 */
int nc_backend_pending(const struct NC_backend *backend, unsigned channel);

/*
 * Takes back up to `most` requests that the worker has not started, the oldest
 * first.  Returns how many, with the number of the remaining ones in *left, or
 * -EPROTO.
 */
int nc_backend_withdraw(struct NC_backend *backend, unsigned channel, unsigned most,
			unsigned *left);

/*
 * Gives the next piece of a request's body.  Returns 0, -EAGAIN, -ENOENT (it is
 * over), or -EINVAL.
 */
int nc_backend_give(struct NC_backend *backend, unsigned channel, uint64_t tag,
		    const struct NC_range *piece, unsigned flags);
void nc_backend_wake(struct NC_backend *backend, unsigned channel);

/* Report that one piece was sent, or that the client is gone.  They ignore a tag that is over. */
int nc_backend_sent(struct NC_backend *backend, unsigned channel, uint64_t tag);
int nc_backend_cancel(struct NC_backend *backend, unsigned channel, uint64_t tag);

/* Returns 1 for a response, 0 for none, -EPROTO: the worker must be ended. */
int nc_backend_take(struct NC_backend *backend, unsigned channel, uint64_t *tag,
		    struct NC_response *response);

/* Call it before sleeping on the doorbell, which rings for that many responses; 1: do not sleep. */
int nc_backend_sleep(struct NC_backend *backend, unsigned channel, unsigned responses);

#endif
