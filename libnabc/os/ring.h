/* SPDX-License-Identifier: MIT */
/*
 * ring.h - the library's io_uring, for zero-copy sends.
 *
 * A zero-copy send has two completions: at once, with the number of bytes taken,
 * and a notification when the kernel no longer needs the memory, which may be after
 * the peer's acknowledgement.
 */
#ifndef NC_RING_H
#define NC_RING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <liburing.h>

/* Linux 6.2; absent from liburing 2.3's header. */
#ifndef IORING_SEND_ZC_REPORT_USAGE
#define IORING_SEND_ZC_REPORT_USAGE (1u << 3)
#endif
#ifndef IORING_NOTIF_USAGE_ZC_COPIED
#define IORING_NOTIF_USAGE_ZC_COPIED (1u << 31)
#endif

struct nc_ring {
	struct io_uring uring;
	pthread_mutex_t lock;
	_Atomic unsigned pending; /* notifications pending */
	bool usable;
	char why[96]; /* if not usable: the reason, as text */
};

/*
 * Called for the notification of token; copied: the kernel copied the bytes after
 * all.  Called under the ring's lock: must not call the ring.
 */
typedef void nc_ring_sent(void *context, uint64_t token, bool copied);

/*
 * Sets up an io_uring of the library, with that number of entries or as many as the kernel
 * allows.  Returns 0, or -errno with the reason in why, as text.
 */
int nc_ring_setup(struct io_uring *uring, unsigned entries, char *why, size_t why_size);

/* Never fails: if io_uring is unavailable, the ring is not usable and has the reason in why. */
void nc_ring_init(struct nc_ring *ring, bool allowed);

/* Pending notifications are lost; the kernel keeps the pages that it needs. */
void nc_ring_fini(struct nc_ring *ring);

struct nc_ring_piece {
	const void *data;
	size_t length;
	bool more;				    /* MSG_MORE */
	const struct nc_registered_use *registered; /* the same bytes; NULL: not registered */
};

/*
 * Sends from memory without copying and without blocking.  Returns bytes taken or
 * -errno.  *notify: sent() has been or will be called for token, and the memory
 * must not change before; false if the send failed.
 */
ssize_t nc_ring_send(struct nc_ring *ring, int socket, const struct nc_ring_piece *piece,
		     uint64_t token, bool *notify, nc_ring_sent *sent, void *context);

/* Calls sent() for the notifications that have come; returns their number. */
unsigned nc_ring_reap(struct nc_ring *ring, nc_ring_sent *sent, void *context);

/* Whether notifications are pending. */
static inline bool nc_ring_waits(const struct nc_ring *ring)
{
	return atomic_load_explicit(&ring->pending, memory_order_relaxed) != 0;
}

/* Readable when there is something to reap; -1: not usable. */
int nc_ring_fd(const struct nc_ring *ring);

#endif
