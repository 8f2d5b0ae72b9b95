/* SPDX-License-Identifier: MIT */
/*
 * gateway.h - the pools of programs that respond to requests, for all protocols: which pools run,
 * and what a new configuration changes.
 *
 * A pool runs as long as a configuration contains it.  If the next configuration has the same
 * settings for it, the pool continues, and its processes are replaced one after the other.  A
 * transaction holds its configuration in use (core/site.h), so its pool outlives it.
 */
#ifndef SWEET_GATEWAY_H
#define SWEET_GATEWAY_H

#include <glib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/pool-process.h"
#include "base/list.h"
#include "event/loop.h"

struct backend_call;
struct worker_channel;
struct gateway;
struct resolver;
struct program_log;
struct server;
struct site;
struct thread;
struct transaction;

/* Calls that wait for free capacity of one pool, on one thread. */
struct call_queue {
	struct list calls;
	_Atomic uint64_t count; /* queued calls; also read by the status */
	unsigned behind;	/* processes in which calls of this thread wait behind a long one */
	struct loop_notice room; /* the pool may have free capacity */
	struct gateway_pool *pool;
	struct thread *thread;
};

struct gateway_pool {
	struct gateway *gateway;
	const struct pool_config *settings; /* holds a reference */
	const struct backend_protocol *protocol;
	/* The protocol calls it when end() is complete: closes and frees the pool. */
	void (*ended)(struct gateway_pool *pool);
	_Atomic unsigned users;	   /* references: sites, and one of the gateway */
	bool fresh;		   /* new with this configuration: nothing to renew */
	struct loop_task over;	   /* posted when no configuration uses the pool */
	struct call_queue *queues; /* one for each thread */
	/* budgets for queued response data in each process's memory; or NULL */
	struct budget *ahead;
	/* connections in another protocol, and requests for one; those that were refused */
	_Atomic uint64_t tunnels, tunnels_refused;
	struct page_memory *pages; /* pages of responses in each process's memory; or NULL */
	void *own;		   /* private to the protocol */
	/* Only if the server starts the processes: */
	unsigned count;
	struct pool_process *processes;
	struct pool_process_turn turn;
	bool ending;		     /* no more processes are started */
	_Atomic unsigned failing;    /* processes that ended soon after their start */
	bool none_left;		     /* all failed, which the log says once until one lives */
	_Atomic uint64_t retired_ms; /* when the server last asked one to end; 0: never */
};

/* The functions of a protocol.  They run on the call's thread unless stated otherwise. */
struct backend_protocol {
	bool redirects;	   /* programs may redirect to another path */
	bool takes_back;   /* calls may return unprocessed: call_queue_take_back() */
	bool wants_length; /* a body of unknown length is passed as a whole */
	bool validates;	   /* programs may be asked whether an outdated response has changed */
	bool frames_body;  /* states the length of a body itself, by backend_call.length */
	/* Programs say all that clients get: no Content-Type and no error page is added. */
	bool complete;
	/*
	 * Writes the block that describes a request to the program; the first skip bytes of its
	 * path name the pool.  Returns its bytes, or -1 if out is too small.
	 */
	long (*describe)(const struct gateway_pool *pool, const struct transaction *transaction,
			 size_t skip, char *out, size_t out_size);
	/* On the main thread, up to thread_ended(): */
	/*
	 * Initialises the protocol's part of a pool, before the first call.  Returns 0 or -errno.
	 */
	int (*open)(struct gateway_pool *pool);
	/* No more calls come: calls pool->ended() when only close() is left to do. */
	void (*end)(struct gateway_pool *pool);
	void (*close)(struct gateway_pool *pool); /* no thread uses the pool */
	void (*renew)(struct gateway_pool *pool); /* a reload kept the pool; may be NULL */
	/* The loop of one thread has ended, others run on; may be NULL. */
	void (*thread_ended)(struct gateway_pool *pool, struct thread *thread);
	/* On the call's thread: */
	/*
	 * Submits a call with its variables; false: no capacity.  Never responds before it returns.
	 */
	bool (*submit)(struct backend_call *call, const char *block, size_t length);
	/*
	 * Passes the next piece of the request body, the transaction's upload, to the program.
	 * submit() passes the first piece if upload_more is set.  Returns false if the program
	 * cannot get it.  NULL: bodies are passed as a whole.
	 */
	bool (*body)(struct backend_call *call);
	/* The rest of a body on disk cannot be read; NULL: bodies are not stored on disk. */
	void (*body_lost)(struct backend_call *call);
	/*
	 * Called while calls of the thread wait in a process behind a long one: withdraws the
	 * oldest and passes it to call_queue_move(), if another process can serve it sooner.  NULL:
	 * not supported.
	 */
	void (*relieve)(struct gateway_pool *pool, struct thread *thread);
	/* Returns the addresses in use (g_strfreev()), for the status; any thread.  May be NULL. */
	char **(*addresses)(const struct gateway_pool *pool);
	/* No process can take a call until the operator fixes the cause; may be NULL. */
	bool (*is_unavailable)(struct gateway_pool *pool);
	/* The response timed out; the client has disconnected: fails the call now or soon. */
	void (*too_late)(struct backend_call *call);
	void (*gone)(struct backend_call *call); /* NULL: wait for the response */
	/* Releases the resources of the response. */
	void (*finish)(struct backend_call *call);
};

/* In worker.c, cgi.c and upstream-pool.c; gateway.c has the table of them. */
extern const struct backend_protocol worker_protocol;
extern const struct backend_protocol cgi_protocol;
extern const struct backend_protocol fastcgi_protocol;
extern const struct backend_protocol http_protocol;

struct gateway {
	struct server *server;
	struct thread *main;		 /* its loop supervises the processes */
	GPtrArray *pools;		 /* struct gateway_pool */
	struct resolver *resolver;	 /* of names of applications; NULL: there was none */
	struct list leaving;		 /* processes that were killed */
	struct list ending;		 /* those that are to end by themselves */
	struct program_log *program_log; /* of all programs but those of CGI */
	int pid;			 /* of this process, for grants of programs to it */
	bool started;			 /* the first configuration's pools have been started */
	bool settled;			 /* after that: gateway_settle() */
	char *why;			 /* until then: which process cannot start; or NULL */
	bool closing;
};

/* Call it after the threads are created and before their loops run. */
struct gateway *gateway_open(struct server *server);

/*
 * Starts the pools of site before a thread uses it; main thread.  Returns 0, or -errno with a
 * message in *why (g_free()) if site cannot be used.
 */
int gateway_use(struct gateway *gateway, struct site *site, char **why);

/* For the pools: what looks up names.  Main thread. */
struct resolver *gateway_resolver(struct gateway *gateway);

/*
 * Before the loops run: waits for the first starts and lookups of names, at most ms each.  Returns
 * false with a message in *why (g_free()) if a process cannot be started.  A start that lasts
 * longer continues.
 */
bool gateway_settle(struct gateway *gateway, unsigned ms, char **why);

/*
 * All threads now use site: replaces the processes of pools that continue.  A pool that only
 * requests of an earlier configuration use ends with them.
 */
void gateway_renew(const struct site *site);

/* The loop of a thread has ended, others run on and may take over its resources; main thread. */
void gateway_thread_ended(struct gateway *gateway, struct thread *thread);

/*
 * Ends all pools; the threads' loops must have ended.  Waits for the processes for at most ms, and
 * no longer if hurry, a descriptor, is readable; -1: none.
 */
void gateway_close(struct gateway *gateway, unsigned ms, int hurry);

#endif
