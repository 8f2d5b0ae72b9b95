/* SPDX-License-Identifier: MIT */
/*
 * null-epoll.c - null-server on epoll: a descriptor is registered once, for
 * both directions, edge-triggered.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "null-server.h"

#define EVENTS 256
#define BUFFER (32 << 10)

static void accept_all(const struct null_server *server, struct null_connection *connections,
		       int epoll)
{
	int fd;

	while ((fd = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
					    .data.fd = fd};

		if ((unsigned)fd >= NULL_CONNECTIONS) {
			close(fd);
			continue;
		}
		null_begin(server, &connections[fd], fd);
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
			close(fd);
	}
}

static void serve(const struct null_server *server, struct null_connection *connection, int fd,
		  uint32_t events)
{
	static char buffer[BUFFER];

	while (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
		ssize_t got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);

		if (got < 0 && errno == EAGAIN)
			break;
		if (got <= 0) {
			close(fd);
			return;
		}
		null_take(connection, buffer, (size_t)got);
		/* A short read has emptied the socket, unless the end came with it. */
		if (got < BUFFER && !(events & EPOLLRDHUP))
			break;
	}
	if (null_answer(server, connection, fd) < 0)
		close(fd);
}

void null_epoll(const struct null_server *server, struct null_connection *connections)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = server->listener};
	struct epoll_event events[EVENTS];
	int epoll = epoll_create1(EPOLL_CLOEXEC), count = 0;

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, server->listener, &event) < 0) {
		perror("null-server: epoll");
		return;
	}
	while (count >= 0 || errno == EINTR) {
		count = epoll_wait(epoll, events, EVENTS, -1);
		for (int i = 0; i < count; i++) {
			int fd = events[i].data.fd;

			if (fd == server->listener)
				accept_all(server, connections, epoll);
			else
				serve(server, &connections[fd], fd, events[i].events);
		}
	}
	perror("null-server: epoll_wait");
}
