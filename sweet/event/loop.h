/* SPDX-License-Identifier: MIT */
/*
 * loop.h - the event loop of one thread: asynchronous operations.
 *
 * The caller starts an operation, and the loop calls its callback with the result,
 * later and on the loop's thread, never before the starting call has returned.  The
 * mechanism (io_uring or epoll) is a table of functions, chosen when the loop is
 * opened.  The caller owns the memory of an operation, which must last until the
 * operation has completed, or its descriptor was closed with loop_close_fd(); after
 * that no callback is called.
 */
#ifndef SWEET_LOOP_H
#define SWEET_LOOP_H

#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/list.h"
#include "event/piece.h"

struct loop;

/* Accepts connections from a listening socket, one callback each, until stopped or closed. */
struct loop_accept {
	void (*accepted)(struct loop_accept *op, int fd_or_error);
	void (*stopped)(struct loop_accept *op); /* after loop_accept_stop(); else unused */
	bool single; /* pauses after each connection until loop_accept_next() */
};

/*
 * Receives bytes from a socket, with one callback after another, until it is
 * closed. data is valid during the callback only. length 0: end of stream;
 * negative: -errno; both are the last callback.
 */
struct loop_receive {
	void (*received)(struct loop_receive *op, const char *data, int length);
};

struct loop_send;
struct data_path;
struct timer;

/* Encrypts what is sent on a socket. */
struct loop_cipher {
	/*
	 * Takes and sends at most `most` bytes of the message from message.skip on, without
	 * blocking.  Returns the bytes that it has taken, or -1 with errno; EAGAIN: the socket is
	 * full.
	 */
	ssize_t (*send)(struct loop_cipher *cipher, const struct loop_send *op, size_t most);
	bool pending; /* not everything that it has taken is in the socket */
};

/*
 * Maximum bytes of a message that is submitted with others, which saves its system call.  Larger
 * ones are submitted if they are sent without a copy.
 */
#define LOOP_BATCHED_MAX ((size_t)12 << 10)

/*
 * Sends a message to a socket: a header, and ranges of units and texts, or a range of a
 * file.  Completes once: with result 0 when everything was handed over, or with
 * -errno; -ERANGE: the file is shorter. message.skip is the progress.  The caller
 * holds the units.  A file is sent from the page cache; if a part is missing there,
 * the send blocks the loop.
 */
struct loop_send {
	struct NC_send message;	    /* the loop sets its size and its limit */
	struct loop_file file;	    /* instead of ranges and texts */
	struct NC_text text;	    /* for the message, if it has only one */
	const struct iovec *pieces; /* memory instead of all of these; or NULL */
	unsigned piece_count;
	bool apart; /* sends the header with a call of its own */
	bool pipe;  /* fd is a pipe; the message has no flags */
	bool batch; /* may leave together with others; fd is connected */
	/* the header, which is the whole message, stays as it is until sent(), or the close */
	bool steady;
	struct loop_cipher *cipher; /* NULL: the bytes are sent as they are */
	unsigned char
		alone; /* the loop's: large messages to send before it asks the library again */
	bool refused;  /* the loop's: the library refused the last large message */
	void (*sent)(struct loop_send *op, int result);
	/* The socket is full; may be called repeatedly; may be NULL. */
	void (*waits)(struct loop_send *op);
	int fd;
	int result;	       /* what sent() will get; 0 until then */
	struct list_node node; /* the loop's */
};

/* --- loop-bytes.c --- */

/* Returns the bytes of the whole message. */
size_t loop_send_length(const struct loop_send *op);

/*
 * Finds the bytes from `at` on, which is below the length, that are together in memory.  Returns
 * NULL with errno if the message is a range of a file from there on, or its unit cannot be read.
 */
const char *loop_send_run(const struct loop_send *op, size_t at, size_t *run);

/*
 * Copies `most` bytes from `at` on, which the message has; fewer, if its file has become shorter.
 * Returns how many, or -1 with errno; ERANGE: the file has none of them.
 */
ssize_t loop_send_copy(const struct loop_send *op, size_t at, char *room, size_t most);

/* Watches a descriptor; one callback each time that it becomes readable. */
struct loop_watch {
	void (*ready)(struct loop_watch *op);
};

/* Work for a loop, posted by any thread. */
struct loop_task {
	void (*run)(struct loop_task *task);
	struct list_node node; /* the loop's */
};

/* A task that is posted only once, however often it is requested before it runs. */
struct loop_notice {
	struct loop_task task;
	atomic_bool posted;
};

/*
 * Called before every sleep.  Returns true if there is work, also for another hook, so that the
 * loop does not sleep.  The loop calls all hooks again until all of them return false in one round,
 * those that were added last first.
 */
struct loop_hook {
	bool (*before_sleep)(struct loop_hook *hook);
	struct loop_hook *next; /* the loop's */
};

/* What a loop has done; any thread may read it. */
struct loop_counts {
	_Atomic uint64_t waits;	  /* system calls that wait for events, or submit operations */
	_Atomic uint64_t sends;	  /* system calls that send */
	_Atomic uint64_t batched; /* sends that are submitted by a wait, with others */
};

enum loop_kind { LOOP_AUTO, LOOP_URING, LOOP_EPOLL };

/* The expected number of connections; more are possible, but slower. */
enum loop_room { LOOP_MANY, LOOP_FEW };

/*
 * why (at least 128 bytes) receives one line about the choice.  Returns NULL if the
 * requested kind, or any, is unavailable; why has the reason.
 */
struct loop *loop_open(enum loop_kind kind, enum loop_room room, char *why, size_t why_size);
void loop_close(struct loop *loop);
/* Sets the data path of later sends; by default data_path_nabc. */
void loop_send_by(struct loop *loop, const struct data_path *path);
const char *loop_name(const struct loop *loop);
const struct loop_counts *loop_counts(const struct loop *loop);

/* Returns after loop_stop(), which any callback on the loop may call. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Returns 0 or -errno (no memory for the descriptor). */
int loop_accept_start(struct loop *loop, struct loop_accept *op, int fd);
/*
 * Accepts no more connections.  Connections that were already accepted are
 * reported, then stopped() is called once; the descriptor stays open.
 */
void loop_accept_stop(struct loop *loop, int fd);
/* Pauses any accept until loop_accept_next(); accepted() may call it after an error. */
void loop_accept_rest(struct loop *loop, int fd);
/* Continues a paused accept; may be called twice.  Returns 0, or -errno: still paused. */
int loop_accept_next(struct loop *loop, int fd);
int loop_receive_start(struct loop *loop, struct loop_receive *op, int fd);
/* Pauses receiving; bytes in flight may still arrive. */
void loop_receive_pause(struct loop *loop, int fd);
void loop_receive_resume(struct loop *loop, int fd);
int loop_watch_start(struct loop *loop, struct loop_watch *op, int fd);
/*
 * Watches a pipe or a stream socket, connected or connecting, on which sends are
 * started as well.
 */
int loop_watch_socket(struct loop *loop, struct loop_watch *op, int fd);
/* Ends the operation; the caller keeps the descriptor. */
void loop_watch_stop(struct loop *loop, int fd);

/* fd must have a receive or a loop_watch_socket(); one send at a time. */
void loop_send_start(struct loop *loop, struct loop_send *op, int fd);

/*
 * Cancels a send that waits for its socket: the bytes up to message.skip were sent,
 * no others will be.  Returns false if it does not wait; then it completes.
 */
bool loop_send_cancel(struct loop *loop, int fd);

/* Ends every operation on fd without a callback, and closes fd. */
void loop_close_fd(struct loop *loop, int fd);

/* Runs the task before the loop sleeps again. */
void loop_post(struct loop *loop, struct loop_task *task);

/*
 * As loop_post(), for tasks that clients can make many of: one turn of the loop runs at most
 * LOOP_QUEUED_MAX of them, and no further one when it has lasted LOOP_QUEUED_NS, in the order in
 * which they were queued; other events have their turn before the rest.  A task that queues itself
 * again is behind all others.
 */
#define LOOP_QUEUED_MAX 64u
#define LOOP_QUEUED_NS 1000000u
void loop_queue(struct loop *loop, struct loop_task *task);

/*
 * Runs the notice's task before the loop sleeps again; any thread may call it.  The task must call
 * loop_notice_begin() before it checks for the reason.
 */
static inline void loop_notify(struct loop *loop, struct loop_notice *notice)
{
	if (!atomic_exchange(&notice->posted, true))
		loop_post(loop, &notice->task);
}
static inline void loop_notice_begin(struct loop_notice *notice)
{
	/*
	 * Not only a store: this reads what a thread wrote that found the notice posted, so its
	 * reason, too, is seen.  Pairs with the exchange in loop_notify().
	 */
	(void)atomic_exchange(&notice->posted, false);
}

void loop_hook_add(struct loop *loop, struct loop_hook *hook);

void loop_timer_start(struct loop *loop, struct timer *timer, unsigned ms,
		      void (*expired)(struct timer *timer));

/*
 * Some of what has come waits to be processed in a later turn: after the next wait, timers run only up
 * to the time before it came.  waits: after how many they run in any case, if this is called again and
 * again.
 */
void loop_hold_timers(struct loop *loop, unsigned waits);

/* The clock as read when the loop last woke up. */
uint64_t loop_now_ms(const struct loop *loop); /* monotonic */
uint64_t loop_now_ns(const struct loop *loop); /* monotonic */

/* How long the turn has lasted since then, in nanoseconds; reads the clock. */
uint64_t loop_turn_ns(const struct loop *loop);

#endif
