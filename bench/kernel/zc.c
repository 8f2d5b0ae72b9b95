// SPDX-License-Identifier: MIT
/*
 * zc.c - io_uring's SEND_ZC from registered buffers, with the best setup that the
 * kernels permit: one issuer, and deferred work done on its request.
 */
#include <liburing.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "guest.h"
#include "kernel.h"

#define ENTRIES 64
#define BUFFERS_MAX 64

static struct io_uring ring;
static char *memory;
static size_t buffer_size;
static unsigned int buffers, next_free;
static unsigned int users[BUFFERS_MAX]; /* sends that the kernel has not completed */

void zc_init(void *from, unsigned int count, size_t size)
{
	struct io_uring_params parameters = {.flags = IORING_SETUP_SINGLE_ISSUER |
						      IORING_SETUP_DEFER_TASKRUN |
						      IORING_SETUP_CQSIZE,
					     .cq_entries = 4096};
	struct iovec vectors[BUFFERS_MAX];

	must(count <= BUFFERS_MAX);
	memory = from;
	buffers = count;
	buffer_size = size;
	next_free = 0;
	memset(users, 0, sizeof(users));
	for (unsigned int i = 0; i < count; i++)
		vectors[i] = (struct iovec){memory + i * size, size};
	must(io_uring_queue_init_params(ENTRIES, &ring, &parameters) == 0);
	must(io_uring_register_buffers(&ring, vectors, count) == 0);
}

/* Reaps available completions; returns whether one was the end of a send. */
static bool reap(void)
{
	struct io_uring_cqe *cqe;
	bool sent = false;

	while (io_uring_peek_cqe(&ring, &cqe) == 0) {
		unsigned int buffer = (unsigned int)cqe->user_data;

		if (!(cqe->flags & IORING_CQE_F_NOTIF)) {
			must(cqe->res == (int)buffer_size);
			sent = true;
		}
		if (!(cqe->flags & IORING_CQE_F_MORE))
			users[buffer]--;
		io_uring_cqe_seen(&ring, cqe);
	}
	return sent;
}

void zc_fini(void)
{
	for (unsigned int i = 0; i < buffers; i++)
		while (users[i]) {
			must(io_uring_submit_and_wait(&ring, 1) >= 0);
			reap();
		}
	io_uring_queue_exit(&ring);
}

unsigned int zc_free(void)
{
	for (;;) {
		for (unsigned int i = 0; i < buffers; i++) {
			unsigned int buffer = (next_free + i) % buffers;

			if (!users[buffer]) {
				next_free = buffer + 1;
				return buffer;
			}
		}
		must(io_uring_submit_and_wait(&ring, 1) >= 0);
		reap();
	}
}

void zc_send(int socket, unsigned int buffer)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	must(sqe != NULL);
	io_uring_prep_send_zc_fixed(sqe, socket, memory + buffer * buffer_size, buffer_size,
				    MSG_WAITALL | MSG_NOSIGNAL, 0, buffer);
	io_uring_sqe_set_data64(sqe, buffer);
	users[buffer]++;
	do
		must(io_uring_submit_and_wait(&ring, 1) >= 0);
	while (!reap());
}
