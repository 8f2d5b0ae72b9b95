/* SPDX-License-Identifier: MIT */
/*
 * ring.h - the library's io_uring, for sends without a copy.
 *
 * A zero-copy send is answered twice: at once with the bytes taken, and with
 * a notification when the kernel needs the memory no more, which may be after
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
	_Atomic unsigned pending; /* notifications to come */
	bool usable;
	char why[96]; /* not usable: the reason, for people */
};

/*
 * A notification came for token; copied: the kernel had to copy after all.
 * Called under the ring's lock: must not come back to the ring.
 */
typedef void nc_ring_sent(void *context, uint64_t token, bool copied);

/*
 * Sets up an io_uring of the library, with so many entries or as many as the kernel allows.
 * 0, or -errno with the reason in why, for people.
 */
int nc_ring_setup(struct io_uring *uring, unsigned entries, char *why, size_t why_size);

/* Never fails: a ring that cannot be had is not usable and says why. */
void nc_ring_init(struct nc_ring *ring, bool allowed);

/* Notifications that have not come yet are lost; the kernel keeps the pages it needs. */
void nc_ring_fini(struct nc_ring *ring);

/*
 * Sends from memory without copying and without blocking.  Returns bytes
 * taken or -errno; *notify: sent() has been or will be called for token, and
 * until then the memory must not change.  Not for a send that failed.
 */
ssize_t nc_ring_send(struct nc_ring *ring, int socket, const void *data, size_t length, bool more,
		     uint64_t token, bool *notify, nc_ring_sent *sent, void *context);

/* Calls sent() for the notifications that have come; returns their number. */
unsigned nc_ring_reap(struct nc_ring *ring, nc_ring_sent *sent, void *context);

/* Whether notifications are to come. */
static inline bool nc_ring_waits(const struct nc_ring *ring)
{
	return atomic_load_explicit(&ring->pending, memory_order_relaxed) != 0;
}

/* Readable when there is something to reap; -1: not usable. */
int nc_ring_fd(const struct nc_ring *ring);

#endif
