/* SPDX-License-Identifier: MIT */
/*
 * upstream-internal.h - a pool of applications with sockets, by FastCGI or HTTP; private to
 * upstream-pool.c, which has the pools and the life of a call, upstream-request.c, which chooses an
 * application for a call and sends the request, upstream-names.c, for addresses that are names,
 * upstream-waiting.c, about links that no application has accepted yet and calls that have no link,
 * upstream-response.c, which reads the response,
 * upstream-tunnel.c, for connections that switch to another protocol, and the protocols:
 * fastcgi-response.c, fastcgi-spawn.c, which has the applications that the server starts itself, and
 * http-response.c.
 *
 * Call cycle: upstream-request.c opens a link with callbacks in upstream-response.c; these call the
 * protocol to read what has come, and upstream-request.c to detach the call and to close or keep
 * the link.
 */
#ifndef SWEET_UPSTREAM_INTERNAL_H
#define SWEET_UPSTREAM_INTERNAL_H

#include <assert.h>

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "backend/response-stream.h"
#include "base/address.h"
#include "base/balancer.h"
#include "base/container.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/timer.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "event/sender.h"
#include "gateway/tunnel-limits.h"
#include "upstream/permits.h"
#include "upstream/upstream-link.h"
#include "upstream/upstream-table.h"

struct upstream_channel;
struct upstream_names;
struct capacity;
struct fastcgi_spawn;
struct limited_client;
struct read_buffer;

/* What differs between FastCGI and HTTP. */
struct upstream_wire {
	struct upstream_link_owner owner;
	/* Makes the request of a call, and judges whether it may be sent twice.  0 or -errno. */
	int (*make)(struct backend_call *call, struct slice block);
	/* The link begins to read the response to a call. */
	void (*begin)(struct upstream_link *link, struct backend_call *call);
	/* Processes the buffer.  Returns false if the link has no call any more. */
	bool (*take)(struct upstream_link *link, struct read_buffer *buffer);
	/* The connection has ended.  Returns why the response is incomplete; NULL: it is not. */
	const char *(*ended)(const struct upstream_link *link);
	void (*clear)(struct upstream_link *link); /* it closes; may be NULL */
	/* A request that was sent is repeated only if the application has closed a kept link. */
	bool careful;
	/* An application that closes the link after a response has said so in it. */
	bool announces;
};

/* One address, as one thread sees it; stored in upstream.own. */
struct upstream_place {
	struct upstream_channel *channel;
	struct list resting;	   /* idle links, the last used first */
	struct capacity *capacity; /* of all threads; NULL: it is known */
	struct list line; /* links that the application has not accepted, as far as known */
	bool measured;	  /* usual is that of a response, or of several */
	unsigned usual;	  /* time until a response begins, see upstream-waiting.c */
	unsigned links;	  /* all */
	unsigned permits; /* taken for links that will be opened */
	bool keeps;	  /* a link was used twice, and the application has closed none since */
};

/* A channel: one thread's part of a pool, with its links. */
struct upstream_channel {
	struct gateway_pool *pool;
	struct thread *thread;
	struct loop_task end;
	struct loop_notice addresses; /* of names have changed */
	bool ended;		      /* the thread; the main thread's */
	GPtrArray *links;	      /* all links */
	struct permit_user *user;
	struct timer stall; /* runs while requests wait */
	struct timer look;  /* runs while links wait */
	bool behind;	    /* requests wait, as far as known */
	bool looks;	    /* look runs */
	unsigned keep_ms;   /* ms that a link may be used, and may be idle */
	unsigned served;    /* requests to processes that the server has started */
	struct upstream_place *places;
	struct balancer *balancer;
};

struct upstream_pool {
	const struct upstream_wire *wire;
	struct fastcgi_spawn *spawn;  /* NULL: the server has not started the applications */
	struct upstream_names *names; /* NULL: all addresses are fixed */
	struct upstream_table table;
	bool has_members;	  /* processes may attach to the server's cache */
	_Atomic unsigned leaving; /* threads that still use the pool */
	struct loop_task ended;
	struct gateway_pool *pool;
	struct permits permits;	     /* for links; each thread is one user */
	struct capacity *capacities; /* one for each address; or NULL */
	unsigned count;
	struct upstream_channel channels[];
};

/* Lies in backend_call.own. */
struct upstream_call {
	struct response_stream stream;
	struct upstream_link *link;	  /* NULL: no application has the call */
	const struct upstream_link *last; /* its last link, while the response's end is processed */
	const struct upstream *where;	  /* the last address; or NULL */
	struct sender sender;		  /* process that wrote the beginning of the response */
	struct upstream_message message;
	struct timer later;  /* reports a failure that came too early; limits a tunnel's silence */
	uint64_t tried;	     /* addresses, one bit each */
	const char *upgrade; /* the protocol that the request asks for; or NULL */
	struct tunnel_count tunnel; /* among those of the pool */
	unsigned attempts;
	unsigned errors; /* bytes of error output so far */
	bool repeatable;
	bool asked;	      /* a further piece of the body is requested: the first is gone */
	bool stopped_reading; /* the application reads no more of the body */
	bool anew;	      /* a kept link has ended: only new ones are used */
	bool heard;	      /* the application has sent something */
	bool came;	      /* the response has begun */
	bool switched;	      /* and is in another protocol */
};

static_assert(sizeof(struct upstream_call) <= BACKEND_CALL_OWN, "fits a call");

static inline struct upstream_call *upstream_call_of(struct backend_call *call)
{
	return (struct upstream_call *)(void *)call->own;
}

static inline struct upstream_channel *upstream_channel_of(const struct backend_call *call)
{
	struct upstream_pool *all = call->pool->own;

	return &all->channels[call->transaction->thread->number];
}

static inline const struct upstream_wire *upstream_wire_of(const struct upstream_link *link)
{
	return container_of(link->owner, const struct upstream_wire, owner);
}

static inline bool upstream_is_local(const struct upstream_link *link)
{
	return ((const struct sockaddr *)&link->upstream->address.address)->sa_family == AF_UNIX;
}

/* Whether calls are queued on the thread. */
static inline bool upstream_is_behind(const struct upstream_channel *channel)
{
	return !list_is_empty(&channel->pool->queues[channel->thread->number].calls);
}

static inline struct upstream_place *upstream_place_of(const struct upstream_link *link)
{
	return link->upstream->own;
}

/* Returns the idle link that was used last; or NULL. */
static inline struct upstream_link *upstream_resting(const struct upstream_place *place)
{
	return list_first(&place->resting, struct upstream_link, resting);
}

/* --- upstream-request.c --- */

/* Closes the link, after the current read if there is one, and returns its permit. */
void upstream_close_link(struct upstream_link *link);

/* Separates the link from its call. */
void upstream_detach(struct upstream_link *link);

/* Detaches and closes the link. */
void upstream_drop(struct upstream_link *link);

/*
 * Detaches the link, whose call nobody waits for.  It closes, and returns its permit, only when the
 * application is done with the call, as far as can be known.
 */
void upstream_abandon(struct upstream_link *link);

/*
 * Keeps the link, which has no call, for the next call.  If another thread needs its permit, closes
 * it.
 */
void upstream_rest(struct upstream_link *link);
/* Removes the link from the idle links. */
void upstream_forget(struct upstream_link *link);
/* Logs it if the application has sent anything on an idle link, which must be closed then. */
void upstream_log_bytes(const struct upstream_link *link);
void upstream_idled(struct upstream_link *link);

/* The application of the link responds. */
void upstream_well(struct upstream_link *link);

/* A permit is available, or another thread needs one. */
void upstream_news(struct loop_task *task);

/* See struct backend_protocol. */
bool upstream_submit(struct backend_call *call, const char *block, size_t length);
bool upstream_body(struct backend_call *call);

/* The application has read all of the body that has come. */
void upstream_drained(struct upstream_link *link);

/*
 * The link failed before the response began: the call goes to another address or fails. stale: the
 * application closed a link that was kept.
 */
void upstream_go_elsewhere(struct upstream_link *link, bool stale, const char *fault);

/* The connection has ended. error: 0 or a negative errno. */
void upstream_ended(struct upstream_link *link, int error);

/* --- upstream-names.c --- */

/* On the main thread, when the table has the fixed addresses: looks the names up. */
void upstream_names_open(struct upstream_pool *all, const struct host_port *hosts, unsigned count);
/* The threads have been initialised: they get what changes. */
void upstream_names_start(struct upstream_pool *all);
/* No more changes come. */
void upstream_names_stop(struct upstream_pool *all);
void upstream_names_close(struct upstream_pool *all);

/* Any thread: no name has an address, and every one has been looked up. */
bool upstream_names_none(const struct upstream_pool *all);

/* An address has begun to fail: its name may have another one. */
void upstream_names_late(struct upstream_channel *channel);

/* Reads the table: new requests go to new addresses, none to those that are gone. */
void upstream_names_read(struct upstream_channel *channel);
/* upstream_channel.addresses. */
void upstream_names_news(struct loop_task *task);
/* The last link to an address that is gone has been closed. */
void upstream_names_release(struct upstream_channel *channel, const struct upstream *upstream);

/* --- upstream-waiting.c --- */

/* Call before a link is opened. */
uint64_t upstream_line_number(const struct upstream_place *place);
/* The link is new, with that number: it waits until the application accepts it. */
void upstream_line_enter(struct upstream_link *link, uint64_t number);
/* The response has begun: the application has accepted the link, and those opened before. */
void upstream_heard(struct upstream_link *link);
/* The link closes. */
void upstream_line_close(struct upstream_link *link);

/*
 * Whether the link, which is free after a request that began then (0: it was idle), has to be
 * closed for one that waits.
 */
bool upstream_yields(struct upstream_link *link, uint64_t began_ms);

/* A call found no permit, and is queued. */
void upstream_wait(struct upstream_channel *channel);
/* A call has a link, or will have one: the first of the queue, or one that was not queued. */
void upstream_note_start(struct upstream_channel *channel, const struct backend_call *call);

/* --- upstream-response.c --- */

extern const struct response_stream_source upstream_source;

/* Callbacks of links. */
void upstream_readable(struct upstream_link *link);
void upstream_broke(struct upstream_link *link, int error);
#define UPSTREAM_LINK_OWNER                                                                        \
	.readable = upstream_readable, .broke = upstream_broke, .drained = upstream_drained,       \
	.idled = upstream_idled

/* Writes the name of the pool and the application, for the log. */
const char *upstream_name(struct backend_call *call, char *out, size_t size);

/* Notes that the response has begun. */
void upstream_came(struct upstream_link *link);

/*
 * The response is complete: ends the call.  The buffer, which may be NULL, was its last one. keep:
 * the link may be used again.
 */
void upstream_complete(struct upstream_link *link, struct read_buffer *buffer, bool keep);

/*
 * The response is invalid, or the stream has failed (fault is NULL): frees the buffer, closes the
 * link and ends the call.  Returns false.
 */
bool upstream_refuse(struct upstream_link *link, struct read_buffer *buffer, const char *fault);

/* --- upstream-tunnel.c --- */

/* Counts the call, which asks for another protocol; false: the limits do not permit it. */
bool upstream_tunnel_enter(struct backend_call *call);
/* It has ended, or got an ordinary response; nothing if it was not counted. */
void upstream_tunnel_leave(struct backend_call *call);

/* The response is in another protocol, and bytes of it have come, or were sent. */
void upstream_switched(struct upstream_link *link);

/* See struct response_stream_source. */
void upstream_tunnel_awaited(struct backend_call *call);
void upstream_tunnel_from_client(struct transaction *transaction, const char *data, size_t length);

/* --- fastcgi-response.c, http-response.c --- */

extern const struct upstream_wire fastcgi_wire;
extern const struct upstream_wire http_wire;

/* Writes the head of a request, without the framing of its body; see struct backend_protocol. */
long http_describe(const struct gateway_pool *pool, const struct transaction *transaction,
		   size_t skip, char *out, size_t out_size);

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
