/* SPDX-License-Identifier: MIT */
/*
 * process-leaving.h - processes of pools that no part of the server uses any more: each gets the
 * time to end by itself, and no loop waits for it.
 *
 * A worker finds no further request, NC_worker_accept() returns 0; a FastCGI application gets
 * SIGTERM.  After stop-timeout the process is killed, and with its end all of its process group.
 * Main thread.
 */
#ifndef SWEET_PROCESS_LEAVING_H
#define SWEET_PROCESS_LEAVING_H

#include <stdbool.h>

#include <nabc-worker.h>

struct gateway;
struct process_leaving;
struct spawn_child;

/* What is known of such a process; the callee takes over all of it. */
struct process_parts {
	const char *pool; /* name of its pool, and number in it */
	unsigned number;
	int pid;
	int pidfd;		   /* without a backend, which has its own; -1: unknown */
	NC_backend *backend;	   /* of a worker; or NULL */
	struct spawn_child *child; /* if the spawner started it; or NULL: an own child */
	bool ended;
};

/* Lets the process end.  While the gateway is closing, only process_leaving_await() ends it. */
void process_leaving_add(struct gateway *gateway, const struct process_parts *parts);

/*
 * After the loop: waits for all of them, at most ms, and kills those that still run then.  It waits
 * no longer if hurry, a descriptor, is readable; -1: none.
 */
void process_leaving_await(struct gateway *gateway, unsigned ms, int hurry);

#endif
