/* SPDX-License-Identifier: MIT */
/*
 * ring.c - IORING_OP_SEND_ZC on a small ring that the threads of the process share
 * under one lock; only large sends to other machines use it.  liburing 2.3 suffices
 * to build it; missing features of the running kernel are detected at init.
 */
#include <errno.h>
#include <nabc.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/descriptor.h"
#include "os/registered.h"
#include "os/ring.h"

#define ENTRIES 64u

static int probe(struct nc_ring *ring)
{
	struct io_uring_probe *found = io_uring_get_probe_ring(&ring->uring);
	int supported;

	if (!found)
		return 0;
	supported = io_uring_opcode_supported(found, IORING_OP_SEND_ZC);
	io_uring_free_probe(found);
	return supported;
}

/* What to change, if that is known. */
static const char *hint(int error)
{
	if (error == -ENOMEM)
		return " (raise RLIMIT_MEMLOCK)";
	if (error == -EPERM)
		return " (kernel.io_uring_disabled)";
	return "";
}

/* See descriptor.h. */
static int leave_standard(struct io_uring *uring, char *why, size_t why_size)
{
	int fd = nc_descriptor_copy(uring->ring_fd);

	if (fd < 0) {
		snprintf(why, why_size, "io_uring_setup: %s", strerror(-fd));
		io_uring_queue_exit(uring);
		return fd;
	}
	close(uring->ring_fd);
	uring->ring_fd = uring->enter_ring_fd = fd;
	return 0;
}

int nc_ring_setup(struct io_uring *uring, unsigned entries, char *why, size_t why_size)
{
	int error = io_uring_queue_init(entries, uring, IORING_SETUP_CLAMP);

	if (error < 0)
		snprintf(why, why_size, "io_uring_setup: %s%s", strerror(-error), hint(error));
	else if (uring->ring_fd <= STDERR_FILENO)
		error = leave_standard(uring, why, why_size);
	return error;
}

void nc_ring_init(struct nc_ring *ring, bool allowed)
{
	char why[80];

	memset(ring, 0, sizeof(*ring));
	pthread_mutex_init(&ring->lock, NULL);
	if (!allowed) {
		snprintf(ring->why, sizeof(ring->why), "not used: disabled by the program");
		return;
	}
	if (nc_ring_setup(&ring->uring, ENTRIES, why, sizeof(why)) < 0) {
		snprintf(ring->why, sizeof(ring->why), "not used: %s", why);
		return;
	}
	if (!probe(ring)) {
		io_uring_queue_exit(&ring->uring);
		snprintf(ring->why, sizeof(ring->why),
			 "not used: this kernel has no IORING_OP_SEND_ZC (Linux 6.0)");
		return;
	}
	ring->usable = true;
	snprintf(ring->why, sizeof(ring->why), "used");
}

void nc_ring_fini(struct nc_ring *ring)
{
	/* Closing cancels nothing: the kernel keeps the pages of unacknowledged sends. */
	if (ring->usable)
		io_uring_queue_exit(&ring->uring);
	pthread_mutex_destroy(&ring->lock);
}

/* The present send: sends are submitted one at a time, under the lock. */
struct ring_send {
	uint64_t token;
	ssize_t result;
	bool done, notify; /* result is valid; a notification is pending */
};

/* Handles all completions; sending may be NULL. */
static unsigned reap_locked(struct nc_ring *ring, struct ring_send *sending, nc_ring_sent *sent,
			    void *context)
{
	struct io_uring_cqe *cqe;
	unsigned count = 0;

	while (io_uring_peek_cqe(&ring->uring, &cqe) == 0) {
		uint64_t token = cqe->user_data;
		uint32_t flags = cqe->flags;
		int32_t value = cqe->res;

		io_uring_cqe_seen(&ring->uring, cqe);
		if (!(flags & IORING_CQE_F_NOTIF)) {
			if (!sending || token != sending->token)
				continue;
			sending->done = true;
			sending->result = value;
			sending->notify = flags & IORING_CQE_F_MORE;
			if (sending->notify)
				atomic_fetch_add_explicit(&ring->pending, 1, memory_order_relaxed);
			continue;
		}
		atomic_fetch_sub_explicit(&ring->pending, 1, memory_order_relaxed);
		if (sending && sending->done && sending->token == token && sending->result < 0) {
			/* The notification of a send that failed. */
			sending->notify = false;
			continue;
		}
		sent(context, token, (uint32_t)value & IORING_NOTIF_USAGE_ZC_COPIED);
		count++;
	}
	return count;
}

/*
 * A submission that the kernel did not take remains in the queue, and would be
 * submitted with the next one, when its bytes have already been sent another way.
 */
static void retract_locked(struct io_uring_sqe *sqe)
{
	/* All of it: io_uring_prep_nop() would leave what only the send had, such as ioprio. */
	*sqe = (struct io_uring_sqe){.opcode = IORING_OP_NOP};
}

/* Returns 0, or -errno if nothing was submitted. */
static int prepare_locked(struct nc_ring *ring, int socket, const struct nc_ring_piece *piece,
			  uint64_t token, struct io_uring_sqe **prepared)
{
	int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (piece->more ? MSG_MORE : 0);
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
	int error;

	if (!sqe)
		return -ENOBUFS;
	io_uring_prep_send_zc(sqe, socket, piece->data, piece->length, flags,
			      IORING_SEND_ZC_REPORT_USAGE);
	sqe->user_data = token;
	error = piece->registered ? nc_registered_bind(piece->registered, sqe) : 0;
	if (error)
		retract_locked(sqe);
	*prepared = sqe;
	return error;
}

ssize_t nc_ring_send(struct nc_ring *ring, int socket, const struct nc_ring_piece *piece,
		     uint64_t token, bool *notify, nc_ring_sent *sent, void *context)
{
	struct ring_send sending = {.token = token};
	struct io_uring_sqe *sqe;
	int error;

	pthread_mutex_lock(&ring->lock);
	error = prepare_locked(ring, socket, piece, token, &sqe);
	if (error) {
		pthread_mutex_unlock(&ring->lock);
		*notify = false;
		return error;
	}
	/* A failed send has nothing in flight: its notification comes at once. */
	while (!sending.done || (sending.notify && sending.result < 0)) {
		int submitted = io_uring_submit_and_wait(&ring->uring, 1);

		(void)reap_locked(ring, &sending, sent, context);
		/* What the kernel took has completed by then, even if waiting failed. */
		if (submitted < 0 && submitted != -EINTR && io_uring_sq_ready(&ring->uring)) {
			retract_locked(sqe);
			sending.result = submitted;
			break;
		}
	}
	pthread_mutex_unlock(&ring->lock);
	*notify = sending.notify;
	return sending.result;
}

unsigned nc_ring_reap(struct nc_ring *ring, nc_ring_sent *sent, void *context)
{
	unsigned count;

	if (!ring->usable || atomic_load_explicit(&ring->pending, memory_order_relaxed) == 0)
		return 0;
	pthread_mutex_lock(&ring->lock);
	count = reap_locked(ring, NULL, sent, context);
	pthread_mutex_unlock(&ring->lock);
	return count;
}

int nc_ring_fd(const struct nc_ring *ring)
{
	return ring->usable ? ring->uring.ring_fd : -1;
}
