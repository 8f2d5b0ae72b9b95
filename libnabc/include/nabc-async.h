/* SPDX-License-Identifier: MIT */
/*
 * nabc-async.h - sends that finish later.
 *
 * There are two ways.  A program with its own io_uring prepares sends on it:
 * NC_operation_open(), NC_prep_send(), NC_operation_complete().  Any other
 * event loop uses a ring of the library: NC_ring_send(), and a descriptor
 * that is readable when there are completions.  That ring also works without
 * io_uring, with epoll and non-blocking sends.
 *
 * This header does not require liburing's; a program that calls
 * NC_prep_send() also includes <liburing.h>.  See nabc(7),
 * NC_operation_open(3) and NC_ring_open(3).
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

/* A message in flight; belongs to one thread at a time. */
typedef struct NC_operation NC_operation;

#define NC_OPERATION_FIXED_FILE 0x1u /* sock_fd is an index of the ring's registered files */
#define NC_OPERATION_UNLINKED 0x2u /* not linked to other submissions: the kernel module may send */

/* The next step, as NC_operation_complete() returns it. */
enum NC_progress {
	NC_PROGRESS_WAIT,  /* nothing: another completion follows */
	NC_PROGRESS_AGAIN, /* prepare again: a part was sent */
	NC_PROGRESS_FULL,  /* prepare again once the socket is writable: NC_SEND_DONTWAIT is set */
	NC_PROGRESS_SENT,  /* sent: the next message may start; one more completion follows */
	NC_PROGRESS_DONE,  /* sent and complete: close */
};

/*
 * Checks the message, copies header and ranges, and holds the units until the
 * operation is closed.  cache may be NULL: the default cache.
 */
NC_operation *NC_operation_open(NC_cache *cache, int sock_fd, const struct NC_send *message,
				unsigned flags);

/* Fills sqe except user_data; one submission at a time. */
int NC_prep_send(struct io_uring_sqe *sqe, NC_operation *operation);

/* Call it for every completion.  Returns enum NC_progress, or -1: the send failed, close. */
int NC_operation_complete(NC_operation *operation, const struct io_uring_cqe *cqe);

/* Returns the bytes of the message passed to the socket so far, without skip. */
size_t NC_operation_sent(const NC_operation *operation);

/* Frees it; EBUSY while a completion is pending. */
int NC_operation_close(NC_operation *operation);

/* Frees it although completions were lost with their ring. */
int NC_operation_abandon(NC_operation *operation);

/* --- a ring of the library ---------------------------------------------- */

/* Messages in flight, in order for each socket; thread-safe. */
typedef struct NC_ring NC_ring;

#define NC_RING_NO_URING 0x1u /* use epoll even if io_uring is available */

#define NC_RING_DEPTH_MAX 65536u

/* The end of one message. */
struct NC_completion {
	void *data;  /* as given to NC_ring_send() */
	size_t sent; /* bytes of the message passed to the socket, without skip */
	int sock_fd;
	int error; /* 0: sent; otherwise an errno */
};

/* depth: limit of messages that are queued and not reaped; 0: 256. */
NC_ring *NC_ring_open(NC_cache *cache, unsigned depth, unsigned flags);

/* Readable when NC_ring_reap() has something to do. */
int NC_ring_fd(NC_ring *ring);

/* Queues a message; header and ranges are copied. */
int NC_ring_send(NC_ring *ring, int sock_fd, const struct NC_send *message, void *data);

/* Starts queued messages; returns the number of completions that are ready. */
int NC_ring_submit(NC_ring *ring);

/* Continues all messages; fills done[] with at most count completions, returns their number. */
int NC_ring_reap(NC_ring *ring, struct NC_completion *done, unsigned count);

/* Cancels the messages of a socket, which complete with ECANCELED; returns their number. */
int NC_ring_cancel(NC_ring *ring, int sock_fd);

/* Cancels all messages and frees the ring; completions that were not reaped are lost. */
int NC_ring_close(NC_ring *ring);

#ifdef __cplusplus
}
#endif

#endif
