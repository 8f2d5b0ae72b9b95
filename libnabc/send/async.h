/* SPDX-License-Identifier: MIT */
/*
 * async.h - a ring of the library's own: messages queued for sockets, sent in
 * order, and told when they are over, by a descriptor that any loop can poll.
 *
 * A socket with messages has a channel; only its first message is on its way.
 * Small ones go by the backend in batches where it can; the rest, and all
 * where it cannot, by nc_transmit_send() whenever the socket is writable, so
 * that there is one place that knows about splicing and zero-copy sends.
 * Everything is under the ring's lock.
 */
#ifndef NC_ASYNC_H
#define NC_ASYNC_H

#include "send/operation.h"

struct nc_channel {
	int socket;
	struct nc_channel *next; /* with the same hash, or spare */
	struct nc_channel *next_ready;
	struct NC_operation *first, **last;
	bool ready;   /* in the list of those to be started */
	bool started; /* the backend will tell about the first message */
	bool watched; /* epoll: it knows the socket */
};

struct NC_ring {
	struct nc_operations *all;
	struct nc_transmit *transmit;
	const struct nc_async_backend *backend;
	void *state; /* the backend's */
	pthread_mutex_t lock;
	int epoll;	/* what the caller polls */
	int news;	/* eventfd in it: there are completions that no event tells of */
	bool announced; /* news is readable */
	unsigned depth;
	unsigned accepted; /* messages not reaped */
	unsigned started;  /* channels that are with the backend */
	struct NC_operation *done_first, **done_last;
	unsigned done;
	struct nc_channel *ready_first, **ready_last;
	struct nc_channel *channels, *spare; /* depth of them */
	struct nc_channel **buckets;
	unsigned mask;
	char why[96]; /* the backend is epoll: the reason, for people */
};

/* How to learn that a socket has room; the rest is for those that can do more. */
struct nc_async_backend {
	const char *name;
	/* 0, or -errno with the reason in ring->why. */
	int (*open)(struct NC_ring *ring);
	void (*close)(struct NC_ring *ring);
	/* Sends the channel's first message; -errno: declined.  May be NULL. */
	int (*send)(struct NC_ring *ring, struct nc_channel *channel);
	/* Waits until the channel's socket is writable, or broken.  0 or -errno. */
	int (*await)(struct NC_ring *ring, struct nc_channel *channel);
	/* Gives the channel up.  1: done; 0: its end will be told; -errno: not now. */
	int (*cancel)(struct NC_ring *ring, struct nc_channel *channel);
	/* The channel has no more messages.  May be NULL. */
	void (*forget)(struct NC_ring *ring, struct nc_channel *channel);
	/* Hands what is prepared to the kernel; 0 or -errno.  May be NULL. */
	int (*submit)(struct NC_ring *ring);
	/* Tells what has happened; wait: sleeps until something has. */
	int (*collect)(struct NC_ring *ring, bool wait);
};

extern const struct nc_async_backend nc_async_uring, nc_async_epoll;

int nc_async_open(struct nc_operations *all, struct nc_transmit *transmit, unsigned depth,
		  unsigned flags, struct NC_ring **ring);

/* 0; -EAGAIN: depth messages are not reaped; errors of the message. */
int nc_async_send(struct NC_ring *ring, int socket, const struct NC_send *spec, void *data);

/* Completions that can be reaped, or -errno when nothing could be started. */
int nc_async_submit(struct NC_ring *ring);

int nc_async_reap(struct NC_ring *ring, struct NC_completion *done, unsigned count);

/* Messages that will complete with ECANCELED. */
int nc_async_cancel(struct NC_ring *ring, int socket);

/* Cancels all and waits for that, which is not for the peers. */
void nc_async_close(struct NC_ring *ring);

/* Of one that is open in parts, or closed: gives back what it has, and the ring itself. */
void nc_async_dismantle(struct NC_ring *ring);

/* --- for backends, under the lock ---------------------------------------- */

/* The channel's socket is writable: its first message goes on at the next chance. */
void nc_async_writable_locked(struct NC_ring *ring, struct nc_channel *channel);

/* The channel's first message, sent by the backend, completed. */
void nc_async_completed_locked(struct NC_ring *ring, struct nc_channel *channel, int32_t result,
			       uint32_t flags);

/* The channel of a socket; NULL: it has no messages. */
struct nc_channel *nc_async_channel_locked(const struct NC_ring *ring, int socket);

#endif
