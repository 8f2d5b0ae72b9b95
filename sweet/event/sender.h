/* SPDX-License-Identifier: MIT */
/*
 * sender.h - which process wrote the next bytes of a connected Unix socket, as the
 * kernel reports it (SCM_CREDENTIALS, SCM_PIDFD of unix(7)).
 *
 * SO_PEERCRED names the process that called listen().  Often another one answers: a
 * child of it, or a process that received the socket from it.
 */
#ifndef SWEET_SENDER_H
#define SWEET_SENDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sender {
	pid_t pid; /* 0: unknown; -1: several processes wrote */
	int pidfd; /* sender_close() closes it; <= 0: unknown, or the process had ended */
};

/* All zeros, so that sender_close() may be called on cleared memory. */
#define SENDER_UNKNOWN ((struct sender){0, 0})

/* From now on the kernel records who writes to the other end of the Unix socket. */
void sender_watch(int socket);

/*
 * Notes who wrote the next bytes, without reading them.  If *sender names another
 * process already, it becomes "several".
 */
void sender_note(struct sender *sender, int socket);

/* Returns true if that process may use the unit; false with errno, as NC_access(3). */
bool sender_may_use(const struct sender *sender, size_t unit);

/*
 * Returns true if a process of the leader's session made the unit, and not one of
 * an earlier leader with the same pid: it attached at or after asked, a time of
 * clock_boottime_ns() before the leader started.
 */
bool sender_leads_maker(pid_t leader, uint64_t asked, size_t unit);

/* Then the sender is unknown. */
void sender_close(struct sender *sender);

#endif
