/* SPDX-License-Identifier: MIT */
/*
 * sender.h - which process wrote what a connected Unix socket has to read, by
 * the kernel's word (SCM_CREDENTIALS, SCM_PIDFD of unix(7)).
 *
 * The peer of SO_PEERCRED is the process that called listen().  It often is not
 * the one that answers: it has forked that, or passed it the socket and ended.
 */
#ifndef SWEET_SENDER_H
#define SWEET_SENDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sender {
	pid_t pid; /* 0: unknown; -1: several processes wrote */
	int pidfd; /* the caller's to close by sender_close(); 0, or less: unknown, or it had ended */
};

/* All zeros, so that sender_close() may be called on memory that was only cleared. */
#define SENDER_UNKNOWN ((struct sender){0, 0})

/* From now on the kernel notes who writes to the other end of the Unix socket. */
void sender_watch(int socket);

/*
 * Looks who wrote the next bytes, which stay there.  Another one than *sender
 * already names makes that several.
 */
void sender_note(struct sender *sender, int socket);

/* Whether that process may use the unit; false with errno, as NC_access(3). */
bool sender_may_use(const struct sender *sender, size_t unit);

/*
 * Whether a process of the session of that leader made the unit, and not of one
 * whose leader had this pid before: it attached at or after asked, a time of
 * clock_boottime_ns() before the leader started.
 */
bool sender_leads_maker(pid_t leader, uint64_t asked, size_t unit);

/* It is unknown then. */
void sender_close(struct sender *sender);

#endif
