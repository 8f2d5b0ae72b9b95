/* SPDX-License-Identifier: MIT */
/*
 * loop.h - one thread's event loop: operations that complete.
 *
 * Start an operation, and its callback is called with the result, later and
 * on the loop's thread, never before the starting call has returned.  How
 * that is brought about (io_uring or epoll) is behind a table of functions
 * that is chosen when the loop is opened.  The memory of an operation is the
 * caller's and must last until it completed or its descriptor was closed
 * through loop_close_fd(), after which no callback comes.
 */
#ifndef SWEET_LOOP_H
#define SWEET_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/timer.h"
#include "event/data-path.h"

struct loop;

/* Connections from a listening socket, one callback each, until it is stopped or closed. */
struct loop_accept {
	void (*accepted)(struct loop_accept *op, int fd_or_error);
	void (*stopped)(struct loop_accept *op); /* after loop_accept_stop(), else unused */
	bool single; /* after each connection none, until loop_accept_next() */
};

/*
 * Bytes from a socket, callback after callback, until it is closed.  data is
 * good during the callback only.  length 0: end of stream; below 0: -errno;
 * both are the last.
 */
struct loop_receive {
	void (*received)(struct loop_receive *op, const char *data, int length);
};

/* A range of a file; length 0: none. */
struct loop_file {
	int fd;
	uint64_t offset; /* bytes */
	size_t length;	 /* bytes */
};

/*
 * A message to a socket: header, and ranges of units, or a range of a file, and
 * memory.  Completes once, when all of it was handed over (result 0) or with
 * -errno; -ERANGE: the file is shorter.  message.skip tells how far it is.
 * The units are held by the caller.  A file is sent from the page cache: what
 * is not there yet would hold the loop up.
 */
struct loop_send {
	struct NC_send message; /* whose size is the loop's to set */
	struct loop_file file;	/* in place of ranges and tail */
	struct iovec tail;	/* memory that follows the ranges */
	bool apart;		/* the header by a call of its own */
	bool pipe;		/* fd is one; the message has no flags */
	void (*sent)(struct loop_send *op, int result);
	/* The socket takes no more for now, not for the first time perhaps; may be NULL. */
	void (*waits)(struct loop_send *op);
	int fd;
	int result;
	struct loop_send *next; /* loop's */
};

/* A descriptor that becomes readable, told once for each time that it does. */
struct loop_watch {
	void (*ready)(struct loop_watch *op);
};

/* Work for a loop, posted by any thread. */
struct loop_task {
	void (*run)(struct loop_task *task);
	struct loop_task *next; /* loop's */
};

/* A task that is posted once, however often it is asked for before it runs. */
struct loop_notice {
	struct loop_task task;
	atomic_bool posted;
};

/*
 * Asked before every sleep.  True: there is work already, do not sleep.  It
 * is asked again and again until all hooks say false in one round.
 */
struct loop_hook {
	bool (*before_sleep)(struct loop_hook *hook);
	struct loop_hook *next; /* loop's */
};

enum loop_kind { LOOP_AUTO, LOOP_URING, LOOP_EPOLL };

/* Connections that a loop is to have room for; more come to no harm, but not as fast. */
enum loop_room { LOOP_MANY, LOOP_FEW };

/*
 * why (at least 128 bytes) gets one line about what was chosen.  NULL when the
 * wanted kind cannot be had, or nothing can; why says the reason.
 */
struct loop *loop_open(enum loop_kind kind, enum loop_room room, char *why, size_t why_size);
void loop_close(struct loop *loop);
/* What sends go by, from now on; data_path_nabc if nothing is said. */
void loop_send_by(struct loop *loop, const struct data_path *path);
const char *loop_name(const struct loop *loop);

/* Returns after loop_stop(), which any callback on the loop may call. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* 0 or -errno (no memory for the descriptor). */
int loop_accept_start(struct loop *loop, struct loop_accept *op, int fd);
/*
 * Takes no more from the queue.  What has been taken is told, then stopped()
 * is called, once; the descriptor stays open.
 */
void loop_accept_stop(struct loop *loop, int fd);
/* By accepted() that was told an error, of any accept: no more until loop_accept_next(). */
void loop_accept_rest(struct loop *loop, int fd);
/* The next connection may come to one that rests; twice is fine.  0; -errno: it rests on. */
int loop_accept_next(struct loop *loop, int fd);
int loop_receive_start(struct loop *loop, struct loop_receive *op, int fd);
/* Asks for no more bytes for now; what is on its way may still come. */
void loop_receive_pause(struct loop *loop, int fd);
void loop_receive_resume(struct loop *loop, int fd);
int loop_watch_start(struct loop *loop, struct loop_watch *op, int fd);
/*
 * The same of a stream socket, connected or about to be, or of a pipe, that sends
 * are started on as well.
 */
int loop_watch_socket(struct loop *loop, struct loop_watch *op, int fd);
/* The operation ends; the descriptor stays the caller's. */
void loop_watch_stop(struct loop *loop, int fd);

/* fd is one that a receive or loop_watch_socket() was started on; one send at a time. */
void loop_send_start(struct loop *loop, struct loop_send *op, int fd);

/*
 * Takes back a send that waits for its socket: what message.skip says has left,
 * and nothing more does.  False: it does not wait; it completes.
 */
bool loop_send_cancel(struct loop *loop, int fd);

/* Ends every operation on fd without a callback and closes it. */
void loop_close_fd(struct loop *loop, int fd);

/* It runs before the loop sleeps again. */
void loop_post(struct loop *loop, struct loop_task *task);

/* The same for a notice: by any thread; by its task, before that looks for its reason. */
static inline void loop_notify(struct loop *loop, struct loop_notice *notice)
{
	if (!atomic_exchange(&notice->posted, true))
		loop_post(loop, &notice->task);
}
static inline void loop_notice_begin(struct loop_notice *notice)
{
	atomic_store(&notice->posted, false);
}

void loop_hook_add(struct loop *loop, struct loop_hook *hook);

void loop_timer_start(struct loop *loop, struct timer *timer, unsigned ms,
		      void (*expired)(struct timer *timer));

/* Clocks as of the last time the loop woke up. */
uint64_t loop_now_ms(const struct loop *loop); /* monotonic */
uint64_t loop_now_ns(const struct loop *loop); /* monotonic */

#endif
