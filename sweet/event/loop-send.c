/* SPDX-License-Identifier: MIT */
/*
 * loop-send.c - sends of an event loop, for all backends.
 *
 * Results of sends are queued, and reported after an event, one after each, or at the start of
 * the next turn, so no callback runs inside the call that started its operation.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <nabc-async.h>
#include <nabc.h>

#include "base/counter.h"
#include "base/list.h"
#include "event/data-path.h"
#include "event/loop-backend.h"
#include "event/loop-internal.h"
#include "event/loop.h"
#include "event/piece.h"

/*
 * Maximum bytes of one message in one turn of the loop: without it, a client that
 * reads as fast as the server sends would receive a whole large file before any
 * other client is served.  Larger than a body of 1 MB with its head, which is sent
 * at once.
 */
#define TURN_MAX ((size_t)2 << 20)

/*
 * After two large messages in a row that were not: how many more of the connection are not tried.
 * A single one may be refused to be measured.
 */
#define ALONE 7u

/*
 * Maximum number of results reported in one turn, and of their bytes.  Without
 * these, clients that send requests without waiting, and files whose next window is
 * always ready, would delay all other clients.
 */
#define COMPLETED_MAX 256u
#define COMPLETED_BYTES (2 * TURN_MAX)

#define PIECES_MAX 64u /* of a message in memory, for one call */

static void complete(struct loop *loop, struct loop_send *op, int result)
{
	op->result = result;
	list_append(&loop->sent, &op->node);
}

static ssize_t send_by_path(struct loop *loop, const struct loop_send *op)
{
	if (op->pipe)
		return data_path_write(op->fd, &op->message);
	return (op->apart ? loop->path->send_apart : loop->path->send)(op->fd, &op->message);
}

/* Sends header and file, at most one turn's share. */
static ssize_t send_file(struct loop *loop, const struct loop_send *op, bool turn)
{
	struct NC_sendfile message = NC_SENDFILE_INIT();

	message.header = op->message.header;
	message.header_length = op->message.header_length;
	message.file = op->file.fd;
	message.offset = op->file.offset;
	message.length = op->file.length;
	message.flags = op->message.flags & (NC_SEND_MORE | NC_SEND_CLOSE);
	message.skip = op->message.skip;
	if (turn) {
		message.length = message.skip + TURN_MAX - message.header_length;
		message.flags = 0;
	}
	return data_path_file(loop->path, op->fd, &message, op->apart);
}

/* Sends memory, as much of it as one call takes. */
static ssize_t send_pieces(const struct loop_send *op)
{
	struct iovec iov[PIECES_MAX];
	struct msghdr message = {.msg_iov = iov};
	size_t skip = op->message.skip;
	ssize_t sent;

	for (unsigned i = 0; i < op->piece_count && message.msg_iovlen < PIECES_MAX; i++) {
		struct iovec piece = op->pieces[i];

		if (skip >= piece.iov_len) {
			skip -= piece.iov_len;
			continue;
		}
		iov[message.msg_iovlen++] =
			(struct iovec){(char *)piece.iov_base + skip, piece.iov_len - skip};
		skip = 0;
	}
	do {
		sent = sendmsg(op->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent;
}

static ssize_t send_some(struct loop *loop, const struct loop_send *op, bool turn)
{
	if (op->cipher)
		return op->cipher->send(op->cipher, op, TURN_MAX);
	if (op->pieces)
		return send_pieces(op);
	if (op->file.length)
		return send_file(loop, op, turn);
	return send_by_path(loop, op);
}

/*
 * Returns true if less was sent because the file is shorter now, not because the
 * socket is full; the next call reports it.
 */
static bool is_cut(const struct loop_send *op)
{
	struct stat now;

	return op->file.length && fstat(op->file.fd, &now) == 0 &&
	       (uint64_t)now.st_size < op->file.offset + op->file.length;
}

static void wait_for_room(struct loop *loop, struct loop_send *op)
{
	loop->fds[op->fd].send = op;
	loop->backend->await_room(loop, op->fd);
	if (op->waits)
		op->waits(op);
}

static void try_send(struct loop *loop, struct loop_send *op)
{
	size_t total = loop_send_length(op);
	bool long_one = total - op->message.skip > TURN_MAX;
	ssize_t sent = send_some(loop, op, long_one);

	counter_add(&loop->counts.sends, 1);
	if (sent < 0 && errno != EAGAIN) {
		complete(loop, op, -errno);
		return;
	}
	if (sent > 0)
		op->message.skip += (size_t)sent;
	if (op->message.skip == total && sent >= 0 && !(op->cipher && op->cipher->pending)) {
		complete(loop, op, 0);
		return;
	}
	if ((long_one && sent == (ssize_t)TURN_MAX) ||
	    (sent > 0 && ((op->pieces && !op->cipher) || is_cut(op)))) {
		/* The socket may still be writable, but no event would report it. */
		list_append(&loop->turns, &op->node);
		return;
	}
	wait_for_room(loop, op);
}

/*
 * Whether a message can be sent by one operation of the backend: one with options needs calls of
 * its own.  On a socket that is not connected yet, a receive that was submitted before would get
 * the error of connect(2).
 */
static bool can_submit(const struct loop *loop, const struct loop_send *op)
{
	return op->batch && !op->cipher && !op->pieces && loop->backend->send &&
	       loop->path == &data_path_nabc && !op->apart &&
	       !(op->message.flags & ~NC_SEND_COPY) && !op->message.text_count && !op->file.length;
}

/* Returns false if the message is not to be sent together with others. */
static bool submit(struct loop *loop, struct loop_send *op)
{
	size_t length;
	bool submitted;

	if (!can_submit(loop, op))
		return false;
	length = loop_send_length(op);
	if (length <= LOOP_BATCHED_MAX)
		return loop->backend->send(loop, op, 0);
	if (length > TURN_MAX || op->message.flags & NC_SEND_COPY)
		return false;
	if (op->alone) {
		op->alone--;
		return false;
	}
	submitted = loop->backend->send(loop, op, NC_SEND_OP_ZEROCOPY);
	if (!submitted && op->refused)
		op->alone = ALONE;
	op->refused = !submitted;
	return submitted;
}

void loop_send_start(struct loop *loop, struct loop_send *op, int fd)
{
	op->message.size = sizeof(op->message);
	op->message.limit = TURN_MAX;
	op->fd = fd;
	op->result = 0;
	if (submit(loop, op))
		counter_add(&loop->counts.batched, 1);
	else
		try_send(loop, op);
}

void loop_send_submitted(struct loop *loop, struct loop_send *op, size_t sent, int result)
{
	op->message.skip += sent;
	if (result == -EAGAIN)
		wait_for_room(loop, op);
	else if (result == 0 && op->message.skip < loop_send_length(op))
		try_send(loop, op);
	else
		complete(loop, op, result);
}

void loop_send_continue(struct loop *loop, int fd)
{
	struct loop_send *op = loop->fds[fd].send;

	loop->fds[fd].send = NULL;
	if (op)
		try_send(loop, op);
}

bool loop_send_cancel(struct loop *loop, int fd)
{
	bool waits = loop->fds[fd].send != NULL;

	/* The backend may still report writability; then there is nothing to send. */
	loop->fds[fd].send = NULL;
	return waits;
}

/* Removes a descriptor's sends from a list. */
static void forget(struct list *sends, int fd)
{
	list_each (struct loop_send, op, sends, node)
		if (op->fd == fd)
			list_remove(&op->node);
}

/* Reports the oldest result; returns the bytes of its message. */
static size_t report(struct loop *loop)
{
	struct loop_send *op = list_take(&loop->sent, struct loop_send, node);
	size_t bytes = op->message.skip;

	op->sent(op, op->result);
	return bytes;
}

/* Callbacks may start sends that complete at once, so their number in a turn is limited. */
void loop_complete_sends(struct loop *loop)
{
	size_t bytes = 0;

	for (unsigned count = 0;
	     !list_is_empty(&loop->sent) && count < COMPLETED_MAX && bytes < COMPLETED_BYTES;
	     count++)
		bytes += report(loop);
}

void loop_complete_send(struct loop *loop)
{
	if (!list_is_empty(&loop->sent))
		(void)report(loop);
}

/* No callback runs here, so none of the sends is closed meanwhile. */
void loop_take_turns(struct loop *loop)
{
	struct list turns;
	struct loop_send *op;

	list_move(&turns, &loop->turns);
	while ((op = list_take(&turns, struct loop_send, node)))
		try_send(loop, op);
}

void loop_forget_sends(struct loop *loop, int fd)
{
	forget(&loop->sent, fd);
	forget(&loop->turns, fd);
}
