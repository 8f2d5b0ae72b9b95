/* SPDX-License-Identifier: MIT */
/*
 * async.h - a sender of the library's own: messages queued for sockets, sent in
 * order, and told when they are over, by a descriptor that any loop can poll.
 *
 * A socket with messages has a queue; only its first message is on its way.
 * Small ones go by the backend in batches where it can; the rest, and all
 * where it cannot, by nc_transmit_send() whenever the socket is writable, so
 * that there is one place that knows about splicing and zero-copy sends.
 * Everything is under the sender's lock.
 */
#ifndef NC_ASYNC_H
#define NC_ASYNC_H

#include "send/send-op.h"

struct nc_send_queue {
	int socket;
	struct nc_send_queue *next; /* with the same hash, or spare */
	struct nc_send_queue *next_ready;
	struct NC_send_op *first, **last;
	bool ready;   /* in the list of those to be started */
	bool started; /* the backend will tell about the first message */
	bool watched; /* epoll: it knows the socket */
};

struct NC_sender {
	struct nc_send_ops *all;
	struct nc_transmit *transmit;
	const struct nc_async_backend *backend;
	void *state; /* the backend's */
	pthread_mutex_t lock;
	int epoll;	/* what the caller polls */
	int news;	/* eventfd in it: there are completions that no event tells of */
	bool announced; /* news is readable */
	unsigned depth;
	unsigned accepted; /* messages not reaped */
	unsigned started;  /* queues that are with the backend */
	struct NC_send_op *done_first, **done_last;
	unsigned done;
	struct nc_send_queue *ready_first, **ready_last;
	struct nc_send_queue *queues, *spare; /* depth of them */
	struct nc_send_queue **buckets;
	unsigned mask;
	char why[96]; /* the backend is epoll: the reason, for people */
};

/* How to learn that a socket has room; the rest is for those that can do more. */
struct nc_async_backend {
	const char *name;
	/* 0, or -errno with the reason in sender->why. */
	int (*open)(struct NC_sender *sender);
	void (*close)(struct NC_sender *sender);
	/* Sends the queue's first message; -errno: declined.  May be NULL. */
	int (*send)(struct NC_sender *sender, struct nc_send_queue *queue);
	/* Waits until the queue's socket is writable, or broken.  0 or -errno. */
	int (*await)(struct NC_sender *sender, struct nc_send_queue *queue);
	/* Cancels the queue.  1: done; 0: a completion follows; -errno: not now. */
	int (*cancel)(struct NC_sender *sender, struct nc_send_queue *queue);
	/* The queue has no more messages.  May be NULL. */
	void (*forget)(struct NC_sender *sender, struct nc_send_queue *queue);
	/* Hands what is prepared to the kernel; 0 or -errno.  May be NULL. */
	int (*submit)(struct NC_sender *sender);
	/* Tells what has happened; wait: sleeps until something has. */
	int (*collect)(struct NC_sender *sender, bool wait);
};

extern const struct nc_async_backend nc_async_uring, nc_async_epoll;

int nc_async_open(struct nc_send_ops *all, struct nc_transmit *transmit, unsigned depth,
		  unsigned flags, struct NC_sender **sender);

/* 0; -EAGAIN: depth messages are not reaped; errors of the message. */
int nc_async_send(struct NC_sender *sender, int socket, const struct NC_send *spec, void *data);

/* Completions that can be reaped, or -errno when nothing could be started. */
int nc_async_submit(struct NC_sender *sender);

int nc_async_reap(struct NC_sender *sender, struct NC_completion *done, unsigned count);

/* Messages that will complete with ECANCELED. */
int nc_async_cancel(struct NC_sender *sender, int socket);

/* Cancels all and waits for that, which is not for the peers. */
void nc_async_close(struct NC_sender *sender);

/* Of one that is open in parts, or closed: gives back what it has, and the sender itself. */
void nc_async_dismantle(struct NC_sender *sender);

/* --- for backends, under the lock ---------------------------------------- */

/* The queue's socket is writable: its first message goes on at the next chance. */
void nc_async_writable_locked(struct NC_sender *sender, struct nc_send_queue *queue);

/* The queue's first message, sent by the backend, completed. */
void nc_async_completed_locked(struct NC_sender *sender, struct nc_send_queue *queue,
			       int32_t result, uint32_t flags);

/* The queue of a socket; NULL: it has no messages. */
struct nc_send_queue *nc_async_send_queue_locked(const struct NC_sender *sender, int socket);

#endif
