/* SPDX-License-Identifier: MIT */
/*
 * fastcgi-internal.h - a pool of FastCGI applications as the sources
 * fastcgi*.c see it, and nobody else: fastcgi.c has the pools and the
 * calls' life, fastcgi-request.c finds an application for a call and hands
 * it on, fastcgi-response.c reads what comes back; fastcgi-spawn.c has the applications
 * that the server starts itself.
 *
 * Call cycle: fastcgi-request.c opens a link with the functions of fastcgi-response.c as its
 * owner's, and those call fastcgi-request.c for what becomes of the call and the link.
 */
#ifndef SWEET_FASTCGI_INTERNAL_H
#define SWEET_FASTCGI_INTERNAL_H

#include <assert.h>

#include <glib.h>

#include "backend/gateway.h"
#include "backend/response-stream.h"
#include "base/address.h"
#include "event/sender.h"
#include "spawn/fcgi-link.h"
#include "spawn/permits.h"

struct fastcgi_local;
struct fastcgi_spawn;

/* One address, as one thread sees it; upstream.own. */
struct fastcgi_place {
	struct fastcgi_local *local;
	struct fcgi_link *resting; /* the last that was used is the first */
	unsigned permits;	   /* for links that are about to be opened */
};

struct fastcgi_local {
	struct gateway_pool *pool;
	struct thread *thread;
	struct loop_task end;
	GPtrArray *links; /* all */
	struct permit_user *user;
	struct timer stall; /* since requests wait */
	bool behind;	    /* they do, as far as we know */
	unsigned keep_ms;   /* that a link is used, and rests at most */
	unsigned served;    /* requests, of processes that the server has started */
	struct fastcgi_place *places;
	struct balancer *balancer;
};

struct fastcgi_pool {
	struct fastcgi_spawn *spawn; /* NULL: others have started the applications */
	bool has_members;	     /* processes may join the server's cache */
	_Atomic unsigned leaving;    /* threads that have not let go of it */
	struct loop_task ended;
	struct gateway_pool *pool;
	struct permits permits; /* for links, one a thread's user */
	unsigned count;
	struct fastcgi_local threads[];
};

/* In a call's own part. */
struct fastcgi_call {
	struct response_stream stream; /* must be first */
	struct fcgi_link *link;	       /* NULL: no application has it */
	const struct fcgi_link *last;  /* that had it, while the end of its answer is looked at */
	struct sender sender;	       /* of the answer's beginning */
	struct fcgi_message message;
	struct timer later; /* for news that came too early */
	uint64_t tried;	    /* addresses */
	unsigned attempts;
	unsigned errors; /* bytes of them so far */
	bool repeatable;
	bool asked; /* for a further piece of the body: the first is gone */
	bool deaf;  /* it takes no more of the body */
	bool came;  /* something of the answer */
};

static_assert(sizeof(struct fastcgi_call) <= BACKEND_CALL_OWN, "fits a call");

static inline struct fastcgi_call *fastcgi_call_of(struct backend_call *call)
{
	return (struct fastcgi_call *)(void *)call->own;
}

static inline struct fastcgi_local *fastcgi_local_of(const struct backend_call *call)
{
	struct fastcgi_pool *all = call->pool->own;

	return &all->threads[call->transaction->thread->number];
}

/* Whether the applications are reached by a Unix socket. */
static inline bool fastcgi_is_local(const struct fcgi_link *link)
{
	return ((const struct sockaddr *)&link->upstream->address.address)->sa_family == AF_UNIX;
}

/* Whether calls wait on the thread. */
static inline bool fastcgi_is_behind(const struct fastcgi_local *local)
{
	return local->pool->queues[local->thread->number].first;
}

static inline struct fastcgi_place *fastcgi_place_of(const struct fcgi_link *link)
{
	return link->upstream->own;
}

/* --- fastcgi-request.c --- */

/* By who reads from it, at the end of that.  Its permit is given back. */
void fastcgi_close_link(struct fcgi_link *link);

/* Takes the link from its call. */
void fastcgi_detach(struct fcgi_link *link);

/* Both. */
void fastcgi_drop(struct fcgi_link *link);

/*
 * The link has no call, and waits for one, unless another loop is to have its
 * permit: then it is closed.
 */
void fastcgi_rest(struct fcgi_link *link);
/* It does not wait any more. */
void fastcgi_forget(struct fcgi_link *link);
void fastcgi_idled(struct fcgi_link *link);

/* Its application answers. */
void fastcgi_well(struct fcgi_link *link);

/* A permit has come, or another loop needs one. */
void fastcgi_news(struct loop_task *task);

/* See struct backend_protocol. */
bool fastcgi_submit(struct backend_call *call, const char *block, size_t length);
bool fastcgi_body(struct backend_call *call);

/* The application has all that there was of the body. */
void fastcgi_hungry(struct fcgi_link *link);

/* The link has no answer for its call, which may go elsewhere, and else fails. */
void fastcgi_go_elsewhere(struct fcgi_link *link, const char *fault);

/* The connection is at its end: 0, or an errno, negated. */
void fastcgi_ended(struct fcgi_link *link, int error);

/* --- fastcgi-response.c --- */

extern const struct fcgi_link_owner fastcgi_link_owner;
extern const struct response_stream_source fastcgi_source;

/* --- fastcgi-spawn.c: on the main thread, all on one socket, their descriptor 0 --- */

/*
 * Makes the socket, whose address is for threads to connect to, and starts the
 * pool's processes.  0 or -errno, with the reason in the log; fastcgi_spawn_close()
 * is due either way, if *spawn is not NULL.
 */
int fastcgi_spawn_open(struct fastcgi_spawn **spawn, struct gateway_pool *pool,
		       struct listen_address *address);

/* The processes are at their end: the socket as well. */
void fastcgi_spawn_close(struct fastcgi_spawn *spawn);

/* Whether a unit was made by one of them, or by what they have started; any thread. */
bool fastcgi_spawn_made(const struct gateway_pool *pool, size_t unit);

#endif
