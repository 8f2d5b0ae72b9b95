/* SPDX-License-Identifier: MIT */
/*
 * gateway.h - the pools of programs that answer requests, whatever protocol
 * they speak: which there are, and their life from one configuration to the
 * next.
 *
 * A pool lives as long as a configuration names it; one that the next names in
 * the same words goes on, with fresh processes one after the other.  A
 * transaction holds its configuration, so its pool outlives it.
 */
#ifndef SWEET_GATEWAY_H
#define SWEET_GATEWAY_H

#include <stdatomic.h>

#include "backend/pool-process.h"
#include "core/server.h"
#include "core/transaction.h"

struct backend_call;
struct worker_channel;
struct gateway;

/* Calls that wait for room in one pool, on one thread. */
struct call_queue {
	struct backend_call *first, **last;
	_Atomic uint64_t count; /* of those; read by the status */
	unsigned behind;	/* processes in which calls of this thread wait behind a long one */
	struct loop_notice room; /* there may be some */
	struct gateway_pool *pool;
	struct thread *thread;
};

struct gateway_pool {
	struct gateway *gateway;
	struct pool_config *settings; /* referenced */
	const struct backend_protocol *protocol;
	/* By the protocol, when end() has come to its end: closes and frees the pool. */
	void (*ended)(struct gateway_pool *pool);
	_Atomic unsigned users;	   /* configurations, and the gateway as one */
	bool fresh;		   /* of the present configuration: nothing is to be renewed yet */
	struct loop_task over;	   /* no configuration is left */
	struct call_queue *queues; /* one a thread */
	struct body_budget
		*ahead; /* of answers, in the memory of each process; NULL: all in ours */
	struct page_memory *pages; /* of each process; NULL: answers hold none of theirs */
	void *own;		   /* the protocol's */
	/* Of the pools whose processes we start. */
	unsigned count;
	struct pool_process *processes;
	struct pool_process_turn turn;
	bool ending;		  /* none is started any more */
	_Atomic unsigned failing; /* processes that ended soon after their start */
};

/* What a protocol does; on the calls' thread if the main one is not said. */
struct backend_protocol {
	bool redirects;	   /* its programs may answer by another path */
	bool takes_back;   /* calls that a program has not begun with: call_queue_take_back() */
	bool wants_length; /* of a request's body: one without it comes as a whole */
	/* Main thread, up to thread_ended(): */
	/* Sets up what it keeps of a pool, before the first call.  0 or -errno. */
	int (*open)(struct gateway_pool *pool);
	/* No call can come any more: pool->ended() when all is given back but what close() does. */
	void (*end)(struct gateway_pool *pool);
	void (*close)(struct gateway_pool *pool); /* the threads do not use it */
	void (*renew)(struct gateway_pool *pool); /* a reload has kept it; may be NULL */
	/* A thread's loop has ended, and others go on; may be NULL. */
	void (*thread_ended)(struct gateway_pool *pool, struct thread *thread);
	/* On the call's thread: */
	/* Hands a call on, with its variables; false: there is no room now.  Never answers at once. */
	bool (*submit)(struct backend_call *call, const char *block, size_t length);
	/*
	 * Takes the next piece of the request's body, the transaction's upload;
	 * NULL: bodies come as a whole.  submit() has found the first one there if
	 * upload_more is set.  False: it cannot be had by the program.
	 */
	bool (*body)(struct backend_call *call);
	/* No more of a body that waited on the disk can be had; NULL: none waits there. */
	void (*body_lost)(struct backend_call *call);
	/*
	 * While the thread's queue tells of calls that wait in a process behind a
	 * long one: withdraws the oldest and gives it to call_queue_move(), if another process
	 * serves it sooner.  NULL: there are none.
	 */
	void (*relieve)(struct gateway_pool *pool, struct thread *thread);
	/* Nobody can take a call before somebody mends what is wrong; may be NULL. */
	bool (*is_hopeless)(struct gateway_pool *pool);
	/* It took too long to answer, or the client has gone: backend_call_fail() it now or soon. */
	void (*too_late)(struct backend_call *call);
	void (*gone)(struct backend_call *call); /* may be NULL: the answer is waited for */
	/* Gives back what the answer held. */
	void (*finish)(struct backend_call *call);
};

/* Each in the source of its name; the table of them is in gateway.c. */
extern const struct backend_protocol worker_protocol;
extern const struct backend_protocol cgi_protocol;
extern const struct backend_protocol fastcgi_protocol;

struct gateway {
	struct server *server;
	struct thread *main;	     /* whose loop supervises */
	GPtrArray *pools;	     /* struct gateway_pool */
	struct spawn_child *leaving; /* processes that were let go of, and have not ended yet */
	int pid;		     /* this process's, for programs that grant it units */
	bool started;		     /* has the pools of the first configuration */
	bool closing;
};

/* Before the loops run, but when they are there. */
struct gateway *gateway_open(struct server *server);

/*
 * Has the pools of config run, before a thread sees it; on the main thread.
 * 0, or -errno with a line in *why (g_free): config cannot be used then.
 */
int gateway_use(struct gateway *gateway, struct config *config, char **why);

/*
 * All threads use that configuration: processes of its pools that go on are
 * renewed.  A pool that only requests of an earlier one use ends with those.
 */
void gateway_renew(const struct config *config);

/* The loop of a thread has ended, and others go on: they may have what it kept; main thread. */
void gateway_thread_ended(struct gateway *gateway, struct thread *thread);

/* Ends all; the threads' loops must have ended. */
void gateway_close(struct gateway *gateway);

#endif
