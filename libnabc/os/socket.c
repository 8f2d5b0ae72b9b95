/* SPDX-License-Identifier: MIT */
/*
 * socket.c - see socket.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include "os/socket.h"

void nc_socket_bound_unsent(int socket, size_t limit)
{
	unsigned value = 0;
	socklen_t length = sizeof(value);

	/* 0: the socket uses net.ipv4.tcp_notsent_lowat. */
	if (getsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, &length) < 0 || value != 0)
		return;
	value = limit < INT_MAX ? (unsigned)limit : INT_MAX;
	(void)setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, sizeof(value));
}

void nc_socket_unbound_unsent(int socket, size_t limit)
{
	unsigned value = 0, none = 0;
	socklen_t length = sizeof(value);

	if (getsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, &length) == 0 &&
	    value == limit)
		(void)setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &none, sizeof(none));
}

bool nc_socket_waits(int socket)
{
	int mode = fcntl(socket, F_GETFL);

	return mode >= 0 && !(mode & O_NONBLOCK);
}

bool nc_socket_has_room(int socket)
{
	struct pollfd event = {.fd = socket, .events = POLLOUT};

	return poll(&event, 1, 0) != 0;
}

/*
 * If sendfile(2) ends early though the socket has room, the kernel does not note that the caller waits
 * for room: an edge-triggered caller would wait for an event that never comes.
 */
ssize_t nc_socket_sendfile(int socket, int file, off_t *from, size_t length)
{
	size_t done = 0;
	ssize_t sent;

	do {
		sent = sendfile(socket, file, from, length - done);
		done += sent > 0 ? (size_t)sent : 0;
	} while ((sent > 0 && done < length && !nc_socket_waits(socket)) ||
		 (sent < 0 && errno == EINTR));
	return done ? (ssize_t)done : sent;
}

bool nc_socket_sigpipe_ignored(void)
{
	struct sigaction action;

	return sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}
