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

struct spawn_child;
struct loop;
struct spawner_channel;
struct start;

/*
 * Starts the program of what (copied, but not what it points to), and waits until
 * it runs.  Returns 0, or -errno if nothing runs. ended is called later, unless the
 * child is closed first; status as of waitpid(), -1: unknown.  The caller owns
 * *pidfd; -1 if pidfds are not supported.
 */
int spawn_child_start(struct spawn_child **child, struct spawner_channel *channel,
		      struct loop *loop, const struct start *what,
		      void (*ended)(void *user, int status), void *user, int *pidfd);

pid_t spawn_child_pid(const struct spawn_child *child);

/* The first sends SIGTERM, and SIGKILL after ms, 0: never; the second sends SIGKILL. */
void spawn_child_ask_to_end(struct spawn_child *child, unsigned ms);
void spawn_child_kill(struct spawn_child *child);

/* Its user gets no further callback. */
void spawn_child_leave(struct spawn_child *child);

/*
 * Kills it if it runs; its user gets no further callback.  Until its end is
 * reported, it is in the list leaving.
 */
void spawn_child_close(struct spawn_child *child, struct spawn_child **leaving);

/* Frees that list, after the loop has ended and nothing is started any more. */
void spawn_children_free(struct spawn_child **leaving);

#endif
