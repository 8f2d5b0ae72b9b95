/* SPDX-License-Identifier: MIT */
/*
 * null-generate.c - the limit of "bench dynamic": no server, just what any that
 * makes a body and sends it by copy has to do.
 *
 * One process and one thread, epoll, a buffer for each connection: a request
 * is looked for "size=" and its end, the body is made as the others make it,
 * and goes out behind a constant header as the socket takes it.  No parsing,
 * no limits, no time-outs, nobody else's memory: not for a network.
 * Usage: null-generate PORT
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BODY_MAX ((size_t)64 << 20)
#define HEAD_ROOM 128
#define EVENTS 64
#define BACKLOG 1024

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-\n";
static char pattern[65536];

struct connection {
	int fd;
	size_t asked; /* bytes of the request */
	char request[4096];
	char *answer; /* head and body */
	size_t room, length, sent;
};

/* Like cgi-examples/generate: pieces of a pattern, at places of its own. */
static void fill(char *body, size_t size)
{
	size_t period = sizeof(alphabet) - 1, step = sizeof(pattern) / period * period;

	for (size_t at = 0; at < size; at += step)
		memcpy(body + at, pattern, size - at < step ? size - at : step);
}

/* Makes the response to a complete request.  Returns false if it is unavailable. */
static bool make(struct connection *connection)
{
	const char *size_at = strstr(connection->request, "size=");
	size_t size = size_at ? strtoul(size_at + 5, NULL, 10) : 0;
	int head;

	if (size > BODY_MAX)
		return false;
	if (connection->room < HEAD_ROOM + size) {
		free(connection->answer);
		connection->room = HEAD_ROOM + size;
		connection->answer = malloc(connection->room);
		if (!connection->answer)
			return false;
	}
	head = snprintf(
		connection->answer, HEAD_ROOM,
		"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n", size);
	fill(connection->answer + head, size);
	connection->length = (size_t)head + size;
	connection->sent = connection->asked = 0;
	return true;
}

/* Continues until the socket has no data, or accepts none.  Returns false at the end. */
static bool go_on(struct connection *connection)
{
	for (;;) {
		size_t room = sizeof(connection->request) - 1 - connection->asked;
		ssize_t done;

		while (connection->sent < connection->length) {
			done = send(connection->fd, connection->answer + connection->sent,
				    connection->length - connection->sent, MSG_NOSIGNAL);
			if (done < 0)
				return errno == EAGAIN;
			connection->sent += (size_t)done;
		}
		done = recv(connection->fd, connection->request + connection->asked, room, 0);
		if (done <= 0)
			return done < 0 && errno == EAGAIN;
		connection->asked += (size_t)done;
		connection->request[connection->asked] = '\0';
		if (strstr(connection->request, "\r\n\r\n") && !make(connection))
			return false;
	}
}

static void end(struct connection *connection)
{
	close(connection->fd);
	free(connection->answer);
	free(connection);
}

static void accept_all(int listener, int epoll)
{
	const int on = 1;
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct connection *connection = calloc(1, sizeof(*connection));
		struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET,
					    .data.ptr = connection};

		if (!connection) {
			close(fd);
			continue;
		}
		connection->fd = fd;
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
			end(connection);
	}
}

static int listen_on(unsigned short port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return -1;
	return fd;
}

int main(int argc, char **argv)
{
	struct epoll_event event = {.events = EPOLLIN}, events[EVENTS];
	int listener, epoll = epoll_create1(EPOLL_CLOEXEC), count;

	if (argc != 2) {
		fprintf(stderr, "usage: null-generate PORT\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = alphabet[i % (sizeof(alphabet) - 1)];
	listener = listen_on((unsigned short)atoi(argv[1]));
	if (epoll < 0 || listener < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0) {
		fprintf(stderr, "null-generate: port %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	fprintf(stderr, "null-generate: ready\n");
	while ((count = epoll_wait(epoll, events, EVENTS, -1)) >= 0 || errno == EINTR) {
		for (int i = 0; i < count; i++) {
			struct connection *connection = events[i].data.ptr;

			if (!connection)
				accept_all(listener, epoll);
			else if (!go_on(connection))
				end(connection);
		}
	}
	perror("null-generate: epoll_wait");
	return 1;
}
