/* SPDX-License-Identifier: MIT */
/*
 * loop-uring-receive.c - the receives of the io_uring loop: armed once, they complete for each piece
 * that comes, in a buffer that the kernel picks from a ring which all connections share.
 */
#include <errno.h>
#include <liburing.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "event/loop-backend.h"
#include "event/loop-uring-internal.h"
#include "event/loop.h"

#define BUFFER_SIZE 2048u
#define BUFFER_GROUP 1

static char *buffer_at(struct uring_state *state, unsigned id)
{
	return state->buffers + state->count * sizeof(struct io_uring_buf) +
	       (size_t)id * BUFFER_SIZE;
}

static void give_buffer(struct uring_state *state, unsigned id)
{
	io_uring_buf_ring_add(state->ring, buffer_at(state, id), BUFFER_SIZE, (unsigned short)id,
			      io_uring_buf_ring_mask(state->count), 0);
	io_uring_buf_ring_advance(state->ring, 1);
}

int uring_open_buffers(struct uring_state *state, unsigned count)
{
	struct io_uring_buf_reg registration = {.ring_entries = count, .bgid = BUFFER_GROUP};
	void *memory;
	int error;

	state->count = count;
	state->mapped = count * (sizeof(struct io_uring_buf) + BUFFER_SIZE);
	memory = mmap(NULL, state->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (memory == MAP_FAILED)
		return -errno;
	state->buffers = memory;
	state->ring = memory;
	registration.ring_addr = (uintptr_t)memory;
	error = io_uring_register_buf_ring(&state->uring, &registration, 0);
	if (error) {
		munmap(memory, state->mapped);
		return error;
	}
	io_uring_buf_ring_init(state->ring);
	for (unsigned id = 0; id < state->count; id++)
		give_buffer(state, id);
	return 0;
}

void uring_free_buffers(struct uring_state *state)
{
	munmap(state->buffers, state->mapped);
}

void uring_prepare_receive(struct io_uring_sqe *sqe, int fd)
{
	io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = BUFFER_GROUP;
}

/*
 * After it has emptied a socket, a receive waits for the next event.  If the
 * connection broke before the bytes were read, which can happen during a pause, no
 * event follows (seen with Linux 6.18).  Therefore this checks for an error.
 */
static void check_error(struct loop *loop, int fd, uint32_t generation, unsigned flags)
{
	struct loop_fd *entry = &loop->fds[fd];
	char byte;

	if (!entry->resumed || entry->generation != generation || !entry->receive ||
	    entry->paused || flags & IORING_CQE_F_SOCK_NONEMPTY)
		return;
	entry->resumed = false;
	if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno != EAGAIN && errno != EINTR)
		loop_received(loop, fd, NULL, -errno);
}

/*
 * The kernel found no buffer: a few connections that send much may have all of them in each turn.
 * So this one gets what came in another way.  Returns -ENOBUFS if nothing did.
 */
static int receive_directly(int fd, char room[BUFFER_SIZE])
{
	ssize_t got = recv(fd, room, BUFFER_SIZE, MSG_DONTWAIT);

	return got >= 0 ? (int)got : errno == EAGAIN || errno == EINTR ? -ENOBUFS : -errno;
}

void uring_received(struct loop *loop, int fd, bool current, int result, unsigned flags)
{
	struct uring_state *state = loop->state;
	struct loop_fd *entry = &loop->fds[fd];
	uint32_t generation = entry->generation;
	bool over = !(flags & IORING_CQE_F_MORE);
	char own[BUFFER_SIZE];
	const char *data = own;

	if (current && over)
		entry->registered = false;
	if (flags & IORING_CQE_F_BUFFER)
		data = buffer_at(state, flags >> IORING_CQE_BUFFER_SHIFT);
	else if (current && result == -ENOBUFS && entry->receive && !entry->paused)
		result = receive_directly(fd, own);
	if (current && result > 0) {
		loop_received(loop, fd, data, result);
		check_error(loop, fd, generation, flags);
	}
	if (flags & IORING_CQE_F_BUFFER)
		give_buffer(state, flags >> IORING_CQE_BUFFER_SHIFT);
	if (current && result <= 0 && result != -ENOBUFS && result != -ECANCELED &&
	    result != -EINTR)
		loop_received(loop, fd, NULL, result);
	/* The table may have been reallocated. */
	entry = &loop->fds[fd];
	/* No buffers, cancelled by a pause that is over, or ended by the kernel. */
	if (current && over && entry->generation == generation && entry->receive &&
	    !entry->paused && !entry->registered)
		uring_arm(loop, fd);
}
