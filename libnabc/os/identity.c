/* SPDX-License-Identifier: MIT */
/* identity.c - credentials and pidfds; see identity.h.  No state, any thread. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/descriptor.h"
#include "os/identity.h"

/* Linux 6.5; absent from Debian 12's header. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

int nc_identity_open(pid_t pid)
{
	int pidfd;

	if (pid <= 0)
		return -ESRCH;
	pidfd = nc_descriptor((int)syscall(SYS_pidfd_open, pid, 0));
	if (pidfd >= 0)
		return pidfd;
	/*
	 * The number of a thread, not of a process: kernels differ in the error
	 * that they return.
	 */
	return pidfd == -EINVAL || pidfd == -ENOENT ? -ESRCH : pidfd;
}

/* waitid() accepts pidfds only; it does not block here. */
static bool is_pidfd(int fd)
{
	siginfo_t info;

	return fd >= 0 && (waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG | WNOWAIT) == 0 ||
			   errno == ECHILD);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Returns a pidfd, or -1 if the system has none. */
static int peer_pidfd(int socket, pid_t pid)
{
	int pidfd;
	socklen_t length = sizeof(pidfd);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0)
		return nc_descriptor(pidfd);
	if (errno != ENOPROTOOPT && errno != EOPNOTSUPP && errno != EINVAL)
		return -errno;
	/* serve.c verifies with each message that its sender is the process pinned here. */
	pidfd = nc_identity_open(pid);
	return pidfd == -ENOSYS ? -1 : pidfd;
}

/*
 * Get the session before checking for the process's end: afterwards its pid may
 * belong to another.  getsid() returns 0 if the session began outside of this pid
 * namespace (of a container, for example).
 */
static pid_t session_of(pid_t pid, int pidfd)
{
	pid_t session = getsid(pid);

	if (session < 0 || nc_identity_ended(pidfd))
		return 0;
	return session ? session : pid;
}

/* Reads the kernel's present data about a process. */
static void read_status(pid_t pid, struct nc_identity *who)
{
	char path[32], *line = NULL, *at;
	size_t size = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	status = fopen(path, "re");
	while (status && getline(&line, &size, status) > 0) {
		/* Real and effective id; other processes see the effective one. */
		(void)sscanf(line, "Uid: %*u %u", &who->uid);
		(void)sscanf(line, "Gid: %*u %u", &who->gid);
		if (strncmp(line, "Groups:", 7) != 0)
			continue;
		for (at = line + 7; who->group_count < NC_IDENTITY_GROUPS_MAX;) {
			char *end;
			unsigned long group = strtoul(at, &end, 10);

			if (end == at)
				break;
			who->groups[who->group_count++] = (gid_t)group;
			at = end;
		}
	}
	free(line);
	if (status)
		fclose(status);
}

static void read_groups(int socket, struct nc_identity *who)
{
	socklen_t length = sizeof(who->groups);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, who->groups, &length) == 0)
		who->group_count = (unsigned)(length / sizeof(who->groups[0]));
}

int nc_identity_of_peer(int socket, struct nc_identity *who)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	int pidfd;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		return -errno;
	pidfd = peer_pidfd(socket, peer.pid);
	if (pidfd < -1)
		return pidfd;
	*who = (struct nc_identity){
		.pid = peer.pid, .pidfd = pidfd, .uid = peer.uid, .gid = peer.gid};
	who->since = now_ns();
	who->session = session_of(peer.pid, pidfd);
	read_groups(socket, who);
	return 0;
}

/*
 * Whether pid, pinned by pidfd, still runs as that user.  It need not, but a new
 * process that got the pid of one that has ended rarely runs as the same user.
 */
static bool runs_as(pid_t pid, int pidfd, uid_t uid)
{
	struct nc_identity now = {.uid = (uid_t)-1};

	read_status(pid, &now);
	return !nc_identity_ended(pidfd) && now.uid == uid;
}

int nc_identity_of_listener(int socket, struct nc_identity *who)
{
	struct ucred peer;
	socklen_t length = sizeof(peer), size = sizeof(int);
	int domain, pidfd;
	bool known;

	if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0)
		return -errno;
	if (domain != AF_UNIX)
		return -EOPNOTSUPP;
	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		return -errno;
	*who = (struct nc_identity){.pidfd = -1, .uid = peer.uid, .gid = peer.gid};
	read_groups(socket, who);
	size = sizeof(pidfd);
	if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) < 0) {
		/* Only the pid is left, which may belong to another process now. */
		pidfd = errno == ENOPROTOOPT ? nc_identity_open(peer.pid) : -1;
		known = pidfd >= 0 && runs_as(peer.pid, pidfd, peer.uid);
	} else {
		pidfd = nc_descriptor(pidfd);
		known = pidfd >= 0 && !nc_identity_ended(pidfd);
	}
	if (!known) {
		if (pidfd >= 0)
			close(pidfd);
		return 0;
	}
	who->pid = peer.pid;
	who->pidfd = pidfd;
	who->since = now_ns();
	who->session = session_of(peer.pid, pidfd);
	return 0;
}

uint64_t nc_identity_started(const struct nc_identity *who)
{
	char path[32], line[1024];
	unsigned long long ticks;
	const char *behind = NULL;
	long rate = sysconf(_SC_CLK_TCK);
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)who->pid);
	stat = who->pid > 0 && who->pidfd >= 0 ? fopen(path, "re") : NULL;
	if (!stat)
		return UINT64_MAX;
	/* The process chooses its name, which may contain blanks and brackets. */
	if (fgets(line, sizeof(line), stat))
		behind = strrchr(line, ')');
	fclose(stat);
	if (!behind || rate <= 0 ||
	    sscanf(behind + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
		   "%*d %llu",
		   &ticks) != 1 ||
	    nc_identity_ended(who->pidfd))
		return UINT64_MAX;
	return ticks / (unsigned long)rate * 1000000000u +
	       ticks % (unsigned long)rate * 1000000000u / (unsigned long)rate;
}

int nc_identity_of_child(pid_t pid, int pidfd, struct nc_identity *who)
{
	int groups;

	*who = (struct nc_identity){.pid = pid, .pidfd = -1, .uid = geteuid(), .gid = getegid()};
	who->since = now_ns();
	if (pidfd >= 0) {
		int copy = nc_descriptor_copy(pidfd);

		if (copy < 0)
			return copy;
		who->pidfd = copy;
	}
	who->session = session_of(pid, pidfd);
	groups = getgroups((int)NC_IDENTITY_GROUPS_MAX, who->groups);
	who->group_count = groups > 0 ? (unsigned)groups : 0;
	return 0;
}

int nc_identity_of_process(pid_t pid, int pidfd, struct nc_identity *who)
{
	struct nc_identity nobody = {.pid = pid, .pidfd = -1, .uid = (uid_t)-1, .gid = (gid_t)-1};
	int copy;

	*who = nobody;
	who->since = now_ns();
	read_status(pid, who);
	who->session = session_of(pid, pidfd);
	/* Otherwise the data may be that of another process with this pid. */
	if (nc_identity_ended(pidfd))
		*who = nobody;
	copy = nc_descriptor_copy(pidfd);
	who->pidfd = copy < 0 ? -1 : copy;
	return copy < 0 ? copy : 0;
}

void nc_identity_close(struct nc_identity *who)
{
	if (who->pidfd >= 0)
		close(who->pidfd);
	who->pidfd = -1;
}

bool nc_identity_ended(int pidfd)
{
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};

	return pidfd >= 0 && poll(&ended, 1, 0) > 0;
}

pid_t nc_identity_pid(int pidfd)
{
	char path[48], line[64];
	long pid = 0;
	FILE *info;

	/* For other descriptors, fdinfo may contain names that other processes chose. */
	if (!is_pidfd(pidfd))
		return -EBADF;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	info = fopen(path, "re");
	if (!info)
		return errno == ENOENT ? -EBADF : -errno;
	while (pid == 0 && fgets(line, sizeof(line), info))
		if (sscanf(line, "Pid: %ld", &pid) != 1)
			pid = 0;
	fclose(info);
	if (pid == 0)
		return -EBADF;
	/* Ended, or in a pid namespace that this process does not see. */
	return pid < 0 ? -ESRCH : (pid_t)pid;
}

bool nc_identity_is(const struct nc_identity *who, pid_t pid, int pidfd)
{
	return who->pid == pid && !nc_identity_ended(pidfd) && !nc_identity_ended(who->pidfd);
}

bool nc_identity_in_group(const struct nc_identity *who, gid_t gid)
{
	if (who->gid == gid)
		return true;
	for (unsigned i = 0; i < who->group_count; i++)
		if (who->groups[i] == gid)
			return true;
	return false;
}
