/* SPDX-License-Identifier: MIT */
/*
 * spawn-child.h - a process of a pool that the spawner has started.  It may run as
 * another user, so only the spawner can kill it and get its exit status.
 *
 * For the thread whose channel and loop it was started with.
 */
#ifndef SWEET_SPAWN_CHILD_H
#define SWEET_SPAWN_CHILD_H

#include <sys/types.h>

#include "base/list.h"

struct spawn_child;
struct loop;
struct spawner_channel;
struct start;

/* Not called any more when the child is closed; never called during spawn_child_start(). */
struct spawn_child_user {
	/*
	 * error 0: the program runs; the callee owns pidfd, -1 if pidfds are not supported.  Else
	 * an errno: nothing runs, and the callee closes the child.
	 */
	void (*started)(void *user, int error, int pidfd);
	/* status as of waitpid(), -1: unknown. */
	void (*ended)(void *user, int status);
};

/* Starts the program of what, which it copies.  Returns 0, or -errno: then there is no child. */
int spawn_child_start(struct spawn_child **child, struct spawner_channel *channel,
		      struct loop *loop, const struct start *what,
		      const struct spawn_child_user *callbacks, void *user);

/* Valid from started() on. */
pid_t spawn_child_pid(const struct spawn_child *child);

/* The first sends SIGTERM, and SIGKILL after ms, 0: never; the second sends SIGKILL. */
void spawn_child_ask_to_end(struct spawn_child *child, unsigned ms);
void spawn_child_kill(struct spawn_child *child);

/* Its user gets no report of its end. */
void spawn_child_leave(struct spawn_child *child);

/*
 * Kills it if it runs; its user gets no further callback.  Until its end is
 * reported, it is in the list leaving.
 */
void spawn_child_close(struct spawn_child *child, struct list *leaving);

/* Frees that list, after the loop has ended and nothing is started any more. */
void spawn_children_free(struct list *leaving);

#endif
