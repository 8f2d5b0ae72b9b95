/* SPDX-License-Identifier: MIT */
/*
 * permits.h - limits the connections of all loops together to the addresses of one
 * pool: each connection needs a permit, which a loop holds as long as the
 * connection exists, also while it is idle.
 *
 * A loop that has requests but no permit waits in a list.  A returned permit goes
 * to the first in the list.  A loop with an idle connection is asked by a task to
 * close it for a waiting loop that
 *   - has fewer permits for the address than its share: at once;
 *   - has had requests waiting for longer than PERMIT_STALL_MS.
 * A connection whose own loop has another request for it is handed over only to a
 * loop that has started none of its requests for that time, because they wait
 * behind a long request.  Thus loops that are all busy keep their connections.  If
 * there are more loops than connections, each loop keeps one for PERMIT_TURN_MS,
 * because a new connection for each request would take as long as a short request.
 *
 * Any thread may use a struct permits; a struct permit_user belongs to its loop.
 */
#ifndef SWEET_PERMITS_H
#define SWEET_PERMITS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "event/loop.h"

#define PERMIT_STALL_MS 10u /* a worker is slow after this, see POOL_PROCESS_SLOW_MS */
#define PERMIT_TURN_MS 3u   /* minimum time that a busy loop keeps a connection */

/* For one address.  Protected by the lock. */
struct permit_part {
	unsigned share;	  /* permits that a loop gets at once while others do not use theirs */
	unsigned held;	  /* with a connection, or about to get one */
	unsigned granted; /* by another loop, and not yet taken */
};

struct permit_user {
	struct permits *permits;
	struct loop *loop;
	unsigned number;
	struct loop_task news;	     /* a permit was granted, or is requested */
	_Atomic unsigned idle;	     /* connections */
	_Atomic bool waits;	     /* in the list; written with the lock held */
	_Atomic uint64_t started_ms; /* when the last waiting request was started */
	/* Protected by the lock: */
	struct list_node node;	   /* in the list */
	bool urgent;		   /* its requests have waited for PERMIT_STALL_MS */
	bool posted;		   /* news is posted */
	struct permit_part *parts; /* one for each address */
};

/* One address, of all loops together.  Protected by the lock. */
struct permit_place {
	unsigned limit;
	int free;  /* negative while more are held than a lower limit permits */
	bool shut; /* it is not used: free ones are not granted */
};

struct permits {
	pthread_mutex_t lock;
	bool closed;		  /* nothing is posted any more */
	_Atomic unsigned waiting; /* users in the list; written with the lock held */
	struct list line;	  /* of the users that wait */
	unsigned place_count, user_count;
	struct permit_place *places;
	struct permit_user *users;
};

/*
 * total: permits for each address.  Before the first permit is taken, the caller
 * must set the users' loops and their news.run.
 */
void permits_init(struct permits *permits, unsigned users, unsigned places, unsigned total);
void permits_clear(struct permits *permits);

/* After this, no news is posted; earlier posts may still arrive. */
void permits_close(struct permits *permits);

/*
 * Sets the permits for an address, at least 1, and the users' shares of them.  With a lower limit,
 * returned permits expire until no more are held.  The number is read with the lock held, so that
 * of two calls at a time the later one counts.
 */
void permits_limit(struct permits *permits, unsigned place, const _Atomic unsigned *limit);

/*
 * An address is not used any more: its permits are not granted, and those without a connection
 * return.  Any thread.
 */
void permit_place_shut(struct permits *permits, unsigned place);
/* It is used again. */
void permit_place_open(struct permits *permits, unsigned place);

/* Reports to each loop that has an idle connection. */
void permits_call_idle(struct permits *permits);

/* Takes a granted or a free permit.  Returns false if there is none. */
bool permit_take(struct permit_user *user, unsigned place);

/* Returns a permit; others: prefer other loops, even if this one waits. */
void permit_give(struct permit_user *user, unsigned place, bool others);

/*
 * Enters the list: the loop has waiting requests and found no permit.  Its news
 * reports a grant.  If it is in the list already, its position does not change.
 */
void permit_wait(struct permit_user *user, uint64_t now_ms);

/* Its requests have waited for PERMIT_STALL_MS. */
void permit_urge(struct permit_user *user);

/* It started a waiting request; and (permit_wait_no_more) none is left. */
static inline void permit_started(struct permit_user *user, uint64_t now_ms)
{
	atomic_store_explicit(&user->started_ms, now_ms, memory_order_relaxed);
}
void permit_wait_no_more(struct permit_user *user);

/*
 * Returns true if another loop should get the connection after a request; busy:
 * this loop has another request for it.
 */
bool permit_is_wanted(struct permit_user *user, unsigned place, bool busy, uint64_t now_ms);

/* A connection becomes idle (check permit_is_wanted() afterwards), or is used or closed again. */
static inline void permit_idles(struct permit_user *user)
{
	atomic_fetch_add_explicit(&user->idle, 1, memory_order_seq_cst);
}
static inline void permit_idles_no_more(struct permit_user *user)
{
	atomic_fetch_sub_explicit(&user->idle, 1, memory_order_seq_cst);
}

/*
 * For news.run: call begin first; then take the granted permits, and close idle
 * connections that are wanted; then end, which gives the remaining permits to
 * others.
 */
void permit_news_begin(struct permit_user *user);
void permit_news_end(struct permit_user *user);

/* The loop has ended: it gets no news, and others get its granted permits.  Any thread. */
void permit_user_gone(struct permit_user *user);

#endif
