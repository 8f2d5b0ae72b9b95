/* SPDX-License-Identifier: MIT */
/*
 * loop-uring-send.c - messages that the loop submits on its ring, small ones and those that are
 * sent without a copy: all sends of a turn leave by the system call that waits for the next
 * events.
 *
 * A submission never waits for its socket (NC_SEND_DONTWAIT), so the kernel has sent, or
 * refused, by the time that it has taken the submission.  After a zero-copy send, another
 * completion says when the kernel no longer refers to the memory.  From memory that is
 * registered with the ring, a message is two linked submissions: header and body.  The kernel
 * looks up the descriptor of the second when it starts it, which can be after later submissions:
 * so a descriptor is closed after both have completed, or the body might go to another socket.
 */
#include <errno.h>
#include <liburing.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nabc-async.h>
#include <nabc.h>

#include "base/container.h"
#include "base/list.h"
#include "event/loop-backend.h"
#include "event/loop-uring-internal.h"
#include "event/loop.h"

/*
 * Pending sends: as many as a turn starts.  After a burst of requests their completions are
 * behind those of the whole burst; were there no limit, the responses of all would be in memory
 * at once.
 */
#define PENDING_MAX 64u

/* Attempts to let them complete when the loop ends. */
#define END_TURNS 16u

struct uring_send {
	struct list_node node;	/* in the list of pending, of lent, or of spare ones */
	NC_send_op *op;		/* NULL: none yet; kept for later messages */
	bool steady;		/* it is not used: the kernel reads the message's own header */
	struct loop_send *send; /* NULL: its descriptor was closed */
	unsigned number;	/* of the first submission */
	unsigned steps;		/* submissions: 1, or 2 that are linked */
	int closing;		/* the descriptor to close after these; -1: none */
};

static uint64_t key_of(const struct uring_send *send)
{
	return (uint64_t)TYPE_SEND << URING_TYPE_SHIFT | (uintptr_t)send;
}

static struct uring_send *take(struct uring_state *state)
{
	struct uring_send *taken = list_take(&state->spare, struct uring_send, node);

	return taken ? taken : calloc(1, sizeof(*taken));
}

static void spare(struct uring_state *state, struct uring_send *unused)
{
	list_prepend(&state->spare, &unused->node);
}

static bool open_message(struct uring_send *pending, const struct loop_send *op, unsigned flags)
{
	struct NC_send message = op->message;

	flags |= NC_SEND_OP_UNLINKED;
	message.flags |= NC_SEND_DONTWAIT;
	if (pending->op)
		return NC_send_op_reopen(pending->op, op->fd, &message, flags) == 0;
	pending->op = NC_send_op_open(NULL, op->fd, &message, flags);
	return pending->op != NULL;
}

/* --- registered memory --------------------------------------------------------------- */

static void uring_clear_stale(struct loop_task *task)
{
	struct uring_state *state = container_of(task, struct uring_state, stale.task);

	loop_notice_begin(&state->stale);
	if (state->registered)
		(void)NC_ring_buffers_clear(state->registered);
}

/* Another thread closed a segment of the cache; only this loop's may unpin its memory. */
static void stale(void *data)
{
	struct loop *loop = data;
	struct uring_state *state = loop->state;

	loop_notify(loop, &state->stale);
}

/* By the loop's thread, since the ring is its own. */
static void open_buffers(struct loop *loop)
{
	struct uring_state *state = loop->state;

	state->asked = true;
	state->stale.task.run = uring_clear_stale;
	/* Without them, sends take more CPU time; the library reports why. */
	state->registered = NC_ring_buffers_open(NULL, &state->uring, stale, loop);
}

/* Prepares the submissions of a message; the operation has no step in flight. */
static void prepare(struct loop *loop, struct uring_send *pending, bool zerocopy)
{
	struct uring_state *state = loop->state;
	int steps = 1;

	if (zerocopy && !state->asked)
		open_buffers(loop);
	if (zerocopy && state->registered && uring_reserve(state, 2))
		steps = NC_send_op_steps(pending->op, state->registered);
	pending->steps = steps == 2 ? 2 : 1;
	pending->closing = -1;
	for (unsigned i = 0; i < pending->steps; i++) {
		struct io_uring_sqe *sqe = uring_get_sqe(state);

		if (i == 0)
			pending->number = uring_number(state);
		(void)NC_prep_send(sqe, pending->op);
		sqe->user_data = key_of(pending);
	}
}

/* --- sending ----------------------------------------------------------------------- */

static bool is_steady(const struct loop_send *op)
{
	return op->steady && !op->message.range_count;
}

/* The rest of a message that is one piece of memory, and stays as it is. */
static void prepare_steady(struct loop *loop, struct uring_send *pending,
			   const struct loop_send *op)
{
	struct uring_state *state = loop->state;
	struct io_uring_sqe *sqe = uring_get_sqe(state);

	io_uring_prep_send(sqe, op->fd, (const char *)op->message.header + op->message.skip,
			   op->message.header_length - op->message.skip,
			   MSG_DONTWAIT | MSG_NOSIGNAL);
	sqe->user_data = key_of(pending);
	pending->steps = 1;
	pending->closing = -1;
	pending->number = uring_number(state);
}

bool uring_send(struct loop *loop, struct loop_send *op, unsigned flags)
{
	struct uring_state *state = loop->state;
	struct uring_send *pending;

	if (state->left || state->send_count == PENDING_MAX)
		return false;
	pending = take(state);
	if (!pending)
		return false;
	pending->steady = is_steady(op);
	if (!pending->steady && !open_message(pending, op, flags)) {
		/* The call that sends directly meets the same error, and reports it. */
		spare(state, pending);
		return false;
	}
	pending->send = op;
	if (pending->steady)
		prepare_steady(loop, pending, op);
	else
		prepare(loop, pending, flags & NC_SEND_OP_ZEROCOPY);
	list_prepend(&state->sends, &pending->node);
	state->send_count++;
	loop->fds[op->fd].submitted = pending;
	return true;
}

/* What the loop does next: 0: reports the end, or sends the rest; otherwise -errno. */
static int result_of(int progress)
{
	if (progress < 0)
		return -errno;
	return progress == NC_PROGRESS_FULL ? -EAGAIN : 0;
}

/*
 * The operation has ended, or is given up because the loop sends the rest.  One that the kernel
 * still refers to is kept until it does not; any other must not hold units.
 */
static void retire(struct uring_state *state, struct uring_send *done, int progress)
{
	list_remove(&done->node);
	if (progress != NC_PROGRESS_DONE) {
		if (NC_send_op_close(done->op) < 0) {
			list_prepend(&state->lent, &done->node);
			return;
		}
		done->op = NULL;
	}
	spare(state, done);
}

static void close_after(struct uring_send *done)
{
	if (done->closing >= 0)
		close(done->closing);
	done->closing = -1;
}

/* The kernel has read the memory, or does not want it. */
static void steady_done(struct loop *loop, struct uring_send *done, int result)
{
	struct uring_state *state = loop->state;
	struct loop_send *send = done->send;
	size_t sent = result > 0 ? (size_t)result : 0;

	state->send_count--;
	done->send = NULL;
	list_remove(&done->node);
	spare(state, done);
	if (!send)
		return;
	loop->fds[send->fd].submitted = NULL;
	loop_send_submitted(loop, send, sent, result < 0 && result != -EINTR ? result : 0);
}

void uring_send_done(struct loop *loop, uint64_t user_data, int result, unsigned flags)
{
	const uint64_t mask = (UINT64_C(1) << URING_TYPE_SHIFT) - 1;
	struct uring_state *state = loop->state;
	struct uring_send *done = (struct uring_send *)(uintptr_t)(user_data & mask);
	struct loop_send *send = done->send;
	const bool first = !(flags & IORING_CQE_F_NOTIF);
	struct io_uring_cqe completion = {.res = result, .flags = flags};
	int progress, end;
	size_t sent;

	if (done->steady) {
		steady_done(loop, done, result);
		return;
	}
	/* A withdrawn message must not continue: its descriptor may be another socket now. */
	if (!send && result <= 0 && first)
		completion.res = -ECANCELED;
	progress = NC_send_op_complete(done->op, &completion);
	end = result_of(progress);
	sent = NC_send_op_sent(done->op);
	if (progress == NC_PROGRESS_NEXT)
		return;
	if (first) {
		state->send_count--;
		close_after(done);
	}
	done->send = NULL;
	retire(state, done, progress);
	if (!first || !send)
		return;
	loop->fds[send->fd].submitted = NULL;
	loop_send_submitted(loop, send, sent, end);
}

bool uring_forget_send(struct loop *loop, int fd, bool now)
{
	struct uring_state *state = loop->state;
	struct uring_send *pending = loop->fds[fd].submitted;

	if (!pending)
		return false;
	loop->fds[fd].submitted = NULL;
	pending->send = NULL;
	if (pending->steps == 2) {
		pending->closing = fd;
		return true;
	}
	/*
	 * If the kernel does not take it before the close, it must not take it later.  Memory that
	 * is steady may be used for something else after this.
	 */
	if (now)
		(void)io_uring_submit(&state->uring);
	if (now || pending->steady)
		(void)uring_withdraw(state, pending->number, key_of(pending), key_of(pending));
	return false;
}

/* The kernel did not take these, or may still refer to their memory. */
static void abandon(struct uring_state *state, struct list *list)
{
	struct uring_send *entry;

	while ((entry = list_take(list, struct uring_send, node))) {
		close_after(entry);
		(void)NC_send_op_abandon(entry->op);
		entry->op = NULL;
		spare(state, entry);
	}
}

void uring_end_sends(struct loop *loop)
{
	struct uring_state *state = loop->state;
	struct io_uring_cqe *cqe;

	list_each (struct uring_send, pending, &state->sends, node) {
		if (pending->send)
			loop->fds[pending->send->fd].submitted = NULL;
		pending->send = NULL;
	}
	/* Linked submissions need turns of their own; none waits for its socket. */
	for (unsigned turns = 0; turns < END_TURNS && (turns == 0 || !list_is_empty(&state->sends));
	     turns++) {
		(void)io_uring_submit_and_get_events(&state->uring);
		while ((!list_is_empty(&state->sends) || !list_is_empty(&state->lent)) &&
		       io_uring_peek_cqe(&state->uring, &cqe) == 0) {
			if (cqe->user_data >> URING_TYPE_SHIFT == TYPE_SEND)
				uring_send_done(loop, cqe->user_data, cqe->res, cqe->flags);
			io_uring_cqe_seen(&state->uring, cqe);
		}
	}
	abandon(state, &state->sends);
	abandon(state, &state->lent);
	state->send_count = 0;
	if (state->registered)
		(void)NC_ring_buffers_close(state->registered);
	state->registered = NULL;
}

void uring_free_sends(struct uring_state *state)
{
	list_each (struct uring_send, unused, &state->spare, node) {
		if (unused->op)
			(void)NC_send_op_close(unused->op);
		free(unused);
	}
}
