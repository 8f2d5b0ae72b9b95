/* SPDX-License-Identifier: MIT */
/*
 * loop-uring-internal.h - what the files of the io_uring backend share: loop-uring.c (the ring;
 * accepts, watches), loop-uring-receive.c (receives) and loop-uring-send.c (sends).
 *
 * Call cycle: loop-uring.c hands the completions of receives and sends to the other two, which get
 * their submissions from loop-uring.c.
 */
#ifndef SWEET_LOOP_URING_INTERNAL_H
#define SWEET_LOOP_URING_INTERNAL_H

#include <liburing.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "event/loop.h"

struct loop;

enum type { TYPE_NONE, TYPE_ACCEPT, TYPE_RECEIVE, TYPE_WATCH, TYPE_ROOM, TYPE_SEND };

struct uring_state {
	struct io_uring uring;
	struct io_uring_buf_ring *ring;
	char *buffers;	/* the ring's memory, then the buffers */
	unsigned count; /* number of buffers */
	size_t mapped;
	bool left; /* the thread that may submit has left the loop */
	struct io_uring_sqe nowhere;
	struct list spare;   /* memory of completed sends, for later ones */
	struct list sends;   /* whose completions are pending */
	unsigned send_count; /* number of these */
	struct list lent;    /* completed, but the kernel still refers to their memory */
	struct NC_ring_buffers *registered; /* registered memory of units, or NULL */
	bool asked;			    /* that was opened, or cannot be */
	struct loop_notice stale;	    /* some must be cleared */
};

/* The type of an operation is in the highest byte of its user_data. */
#define URING_TYPE_SHIFT 56

/* Returns an empty submission; submits the queue if it is full. */
struct io_uring_sqe *uring_get_sqe(struct uring_state *state);

/* Whether the next `count` submissions are handed to the kernel together. */
bool uring_reserve(struct uring_state *state, unsigned count);

/* Returns the number of the submission that uring_get_sqe() has just returned. */
static inline unsigned uring_number(const struct uring_state *state)
{
	return state->uring.sq.sqe_tail - 1;
}

/* Arms what there is for the descriptor: a receive, an accept or a watch. */
void uring_arm(struct loop *loop, int fd);

/*
 * Withdraws the submission with that number and user_data, if the kernel has not taken it
 * yet: it completes without an effect, with `instead` as its user_data.  Returns false if it
 * was taken.
 */
bool uring_withdraw(struct uring_state *state, unsigned number, uint64_t user_data,
		    uint64_t instead);

/* Gives the ring, which is open, a number of receive buffers, a power of two; returns 0 or -errno. */
int uring_open_buffers(struct uring_state *state, unsigned count);
void uring_free_buffers(struct uring_state *state);

/* Makes the submission a receive. */
void uring_prepare_receive(struct io_uring_sqe *sqe, int fd);

/* Handles the completion of a receive; current: not of an earlier connection with that descriptor. */
void uring_received(struct loop *loop, int fd, bool current, int result, unsigned flags);

/* The backend's send(): see loop-backend.h. */
bool uring_send(struct loop *loop, struct loop_send *op, unsigned flags);

/* Handles the completion of a send. */
void uring_send_done(struct loop *loop, uint64_t user_data, int result, unsigned flags);

/*
 * The descriptor is being closed: its pending send is not reported.  now: by a system call, not
 * by an operation that is submitted after the send.  Returns true if the send closes it later.
 */
bool uring_forget_send(struct loop *loop, int fd, bool now);

/* The loop has ended: submits what is left, and ends all sends without a report. */
void uring_end_sends(struct loop *loop);

/* Frees the memory of sends. */
void uring_free_sends(struct uring_state *state);

#endif
