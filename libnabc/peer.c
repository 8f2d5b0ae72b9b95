/* SPDX-License-Identifier: MIT */
/*
 * peer.c - the Unix-socket edge between owner and members.  Stateless; any
 * thread.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "peer.h"

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

int nc_peer_listen(const char *path, mode_t mode)
{
	struct sockaddr_un where;
	int error = address(&where, path);
	int socket_fd;

	if (error)
		return error;
	socket_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (socket_fd < 0)
		return -errno;
	/* Nobody can connect before listen(), so the mode is set in time. */
	if (bind(socket_fd, (struct sockaddr *)&where, sizeof(where)) < 0) {
		error = -errno;
		close(socket_fd);
		return error;
	}
	if (chmod(path, mode) < 0 || listen(socket_fd, BACKLOG) < 0) {
		error = -errno;
		unlink(path);
		close(socket_fd);
		return error;
	}
	return socket_fd;
}

int nc_peer_connect(const char *path)
{
	struct sockaddr_un where;
	int error = address(&where, path);
	int socket_fd;

	if (error)
		return error;
	socket_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (socket_fd < 0)
		return -errno;
	if (connect(socket_fd, (struct sockaddr *)&where, sizeof(where)) < 0) {
		error = -errno;
		close(socket_fd);
		return error;
	}
	return socket_fd;
}

int nc_peer_accept(int listener)
{
	int socket_fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	return socket_fd < 0 ? -errno : socket_fd;
}

int nc_peer_pair(int pair[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ? -errno : 0;
}

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(NC_PEER_FDS_MAX * sizeof(int))];
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
	return sent < 0 ? -errno : 0;
}

static void close_all(const int *fds, unsigned count)
{
	while (count)
		close(fds[--count]);
}

ssize_t nc_peer_receive(int socket, void *message, size_t length, int *fds, unsigned *count,
			int timeout_ms)
{
	union control control;
	struct iovec iov = {.iov_base = message, .iov_len = length};
	struct msghdr header = {.msg_iov = &iov,
				.msg_iovlen = 1,
				.msg_control = &control,
				.msg_controllen = sizeof(control)};
	struct pollfd poll_fd = {.fd = socket, .events = POLLIN};
	bool truncated;
	ssize_t got;
	int ready;

	*count = 0;
	do {
		ready = poll(&poll_fd, 1, timeout_ms);
	} while (ready < 0 && errno == EINTR);
	if (ready < 0)
		return -errno;
	if (ready == 0)
		return -ETIMEDOUT;
	do {
		got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	truncated = header.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
	for (struct cmsghdr *at = CMSG_FIRSTHDR(&header); at; at = CMSG_NXTHDR(&header, at)) {
		unsigned here;

		if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
			continue;
		here = (unsigned)((at->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds + *count, CMSG_DATA(at), here * sizeof(int));
		*count += here;
	}
	if (truncated) {
		close_all(fds, *count);
		*count = 0;
		return -EPROTO;
	}
	return got;
}
