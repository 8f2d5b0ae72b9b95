/* SPDX-License-Identifier: MIT */
/*
 * spawn-child.h - a process of a pool that the spawner has started: it may be
 * another user's, so the spawner alone can end it and knows how it ended.
 *
 * On the thread whose channel and loop it was started with.
 */
#ifndef SWEET_SPAWN_CHILD_H
#define SWEET_SPAWN_CHILD_H

#include "spawn/spawner.h"

struct spawn_child;

/*
 * Starts the program of what, which is copied but for what it points to, and
 * waits for that.  0; or -errno, and nothing runs.  ended: later, unless it is
 * closed first; status as of waitpid(), -1: nobody knows.  *pidfd is the
 * caller's; -1 where there are none.
 */
int spawn_child_start(struct spawn_child **child, struct spawner_channel *channel,
		      struct loop *loop, const struct start *what,
		      void (*ended)(void *user, int status), void *user, int *pidfd);

pid_t spawn_child_pid(const struct spawn_child *child);

/* Asks it to end, and ends it when it takes too long; the other does that now. */
void spawn_child_ask_to_end(struct spawn_child *child);
void spawn_child_kill(struct spawn_child *child);

/*
 * Ends it if it has not; its user hears no more of it.  Until its end is told
 * it is in the list of those that leave.
 */
void spawn_child_close(struct spawn_child *child, struct spawn_child **leaving);

/* Frees that list, when the loop does not run any more and nobody starts anything. */
void spawn_children_free(struct spawn_child **leaving);

#endif
