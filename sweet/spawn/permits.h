/* SPDX-License-Identifier: MIT */
/*
 * permits.h - the connections that all loops together may have to the
 * addresses of one pool: a permit for each, which a loop holds as long as it
 * has the connection, also while that is idle.
 *
 * A loop that has requests and no permit for them waits in a list.  A permit
 * that is given back goes to the first in the list.  A loop with an idle
 * connection gets a task to close it for a waiting loop that
 *   - has fewer permits for the address than its share of them: at once;
 *   - has had requests waiting for longer than PERMIT_STALL_MS.
 * A connection for which its own loop has the next request is handed over only
 * to a loop that has begun with none of its requests for that long: they wait
 * behind a long one.  So loops that are all busy keep their connections; where
 * there are more loops than connections, each for PERMIT_TURN_MS, since a new
 * one for each request would cost as much as a short request.
 *
 * Any thread may use a struct permits; a struct permit_user is its loop's.
 */
#ifndef SWEET_PERMITS_H
#define SWEET_PERMITS_H

#include <pthread.h>
#include <stdatomic.h>

#include "event/loop.h"

#define PERMIT_STALL_MS 10u /* as long as makes a worker slow, see POOL_PROCESS_SLOW_MS */
#define PERMIT_TURN_MS 3u   /* that a busy loop keeps a connection at least */

/* For one address.  Under the lock. */
struct permit_part {
	unsigned share;	  /* that a loop gets at once while others do not use theirs */
	unsigned held;	  /* those with a connection, and the next */
	unsigned granted; /* by another loop, and not seen yet */
};

struct permit_user {
	struct permits *permits;
	struct loop *loop;
	unsigned number;
	struct loop_task news;	     /* a permit was granted, or is asked for */
	_Atomic unsigned idle;	     /* connections */
	_Atomic bool waits;	     /* in the list; written under the lock */
	_Atomic uint64_t started_ms; /* when the last of its requests that waited was begun with */
	/* Under the lock: */
	struct permit_user *next;  /* in the list */
	bool urgent;		   /* has had requests waiting for PERMIT_STALL_MS */
	bool posted;		   /* news */
	struct permit_part *parts; /* one an address */
};

struct permits {
	pthread_mutex_t lock;
	bool closed;		  /* nothing is posted to anybody any more */
	_Atomic unsigned waiting; /* in the list; written under the lock */
	struct permit_user *first, **last;
	unsigned place_count, user_count;
	unsigned *free; /* one an address */
	struct permit_user *users;
};

/*
 * total: permits for each address.  The users' loops, their news.run and the
 * shares are the caller's to set before the first is taken.
 */
void permits_init(struct permits *permits, unsigned users, unsigned places, unsigned total);
void permits_clear(struct permits *permits);

/* No news come any more, but what was posted before. */
void permits_close(struct permits *permits);

/* One that was granted, or is free.  False: there is none. */
bool permit_take(struct permit_user *user, unsigned place);

/*
 * It is not used any more; others: it was given up for another loop, although
 * this one may wait.
 */
void permit_give(struct permit_user *user, unsigned place, bool others);

/*
 * The loop has requests that wait, and found no permit: it gets news when it
 * has one.  It stays where it is in the list if it is there.
 */
void permit_wait(struct permit_user *user, uint64_t now_ms);

/* It has waited for PERMIT_STALL_MS. */
void permit_urge(struct permit_user *user);

/* It has begun with a request that waited; it has none left. */
static inline void permit_started(struct permit_user *user, uint64_t now_ms)
{
	atomic_store_explicit(&user->started_ms, now_ms, memory_order_relaxed);
}
void permit_wait_no_more(struct permit_user *user);

/*
 * Whether another loop is to have the connection that a request has left; busy:
 * there is a next one for it.
 */
bool permit_is_wanted(struct permit_user *user, unsigned place, bool busy, uint64_t now_ms);

/* A connection becomes idle: permit_is_wanted() is asked after that.  It is used, or closed. */
static inline void permit_idles(struct permit_user *user)
{
	atomic_fetch_add_explicit(&user->idle, 1, memory_order_seq_cst);
}
static inline void permit_idles_no_more(struct permit_user *user)
{
	atomic_fetch_sub_explicit(&user->idle, 1, memory_order_seq_cst);
}

/*
 * By news.run: begins; after what was granted has been taken and idle
 * connections that are wanted were closed, gives what is left to others.
 */
void permit_news_begin(struct permit_user *user);
void permit_news_end(struct permit_user *user);

/* Its loop runs no more: it gets no news; what it was granted goes to others.  Any thread. */
void permit_user_gone(struct permit_user *user);

#endif
