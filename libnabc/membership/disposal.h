/* SPDX-License-Identifier: MIT */
/*
 * disposal.h - closes what comes from members, so that no other member waits for it.
 *
 * A descriptor that a member passes may be the last one of its file, and closing that can block as
 * long as the member likes: a TCP connection that lingers, a file of a user-space file system.
 * Messages that nobody has received carry descriptors, too, and closing their socket closes them.
 * What can block is closed by a thread of its own.
 */
#ifndef NC_DISPOSAL_H
#define NC_DISPOSAL_H

#include <stdbool.h>
#include <sys/types.h>

struct nc_disposal;

/* Returns NULL if memory is exhausted. */
struct nc_disposal *nc_disposal_open(void);

/* Waits two seconds for the threads; what blocks longer is closed later.  NULL: does nothing. */
void nc_disposal_close(struct nc_disposal *disposal);

/* Where descriptors came from. */
struct nc_disposal_origin {
	pid_t pid;
	uid_t uid;
};

/*
 * Closes descriptors.  Returns 0, or -EBUSY if too many of this process are not closed yet: part
 * with it.  Any thread; blocks only if disposal is NULL, or if memory or threads are exhausted.
 */
int nc_disposal_take(struct nc_disposal *disposal, struct nc_disposal_origin from, const int *fds,
		     unsigned count);

/* Closes the connection to a process, and the descriptors that wait in it. */
void nc_disposal_take_socket(struct nc_disposal *disposal, struct nc_disposal_origin from,
			     int socket);

/* Counts the threads that are not done, of all users and of one. */
unsigned nc_disposal_pending(struct nc_disposal *disposal, uid_t uid, unsigned *own);

#endif
