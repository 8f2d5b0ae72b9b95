/* SPDX-License-Identifier: MIT */
/*
 * group-guard.h - a small process that ends the process groups of the server's own workers if the
 * server is killed.
 *
 * The kernel ends a worker with the server (PR_SET_PDEATHSIG), but not what the worker has started.
 * The guard has the user of the server, so it can signal only what the server can.
 */
#ifndef SWEET_GROUP_GUARD_H
#define SWEET_GROUP_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

struct group_guard;
struct privileges;

/*
 * Forks it, and waits until it is ready; call it with one thread.  privileges: the server's later
 * ones.  Returns NULL with errno.
 */
struct group_guard *group_guard_open(const struct privileges *privileges);

/* From now on the guard ends that group, or no longer; NULL: nothing happens. */
void group_guard_add(struct group_guard *guard, pid_t group);
void group_guard_remove(struct group_guard *guard, pid_t group);

/* Ends the groups that are left, and the guard; may be NULL. */
void group_guard_close(struct group_guard *guard);

#endif
