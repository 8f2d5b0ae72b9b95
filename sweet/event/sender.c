/* SPDX-License-Identifier: MIT */
/*
 * sender.c - see sender.h.  No state: any thread may call it.
 */
#include <errno.h>
#include <stdalign.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <nabc.h>

#include "event/sender.h"

/* Linux 6.5; absent from Debian 12's headers. */
#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif
#ifndef SCM_PIDFD
#define SCM_PIDFD 0x04
#endif

#define SEVERAL ((pid_t)(-1))

void sender_watch(int socket)
{
	int on = 1;

	/* If the kernel has neither, the sender remains unknown. */
	(void)setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	(void)setsockopt(socket, SOL_SOCKET, SO_PASSPIDFD, &on, sizeof(on));
}

static void take(struct sender *sender, const struct cmsghdr *control)
{
	struct ucred who;

	if (control->cmsg_level != SOL_SOCKET)
		return;
	if (control->cmsg_type == SCM_CREDENTIALS) {
		memcpy(&who, CMSG_DATA(control), sizeof(who));
		sender->pid = who.pid;
	} else if (control->cmsg_type == SCM_PIDFD) {
		/* if the process has ended: a negated errno */
		memcpy(&sender->pidfd, CMSG_DATA(control), sizeof(sender->pidfd));
	}
}

static bool gives_pidfd(int socket)
{
	int on = 0;
	socklen_t length = sizeof(on);

	return getsockopt(socket, SOL_SOCKET, SO_PASSPIDFD, &on, &length) == 0 && on;
}

void sender_note(struct sender *sender, int socket)
{
	/* There is no space for descriptors of a peer, so the kernel installs none. */
	alignas(struct cmsghdr) char
		space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
	struct sender found = SENDER_UNKNOWN;
	bool pinned = gives_pidfd(socket);
	char byte;
	struct iovec bytes = {&byte, 1};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = space,
				 .msg_controllen = sizeof(space)};

	if (!pinned)
		message.msg_controllen = CMSG_SPACE(sizeof(struct ucred));
	/* At end of file there is no sender. */
	if (sender->pid == SEVERAL ||
	    recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
		return;
	for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at))
		take(&found, at);
	/* Older kernels give the pid only: open a pidfd for it as early as possible. */
	if (found.pid > 0 && !pinned)
		found.pidfd = (int)syscall(SYS_pidfd_open, found.pid, 0);
	if (sender->pid == 0) {
		*sender = found;
		return;
	}
	if (found.pid != sender->pid) {
		sender_close(sender);
		sender->pid = SEVERAL;
	}
	sender_close(&found);
}

bool sender_may_use(const struct sender *sender, size_t unit)
{
	/* Without a pidfd the process may have ended, and its pid may be another process's. */
	if (sender->pid <= 0 || sender->pidfd <= 0) {
		errno = EACCES;
		return false;
	}
	return NC_access(NULL, unit, NC_PROCESS_FD, (uint32_t)sender->pidfd) == 0;
}

bool sender_leads_maker(pid_t leader, uint64_t asked, size_t unit)
{
	struct NC_stat stat;

	return NC_stat(NULL, unit, &stat, sizeof(stat)) == 0 && stat.session != 0 &&
	       stat.session == leader && stat.since >= asked;
}

void sender_close(struct sender *sender)
{
	if (sender->pidfd > 0)
		close(sender->pidfd);
	*sender = SENDER_UNKNOWN;
}
