/* SPDX-License-Identifier: MIT */
/*
 * nabc-async.h - sends that finish later.
 *
 * Two ways.  A program with an io_uring of its own prepares sends on it:
 * NC_operation_open(), NC_prep_send(), NC_operation_complete().  Any other
 * event loop uses a ring of the library's: NC_ring_send(), and a descriptor
 * that is readable when there is something to reap.  That ring works without
 * io_uring too, by epoll and non-blocking sends.
 *
 * This header does not need liburing's; a program that calls NC_prep_send()
 * includes <liburing.h> as well.  See nabc(7), NC_operation_open(3) and
 * NC_ring_open(3).
 */
#ifndef NABC_ASYNC_H
#define NABC_ASYNC_H

#include <nabc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- sends on the caller's io_uring ------------------------------------ */

struct io_uring_sqe;
struct io_uring_cqe;

/* One message on its way; belongs to one thread at a time. */
typedef struct NC_operation NC_operation;

#define NC_OPERATION_FIXED_FILE 0x1u /* sock_fd is an index of the ring's registered files */
#define NC_OPERATION_UNLINKED 0x2u /* no submission is linked to its: the kernel module may send */

/* What NC_operation_complete() says is to be done. */
enum NC_progress {
	NC_PROGRESS_WAIT,  /* nothing: another completion will come */
	NC_PROGRESS_AGAIN, /* prepare again: a part was sent */
	NC_PROGRESS_FULL,  /* prepare again once the socket is writable: NC_SEND_DONTWAIT is set */
	NC_PROGRESS_SENT,  /* all is sent: the next message may go; one more completion will come */
	NC_PROGRESS_DONE,  /* all is sent and over: close */
};

/*
 * Checks the message, copies header and ranges, holds the units until the
 * operation is closed.  cache NULL: the process's default one.
 */
NC_operation *NC_operation_open(NC_cache *cache, int sock_fd, const struct NC_send *message,
				unsigned flags);

/* Fills sqe but for user_data; one submission at a time. */
int NC_prep_send(struct io_uring_sqe *sqe, NC_operation *operation);

/* For every completion of it; enum NC_progress, or -1: the send failed, close. */
int NC_operation_complete(NC_operation *operation, const struct io_uring_cqe *cqe);

/* Bytes of the message handed to the socket so far, skip not counted. */
size_t NC_operation_sent(const NC_operation *operation);

/* Ends it; EBUSY while a completion is still to come. */
int NC_operation_close(NC_operation *operation);

/* Ends it although completions were lost with their ring. */
int NC_operation_abandon(NC_operation *operation);

/* --- a ring of the library's own --------------------------------------- */

/* Messages on their way, in order for each socket; for any number of threads. */
typedef struct NC_ring NC_ring;

#define NC_RING_NO_URING 0x1u /* use epoll even where io_uring is to be had */

#define NC_RING_DEPTH_MAX 65536u

/* One message that is over. */
struct NC_completion {
	void *data;  /* as given to NC_ring_send() */
	size_t sent; /* bytes of the message handed to the socket, skip not counted */
	int sock_fd;
	int error; /* 0: all was sent; else an errno */
};

/* depth: messages sent and not reaped at most; 0: 256. */
NC_ring *NC_ring_open(NC_cache *cache, unsigned depth, unsigned flags);

/* Readable when NC_ring_reap() has something to do. */
int NC_ring_fd(NC_ring *ring);

/* Queues a message; header and ranges are copied. */
int NC_ring_send(NC_ring *ring, int sock_fd, const struct NC_send *message, void *data);

/* Starts what is queued; how many completions can be reaped at once. */
int NC_ring_submit(NC_ring *ring);

/* Moves everything on, and fills done[] with at most count completions; their number. */
int NC_ring_reap(NC_ring *ring, struct NC_completion *done, unsigned count);

/* Ends the messages of a socket: they complete with ECANCELED.  Their number. */
int NC_ring_cancel(NC_ring *ring, int sock_fd);

/* Ends all messages; those not reaped are forgotten. */
int NC_ring_close(NC_ring *ring);

#ifdef __cplusplus
}
#endif

#endif
