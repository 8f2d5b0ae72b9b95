/* SPDX-License-Identifier: MIT */
/*
 * null-uring.c - null-server on io_uring: accepts and receives are armed once and
 * complete repeatedly.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <liburing.h>

#include "null-server.h"

#define BATCH 64u
#define BUFFERS 256u
#define BUFFER_SIZE 2048u

enum type { TYPE_NONE, TYPE_ACCEPT, TYPE_RECEIVE, TYPE_ROOM, TYPE_SENT };

struct null_ring {
	struct io_uring uring;
	struct io_uring_buf_ring *ring;
	char *buffers;
};

static struct io_uring_sqe *get_sqe(struct null_ring *ring)
{
	struct io_uring_sqe *sqe;

	while (!(sqe = io_uring_get_sqe(&ring->uring)))
		(void)io_uring_submit(&ring->uring);
	return sqe;
}

static void mark(struct io_uring_sqe *sqe, int fd, enum type type)
{
	sqe->user_data = (uint64_t)type << 32 | (unsigned)fd;
}

static void receive(struct null_ring *ring, int fd)
{
	struct io_uring_sqe *sqe = get_sqe(ring);

	io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = 0;
	mark(sqe, fd, TYPE_RECEIVE);
}

static void await_room(struct null_ring *ring, int fd)
{
	struct io_uring_sqe *sqe = get_sqe(ring);

	io_uring_prep_poll_multishot(sqe, fd, POLLOUT);
	mark(sqe, fd, TYPE_ROOM);
}

static void end(struct null_ring *ring, int fd)
{
	struct io_uring_sqe *sqe = get_sqe(ring);

	/* Armed operations would keep the socket open. */
	io_uring_prep_cancel_fd(sqe, fd, IORING_ASYNC_CANCEL_ALL);
	mark(sqe, 0, TYPE_NONE);
	sqe = get_sqe(ring);
	io_uring_prep_close(sqe, fd);
	mark(sqe, 0, TYPE_NONE);
}

static void answer(const struct null_server *server, struct null_ring *ring,
		   struct null_connection *connection, int fd)
{
	struct io_uring_sqe *sqe;
	const char *from;
	size_t length;

	if (server->way != NULL_BATCH) {
		(void)null_answer(server, connection, fd);
		return;
	}
	length = connection->under_way ? 0 : null_next(server, connection, &from);
	if (!length)
		return;
	connection->under_way = true;
	sqe = get_sqe(ring);
	io_uring_prep_send(sqe, fd, from, length, MSG_NOSIGNAL | MSG_WAITALL);
	mark(sqe, fd, TYPE_SENT);
}

static void give_buffer(struct null_ring *ring, unsigned id)
{
	io_uring_buf_ring_add(ring->ring, ring->buffers + (size_t)id * BUFFER_SIZE, BUFFER_SIZE,
			      (unsigned short)id, io_uring_buf_ring_mask(BUFFERS), 0);
	io_uring_buf_ring_advance(ring->ring, 1);
}

static void received(const struct null_server *server, struct null_ring *ring,
		     struct null_connection *connection, int fd, int result, unsigned flags)
{
	if (result > 0)
		null_take(connection,
			  ring->buffers + (size_t)(flags >> IORING_CQE_BUFFER_SHIFT) * BUFFER_SIZE,
			  (size_t)result);
	if (flags & IORING_CQE_F_BUFFER)
		give_buffer(ring, flags >> IORING_CQE_BUFFER_SHIFT);
	if (result == -ECANCELED)
		return;
	if (result <= 0 && result != -ENOBUFS) {
		end(ring, fd);
		return;
	}
	answer(server, ring, connection, fd);
	if (!(flags & IORING_CQE_F_MORE))
		receive(ring, fd);
}

static void accepted(const struct null_server *server, struct null_ring *ring,
		     struct null_connection *connections, int result, unsigned flags)
{
	struct io_uring_sqe *sqe;

	if (result >= 0 && (unsigned)result < NULL_CONNECTIONS) {
		null_begin(server, &connections[result], result);
		receive(ring, result);
		if (server->way == NULL_SPLICE)
			await_room(ring, result);
	} else if (result >= 0) {
		close(result);
	}
	if (flags & IORING_CQE_F_MORE)
		return;
	sqe = get_sqe(ring);
	io_uring_prep_multishot_accept(sqe, server->listener, NULL, NULL,
				       SOCK_NONBLOCK | SOCK_CLOEXEC);
	mark(sqe, server->listener, TYPE_ACCEPT);
}

static void dispatch(const struct null_server *server, struct null_ring *ring,
		     struct null_connection *connections, const struct io_uring_cqe *cqe)
{
	int fd = (int)(uint32_t)cqe->user_data;

	switch ((enum type)(cqe->user_data >> 32)) {
	case TYPE_ACCEPT:
		accepted(server, ring, connections, cqe->res, cqe->flags);
		break;
	case TYPE_RECEIVE:
		received(server, ring, &connections[fd], fd, cqe->res, cqe->flags);
		break;
	case TYPE_ROOM:
		if (cqe->res >= 0)
			answer(server, ring, &connections[fd], fd);
		break;
	case TYPE_SENT:
		connections[fd].under_way = false;
		if (cqe->res < 0)
			break; /* the receive reports the end */
		null_sent(server, &connections[fd], fd, (size_t)cqe->res);
		answer(server, ring, &connections[fd], fd);
		break;
	default:
		break;
	}
}

static int open_ring(struct null_ring *ring)
{
	struct io_uring_params parameters = {.flags = IORING_SETUP_SINGLE_ISSUER |
						      IORING_SETUP_DEFER_TASKRUN |
						      IORING_SETUP_CQSIZE,
					     .cq_entries = 8192};
	struct io_uring_buf_reg registration = {.ring_entries = BUFFERS};
	int error = io_uring_queue_init_params(512, &ring->uring, &parameters);
	size_t head = BUFFERS * sizeof(struct io_uring_buf);
	char *memory;

	if (error)
		return error;
	memory = mmap(NULL, head + (size_t)BUFFERS * BUFFER_SIZE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	ring->ring = (struct io_uring_buf_ring *)(void *)memory;
	ring->buffers = memory + head;
	registration.ring_addr = (uintptr_t)memory;
	error = io_uring_register_buf_ring(&ring->uring, &registration, 0);
	if (error)
		return error;
	io_uring_buf_ring_init(ring->ring);
	for (unsigned id = 0; id < BUFFERS; id++)
		give_buffer(ring, id);
	return 0;
}

void null_uring(const struct null_server *server, struct null_connection *connections)
{
	struct null_ring ring;
	struct io_uring_cqe *cqes[BATCH];
	int error = open_ring(&ring);

	if (!error)
		accepted(server, &ring, connections, -EAGAIN, 0);
	while (error >= 0 || error == -EINTR) {
		unsigned count;

		error = io_uring_submit_and_wait(&ring.uring, 1);
		count = io_uring_peek_batch_cqe(&ring.uring, cqes, BATCH);
		for (unsigned i = 0; i < count; i++)
			dispatch(server, &ring, connections, cqes[i]);
		io_uring_cq_advance(&ring.uring, count);
	}
	fprintf(stderr, "null-server: io_uring: %s\n", strerror(-error));
}
