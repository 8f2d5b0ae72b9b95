/* SPDX-License-Identifier: MIT */
/*
 * identity.h - the identity of a process, from the kernel's data only.
 *
 * A pid may later belong to another process; a pidfd never does.  So a process is
 * identified by both: while its pidfd shows that it runs, its pid is its own.
 */
#ifndef NC_IDENTITY_H
#define NC_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NC_IDENTITY_GROUPS_MAX 64u

struct nc_identity {
	pid_t pid;
	int pidfd; /* -1: this system has none */
	uid_t uid;
	gid_t gid;
	/* when it was read; its pid if the session has no number here; 0: it had ended */
	pid_t session;
	gid_t groups[NC_IDENTITY_GROUPS_MAX]; /* supplementary groups, up to this many */
	unsigned group_count;
	uint64_t since; /* when the identity was read: ns since the system booted */
};

/* Identifies the process that connected at the other end of a Unix socket.  Returns 0 or -errno. */
int nc_identity_of_peer(int socket, struct nc_identity *who);

/*
 * Identifies the process that listens at the other end of a connected Unix socket,
 * or at this socket if it listens.  User and groups are those at the time of
 * listen().  pid is 0 if the process has ended, or if the kernel cannot distinguish
 * it from another one that has its pid now.  Returns 0, -errno, or -EOPNOTSUPP (not
 * a Unix socket).
 */
int nc_identity_of_listener(int socket, struct nc_identity *who);

/*
 * Returns when the process started: ns since the system booted; UINT64_MAX:
 * unknown, or it has ended.
 */
uint64_t nc_identity_started(const struct nc_identity *who);

/* For a child that has this process's credentials; duplicates pidfd. */
int nc_identity_of_child(pid_t pid, int pidfd, struct nc_identity *who);

/* For a process that may have other credentials, pinned by pidfd, which is duplicated. */
int nc_identity_of_process(pid_t pid, int pidfd, struct nc_identity *who);
void nc_identity_close(struct nc_identity *who);

/* Returns a pidfd for a process, or -ESRCH if there is none. */
int nc_identity_open(pid_t pid);

/*
 * Returns the pid, in this process's namespace, for a pidfd; -ESRCH: it has ended;
 * -EBADF: not a pidfd.
 */
pid_t nc_identity_pid(int pidfd);

/* Whether the process of a pidfd has ended; false if there is no pidfd. */
bool nc_identity_ended(int pidfd);

/* Whether pid, pinned by pidfd, is that process. */
bool nc_identity_is(const struct nc_identity *who, pid_t pid, int pidfd);
bool nc_identity_in_group(const struct nc_identity *who, gid_t gid);

#endif
