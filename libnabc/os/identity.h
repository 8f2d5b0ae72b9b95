/* SPDX-License-Identifier: MIT */
/*
 * identity.h - who a process is, by the kernel's word alone.
 *
 * A pid may come to name another process; a pidfd never does.  So a process
 * is known by both: while its pidfd says that it runs, its pid is its own.
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
	pid_t session; /* when it was asked for, its pid if that has no number; 0: it had ended */
	gid_t groups[NC_IDENTITY_GROUPS_MAX]; /* supplementary ones; more are not seen */
	unsigned group_count;
	uint64_t since; /* when it was asked for: ns since the system booted */
};

/* Who connected at the other end of a Unix socket.  0 or -errno. */
int nc_identity_of_peer(int socket, struct nc_identity *who);

/*
 * Who listens at the other end of a Unix socket that was connected, or at this
 * socket itself if it listens.  Its user and groups are those that it had when
 * it called listen(); pid is 0 if the process has ended, or if the kernel cannot
 * tell it from another that has its number now.  0 or -errno; -EOPNOTSUPP: not a
 * Unix socket.
 */
int nc_identity_of_listener(int socket, struct nc_identity *who);

/* When that process started: ns since the system booted; UINT64_MAX: unknown, or it has ended. */
uint64_t nc_identity_started(const struct nc_identity *who);

/* A child that runs as this process does; pidfd is duplicated. */
int nc_identity_of_child(pid_t pid, int pidfd, struct nc_identity *who);

/* One that may run as somebody else, pinned by pidfd, which is duplicated. */
int nc_identity_of_process(pid_t pid, int pidfd, struct nc_identity *who);
void nc_identity_close(struct nc_identity *who);

/* A pidfd for a process; -ESRCH: there is none. */
int nc_identity_open(pid_t pid);

/* The process that a pidfd names, as this process numbers it; -ESRCH: it has ended; -EBADF: no pidfd. */
pid_t nc_identity_pid(int pidfd);

/* Whether the process that a pidfd names has ended; false when there is no pidfd to ask. */
bool nc_identity_ended(int pidfd);

/* Whether pid, pinned by pidfd, is that process. */
bool nc_identity_is(const struct nc_identity *who, pid_t pid, int pidfd);
bool nc_identity_in_group(const struct nc_identity *who, gid_t gid);

#endif
