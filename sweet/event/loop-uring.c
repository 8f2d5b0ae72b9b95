/* SPDX-License-Identifier: MIT */
/*
 * loop-uring.c - the event loop on io_uring: accepts, receives and watches are
 * armed once and complete repeatedly (multishot).
 *
 * Needs Linux 6.1 (DEFER_TASKRUN, and all other features used here); a trial shows
 * whether the running kernel permits it.
 */
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "event/loop-backend.h"
#include "event/loop-uring-internal.h"
#include "event/loop.h"

/*
 * Completions in a turn: the next turn finishes what they start, so few operations
 * are pending.  While they start little, others follow: a few clients that send much would else
 * have all of the next turns.
 */
#define BATCH 64u
#define BATCHES 4u
#define BATCHES_NS 250000u

/* Indexed by enum loop_room; buffers is a power of two. */
static const struct {
	unsigned submissions, completions, buffers;
} rooms[] = {[LOOP_MANY] = {512, 8192, 256}, [LOOP_FEW] = {32, 128, 16}};

static uint64_t key(const struct loop *loop, int fd, enum type type)
{
	return (uint64_t)type << URING_TYPE_SHIFT |
	       (uint64_t)(loop->fds[fd].generation & 0xffffff) << 32 | (unsigned)fd;
}

/* Makes the calling thread the only one that may submit. */
static void enable(struct uring_state *state)
{
	/* Called directly: liburing 2.3 does not export io_uring_enable_rings(). */
	(void)syscall(SYS_io_uring_register, state->uring.ring_fd, IORING_REGISTER_ENABLE_RINGS,
		      NULL, 0);
}

struct io_uring_sqe *uring_get_sqe(struct uring_state *state)
{
	struct io_uring_sqe *sqe;

	/*
	 * After the loop has ended, requests are discarded; closing the ring ends
	 * all operations.
	 */
	if (state->left)
		return &state->nowhere;
	sqe = io_uring_get_sqe(&state->uring);
	while (!sqe) {
		/* Full: submit the queue.  Errors such as EBUSY are temporary. */
		if (io_uring_submit(&state->uring) == -EBADFD)
			enable(state); /* the queue is full before the loop runs */
		sqe = io_uring_get_sqe(&state->uring);
	}
	return sqe;
}

bool uring_reserve(struct uring_state *state, unsigned count)
{
	if (io_uring_sq_space_left(&state->uring) < count)
		(void)io_uring_submit(&state->uring);
	return io_uring_sq_space_left(&state->uring) >= count;
}

bool uring_withdraw(struct uring_state *state, unsigned number, uint64_t user_data,
		    uint64_t instead)
{
	struct io_uring_sq *queue = &state->uring.sq;
	struct io_uring_sqe *sqe = &queue->sqes[number & queue->ring_mask];

	/* Numbers repeat after a long time; the user_data does not. */
	if (queue->sqe_tail - number > io_uring_sq_ready(&state->uring) ||
	    sqe->user_data != user_data)
		return false;
	/* All of it: io_uring_prep_nop() would leave what only the other request had, such as ioprio. */
	*sqe = (struct io_uring_sqe){.opcode = IORING_OP_NOP, .user_data = instead};
	return true;
}

static int uring_loop_open(struct loop *loop, char *why, size_t why_size)
{
	struct io_uring_params parameters = {
		/* Disabled until enter(): the thread that enables the ring is its only issuer. */
		.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			 IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE |
			 IORING_SETUP_CLAMP,
		.cq_entries = rooms[loop->room].completions,
	};
	struct uring_state *state = calloc(1, sizeof(*state));
	int error = -ENOMEM;

	if (state)
		error = io_uring_queue_init_params(rooms[loop->room].submissions, &state->uring,
						   &parameters);
	if (error) {
		snprintf(why, why_size, "io_uring_setup: %s%s", strerror(-error),
			 error == -EINVAL ? " (needs Linux 6.1)" : "");
		free(state);
		return error;
	}
	error = uring_open_buffers(state, rooms[loop->room].buffers);
	if (error) {
		snprintf(why, why_size, "io_uring buffers: %s", strerror(-error));
		io_uring_queue_exit(&state->uring);
		free(state);
		return error;
	}
	loop->state = state;
	return 0;
}

static void uring_loop_close(struct loop *loop)
{
	struct uring_state *state = loop->state;

	io_uring_queue_exit(&state->uring);
	uring_free_sends(state);
	uring_free_buffers(state);
	free(state);
}

static void uring_enter(struct loop *loop)
{
	enable(loop->state);
}

static void uring_leave(struct loop *loop)
{
	struct uring_state *state = loop->state;

	/* Submits the sends and close operations of the last turn. */
	uring_end_sends(loop);
	state->left = true;
}

void uring_arm(struct loop *loop, int fd)
{
	struct loop_fd *entry = &loop->fds[fd];
	struct io_uring_sqe *sqe = uring_get_sqe(loop->state);

	entry->armed = entry->receive ? TYPE_RECEIVE : entry->accept ? TYPE_ACCEPT : TYPE_WATCH;
	if (entry->receive) {
		uring_prepare_receive(sqe, fd);
	} else if (entry->accept) {
		if (entry->accept->single)
			io_uring_prep_accept(sqe, fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		else
			io_uring_prep_multishot_accept(sqe, fd, NULL, NULL,
						       SOCK_NONBLOCK | SOCK_CLOEXEC);
	} else {
		io_uring_prep_poll_multishot(sqe, fd, POLLIN);
	}
	sqe->user_data = key(loop, fd, (enum type)entry->armed);
	entry->number = uring_number(loop->state);
	entry->registered = true;
}

static int uring_begin(struct loop *loop, int fd)
{
	uring_arm(loop, fd);
	return 0;
}

static void cancel(struct loop *loop, uint64_t user_data)
{
	struct io_uring_sqe *sqe = uring_get_sqe(loop->state);

	io_uring_prep_cancel64(sqe, user_data, 0);
	sqe->user_data = TYPE_NONE;
}

/* The single accept is over; an error ends a multishot accept, too. */
static void uring_rest(struct loop *loop, int fd)
{
	(void)loop;
	(void)fd;
}

static void uring_stop_accept(struct loop *loop, int fd)
{
	/* If it is not armed, it is being dispatched, which reports the stop. */
	if (loop->fds[fd].registered)
		cancel(loop, key(loop, fd, TYPE_ACCEPT));
}

static void uring_pause(struct loop *loop, int fd)
{
	struct loop_fd *entry = &loop->fds[fd];
	uint64_t user_data = key(loop, fd, TYPE_RECEIVE);

	if (!entry->registered)
		return;
	/* Resumed in this turn: it has not received yet, and shall not. */
	if (uring_withdraw(loop->state, entry->number, user_data, TYPE_NONE))
		entry->registered = false;
	else
		cancel(loop, user_data);
}

static void uring_resume(struct loop *loop, int fd)
{
	loop->fds[fd].resumed = true;
	/* If its cancellation is pending, uring_received() arms it again afterwards. */
	if (!loop->fds[fd].registered)
		uring_arm(loop, fd);
}

static void uring_unwatch(struct loop *loop, int fd)
{
	if (loop->fds[fd].registered)
		cancel(loop, key(loop, fd, TYPE_WATCH));
	loop->fds[fd].registered = false;
}

static void uring_await_room(struct loop *loop, int fd)
{
	struct io_uring_sqe *sqe;

	/* The first send that waits arms it for all later ones. */
	if (loop->fds[fd].polled)
		return;
	sqe = uring_get_sqe(loop->state);
	io_uring_prep_poll_multishot(sqe, fd, POLLOUT);
	sqe->user_data = key(loop, fd, TYPE_ROOM);
	loop->fds[fd].polled = true;
}

static void uring_close_fd(struct loop *loop, int fd)
{
	struct uring_state *state = loop->state;
	struct loop_fd *entry = &loop->fds[fd];
	bool now = state->left || (!entry->registered && !entry->polled);
	bool later = uring_forget_send(loop, fd, now);
	struct io_uring_sqe *sqe;

	entry->resumed = false;
	if (now) {
		if (!later)
			close(fd);
		return;
	}
	/*
	 * Cancel before the close: armed operations keep the file open, and thus
	 * delay its end.  Cancel by key, for which the kernel has a hash table: to
	 * cancel by descriptor, it would search the operations of all descriptors.
	 */
	if (entry->registered)
		cancel(loop, key(loop, fd, (enum type)entry->armed));
	if (entry->polled)
		cancel(loop, key(loop, fd, TYPE_ROOM));
	entry->registered = false;
	entry->polled = false;
	if (later)
		return;
	sqe = uring_get_sqe(state);
	io_uring_prep_close(sqe, fd);
	sqe->user_data = TYPE_NONE;
}

static void on_accept(struct loop *loop, int fd, bool current, int result, unsigned flags)
{
	struct loop_accept *op = loop->fds[fd].accept;
	uint32_t generation = loop->fds[fd].generation;

	if (!current || !op) {
		if (result >= 0)
			close(result);
		return;
	}
	if (!(flags & IORING_CQE_F_MORE))
		loop->fds[fd].registered = false;
	if (result >= 0 || (result != -ECANCELED && result != -EINTR && result != -ECONNABORTED))
		loop_accepted(loop, fd, result);
	if (loop->fds[fd].generation != generation || loop->fds[fd].registered ||
	    loop->fds[fd].resting)
		return;
	if (loop->fds[fd].stopping)
		loop_accept_stopped(loop, fd);
	else
		uring_arm(loop, fd);
}

static void on_watch(struct loop *loop, int fd, bool current, unsigned flags)
{
	struct loop_watch *op = loop->fds[fd].watch;
	uint32_t generation = loop->fds[fd].generation;

	if (!current || !op)
		return;
	if (!(flags & IORING_CQE_F_MORE))
		loop->fds[fd].registered = false;
	op->ready(op);
	if (loop->fds[fd].generation == generation && loop->fds[fd].watch &&
	    !loop->fds[fd].registered)
		uring_arm(loop, fd);
}

static void dispatch(struct loop *loop, uint64_t user_data, int result, unsigned flags)
{
	int fd = (int)(uint32_t)user_data;
	enum type type = (enum type)(user_data >> URING_TYPE_SHIFT);
	bool current;

	if (type == TYPE_NONE)
		return;
	if (type == TYPE_SEND) {
		uring_send_done(loop, user_data, result, flags);
		return;
	}
	current = (loop->fds[fd].generation & 0xffffff) == (user_data >> 32 & 0xffffff);
	switch (type) {
	case TYPE_RECEIVE:
		uring_received(loop, fd, current, result, flags);
		break;
	case TYPE_ACCEPT:
		on_accept(loop, fd, current, result, flags);
		break;
	case TYPE_WATCH:
		on_watch(loop, fd, current, flags);
		break;
	default:
		if (current) {
			if (!(flags & IORING_CQE_F_MORE))
				loop->fds[fd].polled = false;
			loop_send_continue(loop, fd);
		}
	}
}

/*
 * Whether more completions may come of what is there already: the kernel receives from as many
 * sockets in one call as it likes.
 */
static bool has_more(const struct uring_state *state)
{
	return *state->uring.sq.kflags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

/* Returns whether there may be more. */
static bool dispatch_batch(struct loop *loop)
{
	struct uring_state *state = loop->state;
	struct io_uring_cqe *cqes[BATCH], copies[BATCH];
	unsigned count = io_uring_peek_batch_cqe(&state->uring, cqes, BATCH);

	for (unsigned i = 0; i < count; i++)
		copies[i] = *cqes[i];
	io_uring_cq_advance(&state->uring, count);
	for (unsigned i = 0; i < count; i++) {
		dispatch(loop, copies[i].user_data, copies[i].res, copies[i].flags);
		loop_complete_send(loop);
	}
	return count == BATCH;
}

static bool uring_loop_wait(struct loop *loop, int timeout)
{
	struct uring_state *state = loop->state;
	struct __kernel_timespec when = {.tv_sec = timeout / 1000,
					 .tv_nsec = timeout % 1000 * 1000000L};
	struct io_uring_cqe *first;
	unsigned batches = BATCHES;
	bool more;
	int error;

	if (timeout > 0)
		error = io_uring_submit_and_wait_timeout(&state->uring, &first, 1, &when, NULL);
	else if (timeout < 0)
		error = io_uring_submit_and_wait(&state->uring, 1);
	else
		error = io_uring_submit_and_get_events(&state->uring);
	loop_tick(loop);
	more = (error < 0 && error != -ETIME) || has_more(state);
	do
		loop->again = dispatch_batch(loop);
	while (loop->again && --batches && loop_turn_ns(loop) < BATCHES_NS);
	return !(more || loop->again);
}

const struct loop_backend loop_uring = {
	.name = "io_uring",
	.open = uring_loop_open,
	.close = uring_loop_close,
	.enter = uring_enter,
	.leave = uring_leave,
	.begin = uring_begin,
	.rest = uring_rest,
	.stop_accept = uring_stop_accept,
	.pause = uring_pause,
	.resume = uring_resume,
	.unwatch = uring_unwatch,
	.send = uring_send,
	.await_room = uring_await_room,
	.close_fd = uring_close_fd,
	.wait = uring_loop_wait,
};
