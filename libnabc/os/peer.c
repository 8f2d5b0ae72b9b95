/* SPDX-License-Identifier: MIT */
/* peer.c - Unix sockets between owner and members.  No state; any thread. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/descriptor.h"
#include "os/peer.h"

#define BACKLOG 128

static int address(struct sockaddr_un *where, const char *path)
{
	size_t length = strlen(path);

	if (length == 0)
		return -EINVAL;
	if (length >= sizeof(where->sun_path))
		return -ENAMETOOLONG;
	*where = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(where->sun_path, path, length);
	return 0;
}

/* Whether the path is a socket file without a process: its owner was killed. */
static bool is_stale(const struct sockaddr_un *where)
{
	struct stat file;
	bool refused;
	int socket_fd;

	if (lstat(where->sun_path, &file) < 0 || !S_ISSOCK(file.st_mode))
		return false;
	/* We never listen with this type of socket, so a live owner does not notice the attempt. */
	socket_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (socket_fd < 0)
		return false;
	refused = connect(socket_fd, (const struct sockaddr *)where, sizeof(*where)) < 0 &&
		  errno == ECONNREFUSED;
	close(socket_fd);
	return refused;
}

static int bind_at(int socket_fd, const struct sockaddr_un *where)
{
	if (bind(socket_fd, (const struct sockaddr *)where, sizeof(*where)) == 0)
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	if (!is_stale(where))
		return -EADDRINUSE;
	if (unlink(where->sun_path) < 0 ||
	    bind(socket_fd, (const struct sockaddr *)where, sizeof(*where)) < 0)
		return -errno;
	return 0;
}

int nc_peer_listen(const char *path, mode_t mode, gid_t group)
{
	struct sockaddr_un where;
	int error = address(&where, path);
	int socket_fd;

	if (error)
		return error;
	socket_fd =
		nc_descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (socket_fd < 0)
		return socket_fd;
	/* No process can connect before listen(), so the mode is set in time. */
	error = bind_at(socket_fd, &where);
	if (error) {
		close(socket_fd);
		return error;
	}
	/* Others may write the folder, and have put a link there. */
	if ((group != (gid_t)-1 &&
	     fchownat(AT_FDCWD, path, (uid_t)-1, group, AT_SYMLINK_NOFOLLOW) < 0) ||
	    fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) < 0 ||
	    listen(socket_fd, BACKLOG) < 0) {
		error = -errno;
		unlink(path);
		close(socket_fd);
		return error;
	}
	return socket_fd;
}

int nc_peer_connect(const char *path, int timeout_ms)
{
	struct timeval wait = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
	struct sockaddr_un where;
	int error = address(&where, path);
	int socket_fd;

	if (error)
		return error;
	socket_fd = nc_descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	if (socket_fd < 0)
		return socket_fd;
	/* With a full backlog connect() waits, at most as long as the send timeout. */
	if (setsockopt(socket_fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) < 0 ||
	    connect(socket_fd, (struct sockaddr *)&where, sizeof(where)) < 0) {
		error = errno == EAGAIN ? -ETIMEDOUT : -errno;
		close(socket_fd);
		return error;
	}
	return socket_fd;
}

int nc_peer_accept(int listener)
{
	return nc_descriptor(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
}

int nc_peer_pair(int pair[2])
{
	return nc_descriptor_pair(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair),
				  pair);
}

int nc_peer_ask_sender(int socket)
{
	int on = 1;

	return setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ? -errno : 0;
}

#define RIGHTS_SPACE CMSG_SPACE(NC_PEER_FDS_ALL * sizeof(int))

union control {
	struct cmsghdr header;
	char space[RIGHTS_SPACE + CMSG_SPACE(sizeof(struct ucred))];
};

int nc_peer_send(int socket, const void *message, size_t length, const int *fds, unsigned count)
{
	union control control;
	struct iovec iov = {.iov_base = (void *)message, .iov_len = length};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t sent;

	if (count > NC_PEER_FDS_MAX)
		return -EINVAL;
	if (count) {
		memset(&control, 0, sizeof(control));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(count * sizeof(int));
	}
	do {
		sent = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return 0;
	/*
	 * The limit of open descriptors also applies to those in flight of all
	 * processes of this user.
	 */
	return errno == ETOOMANYREFS ? -EMFILE : -errno;
}

void nc_peer_close_fds(const int *fds, unsigned count)
{
	while (count)
		close(fds[--count]);
}

/* Moves standard descriptors elsewhere: none is the last one of its file when it is closed. */
static bool move_up(int *fds, unsigned count)
{
	bool good = true;

	for (unsigned i = 0; i < count; i++) {
		int kept = fds[i] <= STDERR_FILENO ? nc_descriptor_copy(fds[i]) : fds[i];

		if (kept < 0) {
			good = false;
		} else if (kept != fds[i]) {
			close(fds[i]);
			fds[i] = kept;
		}
	}
	return good;
}

/* Extracts the control data of a message. */
static void unpack(struct msghdr *header, int *fds, unsigned *count, pid_t *pid)
{
	for (struct cmsghdr *at = CMSG_FIRSTHDR(header); at; at = CMSG_NXTHDR(header, at)) {
		size_t length = at->cmsg_len - CMSG_LEN(0);

		if (at->cmsg_level != SOL_SOCKET)
			continue;
		if (at->cmsg_type == SCM_RIGHTS) {
			memcpy(fds, CMSG_DATA(at), length);
			*count = (unsigned)(length / sizeof(int));
			/* If no other number is free: as when the kernel had none. */
			if (!move_up(fds, *count))
				header->msg_flags |= MSG_CTRUNC;
		}
		if (at->cmsg_type == SCM_CREDENTIALS && pid && length >= sizeof(struct ucred)) {
			struct ucred sender;

			memcpy(&sender, CMSG_DATA(at), sizeof(sender));
			*pid = sender.pid;
		}
	}
}

/* Returns the space for control data: the sender, if requested, comes first. */
static size_t control_space(unsigned fds, bool sender)
{
	return (sender ? CMSG_SPACE(sizeof(struct ucred)) : 0) + CMSG_LEN(fds * sizeof(int));
}

/* most: the room of fds, to which all descriptors of a message go in any case. */
static ssize_t receive(int socket, void *message, size_t length, int *fds, unsigned most,
		       unsigned *count, pid_t *pid)
{
	union control control;
	struct iovec iov = {.iov_base = message, .iov_len = length};
	struct msghdr header = {.msg_iov = &iov,
				.msg_iovlen = 1,
				.msg_control = &control,
				.msg_controllen = control_space(most, pid)};
	ssize_t got;

	*count = 0;
	do {
		got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	unpack(&header, fds, count, pid);
	if (got == 0 || !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return got;
	return header.msg_flags & MSG_TRUNC || *count == most ? -EPROTO : -EMFILE;
}

ssize_t nc_peer_receive(int socket, void *message, size_t length, int *fds, unsigned *count,
			int timeout_ms)
{
	struct pollfd poll_fd = {.fd = socket, .events = POLLIN};
	ssize_t got;
	int ready;

	*count = 0;
	do {
		ready = poll(&poll_fd, 1, timeout_ms);
	} while (ready < 0 && errno == EINTR);
	if (ready < 0)
		return -errno;
	if (!ready)
		return -ETIMEDOUT;
	got = receive(socket, message, length, fds, NC_PEER_FDS_MAX, count, NULL);
	if (got <= 0) {
		nc_peer_close_fds(fds, *count);
		*count = 0;
	}
	return got;
}

ssize_t nc_peer_receive_from(int socket, void *message, size_t length, int *fds, unsigned *count,
			     pid_t *pid)
{
	*pid = 0;
	return receive(socket, message, length, fds, NC_PEER_FDS_ALL, count, pid);
}

bool nc_peer_drain(int socket, int *fds, unsigned *count)
{
	ssize_t got;
	pid_t pid;
	char byte;

	(void)shutdown(socket, SHUT_RDWR);
	do {
		got = nc_peer_receive_from(socket, &byte, 1, fds, count, &pid);
	} while (got == -ECONNRESET);
	/* Each message has its sender, also an empty one; the end has none. */
	return pid != 0;
}
