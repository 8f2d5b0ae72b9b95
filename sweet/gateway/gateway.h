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
#include <stdbool.h>

#include "base/list.h"

struct backend_protocol;
struct program_log;
struct resolver;
struct server;
struct site;
struct thread;

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
