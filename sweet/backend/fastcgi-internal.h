/* SPDX-License-Identifier: MIT */
/*
 * fastcgi-internal.h - a pool of FastCGI applications; private to the sources fastcgi*.c: fastcgi.c
 * has the pools and the life of a call, fastcgi-request.c chooses an application for a call and
 * sends the request, fastcgi-response.c reads the response, fastcgi-spawn.c has the applications
 * that the server starts itself.
 *
 * Call cycle: fastcgi-request.c opens a link with callbacks in fastcgi-response.c, and those call
 * fastcgi-request.c to detach the call and to close or keep the link.
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

/* One address, as one thread sees it; stored in upstream.own. */
struct fastcgi_place {
	struct fastcgi_local *local;
	struct fcgi_link *resting; /* idle links, the last used first */
	unsigned permits;	   /* taken for links that will be opened */
};

struct fastcgi_local {
	struct gateway_pool *pool;
	struct thread *thread;
	struct loop_task end;
	GPtrArray *links; /* all links */
	struct permit_user *user;
	struct timer stall; /* runs while requests wait */
	bool behind;	    /* requests wait, as far as known */
	unsigned keep_ms;   /* ms that a link may be used, and may be idle */
	unsigned served;    /* requests to processes that the server has started */
	struct fastcgi_place *places;
	struct balancer *balancer;
};

struct fastcgi_pool {
	struct fastcgi_spawn *spawn; /* NULL: the server has not started the applications */
	bool has_members;	     /* processes may attach to the server's cache */
	_Atomic unsigned leaving;    /* threads that still use the pool */
	struct loop_task ended;
	struct gateway_pool *pool;
	struct permits permits; /* for links; each thread is one user */
	unsigned count;
	struct fastcgi_local threads[];
};

/* Lies in backend_call.own. */
struct fastcgi_call {
	struct response_stream stream; /* must be first */
	struct fcgi_link *link;	       /* NULL: no application has the call */
	const struct fcgi_link *last;  /* its last link, while the response's end is processed */
	struct sender sender;	       /* process that wrote the beginning of the response */
	struct fcgi_message message;
	struct timer later; /* reports a failure that came too early */
	uint64_t tried;	    /* addresses, one bit each */
	unsigned attempts;
	unsigned errors; /* bytes of error output so far */
	bool repeatable;
	bool asked;	      /* a further piece of the body is requested: the first is gone */
	bool stopped_reading; /* the application reads no more of the body */
	bool came;	      /* the response has begun */
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

static inline bool fastcgi_is_local(const struct fcgi_link *link)
{
	return ((const struct sockaddr *)&link->upstream->address.address)->sa_family == AF_UNIX;
}

/* Whether calls are queued on the thread. */
static inline bool fastcgi_is_behind(const struct fastcgi_local *local)
{
	return local->pool->queues[local->thread->number].first;
}

static inline struct fastcgi_place *fastcgi_place_of(const struct fcgi_link *link)
{
	return link->upstream->own;
}

/* --- fastcgi-request.c --- */

/* Closes the link, after the current read if there is one, and returns its permit. */
void fastcgi_close_link(struct fcgi_link *link);

/* Separates the link from its call. */
void fastcgi_detach(struct fcgi_link *link);

/* Detaches and closes the link. */
void fastcgi_drop(struct fcgi_link *link);

/*
 * Keeps the link, which has no call, for the next call.  If another thread needs its permit, closes
 * it.
 */
void fastcgi_rest(struct fcgi_link *link);
/* Removes the link from the idle links. */
void fastcgi_forget(struct fcgi_link *link);
void fastcgi_idled(struct fcgi_link *link);

/* The application of the link responds. */
void fastcgi_well(struct fcgi_link *link);

/* A permit is available, or another thread needs one. */
void fastcgi_news(struct loop_task *task);

/* See struct backend_protocol. */
bool fastcgi_submit(struct backend_call *call, const char *block, size_t length);
bool fastcgi_body(struct backend_call *call);

/* The application has read all of the body that has come. */
void fastcgi_drained(struct fcgi_link *link);

/* The link failed before the response began: the call goes to another address or fails. */
void fastcgi_go_elsewhere(struct fcgi_link *link, const char *fault);

/* The connection has ended. error: 0 or a negative errno. */
void fastcgi_ended(struct fcgi_link *link, int error);

/* --- fastcgi-response.c --- */

extern const struct fcgi_link_owner fastcgi_link_owner;
extern const struct response_stream_source fastcgi_source;

/* --- fastcgi-spawn.c: on the main thread, all on one socket, their descriptor 0 --- */

/*
 * Creates the socket, sets the address for threads to connect to, and starts the pool's processes.
 * Returns 0 or -errno, with the reason in the log.  If *spawn is not NULL, the caller has to call
 * fastcgi_spawn_close() in both cases.
 */
int fastcgi_spawn_open(struct fastcgi_spawn **spawn, struct gateway_pool *pool,
		       struct listen_address *address);

/* The processes have ended: closes the socket as well. */
void fastcgi_spawn_close(struct fastcgi_spawn *spawn);

/* Whether one of the processes, or a descendant of one, made the unit; any thread. */
bool fastcgi_spawn_made(const struct gateway_pool *pool, size_t unit);

#endif
