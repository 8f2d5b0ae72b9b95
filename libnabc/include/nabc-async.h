/* SPDX-License-Identifier: MIT */
/*
 * nabc-async.h - sends that finish later.
 *
 * There are two ways.  A program with its own io_uring prepares sends on it:
 * NC_send_op_open(), NC_prep_send(), NC_send_op_complete().  Any other
 * event loop uses a sender of the library: NC_sender_send(), and a descriptor
 * that is readable when there are completions.  That sender also works without
 * io_uring, with epoll and non-blocking sends.
 *
 * This header does not require liburing's; a program that calls
 * NC_prep_send() also includes <liburing.h>.  See nabc(7),
 * NC_send_op_open(3) and NC_sender_open(3).
 */
#ifndef NABC_ASYNC_H
#define NABC_ASYNC_H

#include <nabc.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- sends on the caller's io_uring ------------------------------------ */

struct io_uring_sqe;
struct io_uring_cqe;

/* A message in flight; belongs to one thread at a time. */
typedef struct NC_send_op NC_send_op;

#define NC_SEND_OP_FIXED_FILE 0x1u /* sock_fd is an index of the ring's registered files */
#define NC_SEND_OP_UNLINKED 0x2u   /* not linked to other submissions: the kernel module may send */
/*
 * Only if the library would send the message without a copy, and need not measure it: else EAGAIN,
 * and NC_send() sends it.
 */
#define NC_SEND_OP_ZEROCOPY 0x4u

/* The next step, as NC_send_op_complete() returns it. */
enum NC_progress {
	NC_PROGRESS_WAIT,  /* nothing: another completion follows */
	NC_PROGRESS_AGAIN, /* prepare again: a part was sent */
	NC_PROGRESS_FULL,  /* prepare again once the socket is writable: NC_SEND_DONTWAIT is set */
	NC_PROGRESS_SENT,  /* sent: the next message may start; one more completion follows */
	NC_PROGRESS_DONE,  /* sent and complete: close */
	NC_PROGRESS_NEXT,  /* nothing: of two linked submissions the second completes next */
};

/*
 * Checks the message, copies header, ranges and texts, and holds the units until the
 * operation has ended.  cache may be NULL: the default cache.
 */
NC_send_op *NC_send_op_open(NC_cache *cache, int sock_fd, const struct NC_send *message,
			    unsigned flags);

/*
 * Opens the next message, of the same cache, in the memory of an operation that has ended, which
 * saves an allocation.  Returns 0, or -1: the operation has no message and can be reopened or
 * closed; EBUSY: a completion is pending, nothing changed.
 */
int NC_send_op_reopen(NC_send_op *op, int sock_fd, const struct NC_send *message, unsigned flags);

/* Fills sqe except user_data; one submission at a time. */
int NC_prep_send(struct io_uring_sqe *sqe, NC_send_op *op);

/* Call it for every completion.  Returns enum NC_progress, or -1: the send failed, close. */
int NC_send_op_complete(NC_send_op *op, const struct io_uring_cqe *cqe);

/* Returns the bytes of the message passed to the socket so far, without skip. */
size_t NC_send_op_sent(const NC_send_op *op);

/* Frees it; EBUSY while a completion is pending. */
int NC_send_op_close(NC_send_op *op);

/* Frees it although completions were lost with their ring. */
int NC_send_op_abandon(NC_send_op *op);

/* --- registered memory of units, for the caller's io_uring ---------------- */

struct io_uring;

/* Belongs to the thread that opened it, like the ring. */
typedef struct NC_ring_buffers NC_ring_buffers;

/*
 * From now on memory that is often sent from is registered with the ring, whose table of buffers
 * this takes over.  stale may be NULL; otherwise other threads call it when the owner is to call
 * NC_ring_buffers_clear().
 */
NC_ring_buffers *NC_ring_buffers_open(NC_cache *cache, struct io_uring *ring,
				      void (*stale)(void *data), void *data);

/* Unpins memory that the cache has freed. */
int NC_ring_buffers_clear(NC_ring_buffers *buffers);

/* Unpins all; before the ring is closed.  EBUSY while a step that uses it has not completed. */
int NC_ring_buffers_close(NC_ring_buffers *buffers);

/*
 * Selects what the next step sends from.  Returns how many submissions it takes, one after the
 * other: NC_prep_send() prepares one each time.
 */
int NC_send_op_steps(NC_send_op *op, NC_ring_buffers *buffers);

/* --- a sender of the library ---------------------------------------------- */

/* Messages in flight, in order for each socket; thread-safe. */
typedef struct NC_sender NC_sender;

#define NC_SENDER_NO_URING 0x1u /* use epoll even if io_uring is available */

#define NC_SENDER_DEPTH_MAX 65536u

/* The end of one message. */
struct NC_completion {
	void *data;  /* as given to NC_sender_send() */
	size_t sent; /* bytes of the message passed to the socket, without skip */
	int sock_fd;
	int error; /* 0: sent; otherwise an errno */
};

/* depth: limit of messages that are queued and not reaped; 0: 256. */
NC_sender *NC_sender_open(NC_cache *cache, unsigned depth, unsigned flags);

/* Readable when NC_sender_reap() has something to do. */
int NC_sender_fd(NC_sender *sender);

/* Queues a message; header, ranges and texts are copied. */
int NC_sender_send(NC_sender *sender, int sock_fd, const struct NC_send *message, void *data);

/* Starts queued messages; returns the number of completions that are ready. */
int NC_sender_submit(NC_sender *sender);

/*
 * Continues all messages; fills done[] with at most count completions of stride
 * bytes each, returns their number.
 */
int NC_sender_reap(NC_sender *sender, struct NC_completion *done, size_t stride, unsigned count);

/* Cancels the messages of a socket, which complete with ECANCELED; returns their number. */
int NC_sender_cancel(NC_sender *sender, int sock_fd);

/* Cancels all messages and frees the sender; completions that were not reaped are lost. */
int NC_sender_close(NC_sender *sender);

#ifdef __cplusplus
}
#endif

#endif
