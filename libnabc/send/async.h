/* SPDX-License-Identifier: MIT */
/*
 * async.h - the library's own sender: messages are queued for sockets and sent in
 * order; a descriptor that any event loop can poll reports completions.
 *
 * A socket with messages has a queue; only its first message is being sent.  The
 * backend sends small messages in batches if it can.  nc_transmit_send() sends the
 * rest, or all if the backend cannot send, whenever the socket is writable, so that
 * only one place implements splicing and zero-copy sends.  The sender's lock
 * protects everything.
 */
#ifndef NC_ASYNC_H
#define NC_ASYNC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct NC_completion;
struct NC_send;
struct nc_send_ops;
struct nc_transmit;

struct nc_send_queue {
	int socket;
	struct nc_send_queue *next; /* next with the same hash, or next free one */
	struct nc_send_queue *next_ready;
	struct NC_send_op *first, **last;
	bool ready;   /* in the list of queues to start */
	bool started; /* the backend will report about the first message */
	bool watched; /* epoll: the socket is in the set */
};

struct NC_sender {
	struct nc_send_ops *all;
	struct nc_transmit *transmit;
	const struct nc_async_backend *backend;
	void *state; /* of the backend */
	pthread_mutex_t lock;
	int epoll; /* the descriptor that the caller polls */
	/* eventfd in the epoll set, for completions without an event of the backend */
	int news;
	bool announced; /* news is readable */
	unsigned depth;
	unsigned accepted; /* messages not yet reaped */
	unsigned started;  /* queues that the backend is working on */
	struct NC_send_op *done_first, **done_last;
	unsigned done;
	struct nc_send_queue *ready_first, **ready_last;
	struct nc_send_queue *queues, *spare; /* array of depth queues */
	struct nc_send_queue **buckets;
	unsigned mask;
	char why[96]; /* if the backend is epoll: the reason, as text */
};

/*
 * A backend reports when a socket is writable.  The optional functions are for
 * backends that can do more.
 */
struct nc_async_backend {
	const char *name;
	/* Returns 0, or -errno with the reason in sender->why. */
	int (*open)(struct NC_sender *sender);
	void (*close)(struct NC_sender *sender);
	/* Sends the queue's first message; -errno: declined.  May be NULL. */
	int (*send)(struct NC_sender *sender, struct nc_send_queue *queue);
	/* Waits until the queue's socket is writable or broken.  Returns 0 or -errno. */
	int (*await)(struct NC_sender *sender, struct nc_send_queue *queue);
	/*
	 * Cancels the queue.  Returns 1 if done, 0 if a completion follows, -errno
	 * if not possible now.
	 */
	int (*cancel)(struct NC_sender *sender, struct nc_send_queue *queue);
	/* Called when the queue has no more messages.  May be NULL. */
	void (*forget)(struct NC_sender *sender, struct nc_send_queue *queue);
	/* Submits what is prepared to the kernel; returns 0 or -errno.  May be NULL. */
	int (*submit)(struct NC_sender *sender);
	/* Reports all events that have occurred; wait: blocks until one has. */
	int (*collect)(struct NC_sender *sender, bool wait);
};

extern const struct nc_async_backend nc_async_uring, nc_async_epoll;

int nc_async_open(struct nc_send_ops *all, struct nc_transmit *transmit, unsigned depth,
		  unsigned flags, struct NC_sender **sender);

/* Returns 0, -EAGAIN (depth messages are not yet reaped), or errors of the message. */
int nc_async_send(struct NC_sender *sender, int socket, const struct NC_send *spec, void *data);

/* Returns the number of completions that can be reaped, or -errno if nothing could be started. */
int nc_async_submit(struct NC_sender *sender);

int nc_async_reap(struct NC_sender *sender, struct NC_completion *done, unsigned count);

/* Returns the number of messages that will complete with ECANCELED. */
int nc_async_cancel(struct NC_sender *sender, int socket);

/* Cancels all messages and waits for the cancellation, but not for any peer. */
void nc_async_close(struct NC_sender *sender);

/* Frees the sender and what it owns, also if it was only partly opened. */
void nc_async_dismantle(struct NC_sender *sender);

/* --- for backends, with the lock held ------------------------------------------ */

/* The queue's socket is writable: its first message continues at the next submit. */
void nc_async_writable_locked(struct NC_sender *sender, struct nc_send_queue *queue);

/* The backend's send of the queue's first message completed. */
void nc_async_completed_locked(struct NC_sender *sender, struct nc_send_queue *queue,
			       int32_t result, uint32_t flags);

/* Returns the queue of a socket; NULL: it has no messages. */
struct nc_send_queue *nc_async_send_queue_locked(const struct NC_sender *sender, int socket);

#endif
