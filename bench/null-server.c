/* SPDX-License-Identifier: MIT */
/*
 * null-server.c - the limit of "bench fixed": no server, just what any that
 * sends bodies of a size over TCP has the kernel do, in the cheapest way known
 * for that size.
 *
 * One process and one thread; a constant head stands in front of each body, so
 * that an answer is one piece of memory or of a memfd: send() for small ones,
 * sendfile() with bounded unsent bytes for large ones.  Of a request only its
 * end is looked for.  No parsing, no names, no limits, no time-outs: not for a
 * network of others.
 *
 * Usage: null-server [ADDRESS:]PORT SIZE COUNT epoll|uring send|batch|splice kept|one
 *   ADDRESS  IPv4, by default 127.0.0.1
 *   COUNT  bodies that connections go round, so that the CPU's caches hold no
 *          more of them than of a server's files
 *   batch  send operations of io_uring, submitted together
 *   one    request a connection
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "null-server.h"

#define BACKLOG 1024
#define PAGE ((size_t)4096)
#define BODY_MAX ((size_t)64 << 20)
#define UNSENT_LIMIT (16 << 10) /* bytes; also the best value for SWEET's library */

void null_begin(const struct null_server *server, struct null_connection *connection, int fd)
{
	static unsigned turn;
	const int on = 1, limit = UNSENT_LIMIT;

	/* Each starts at a different body, as clients do. */
	*connection = (struct null_connection){.turn = turn++ % server->count};
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (server->way == NULL_SPLICE)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &limit, sizeof(limit));
}

void null_take(struct null_connection *connection, const char *data, size_t length)
{
	static const char end[] = "\r\n\r\n";

	/* Usually exactly one whole request. */
	if (connection->ended == 0 && length >= 4 && memcmp(data + length - 4, end, 4) == 0 &&
	    memmem(data, length - 1, end, 4) == NULL) {
		connection->owed++;
		return;
	}
	for (size_t i = 0; i < length; i++) {
		if (data[i] == end[connection->ended])
			connection->ended++;
		else
			connection->ended = data[i] == end[0];
		if (connection->ended == 4) {
			connection->owed++;
			connection->ended = 0;
		}
	}
}

size_t null_next(const struct null_server *server, const struct null_connection *connection,
		 const char **from)
{
	if (!connection->owed || connection->half_shut)
		return 0;
	*from = server->records + connection->turn * server->stride + connection->sent;
	return server->length - connection->sent;
}

void null_sent(const struct null_server *server, struct null_connection *connection, int fd,
	       size_t sent)
{
	connection->sent += sent;
	if (connection->sent < server->length)
		return;
	connection->sent = 0;
	connection->owed--;
	connection->turn = (connection->turn + 1) % server->count;
	if (server->one) {
		connection->half_shut = true;
		(void)shutdown(fd, SHUT_WR);
	}
}

int null_answer(const struct null_server *server, struct null_connection *connection, int fd)
{
	const char *from;
	size_t length;

	while ((length = null_next(server, connection, &from))) {
		off_t at = from - server->records;
		ssize_t sent = server->way == NULL_SPLICE
				       ? sendfile(fd, server->records_fd, &at, length)
				       : send(fd, from, length, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0)
			return errno == EAGAIN ? 0 : -1;
		null_sent(server, connection, fd, (size_t)sent);
	}
	return 0;
}

static int fill(struct null_server *server, size_t size)
{
	char head[256];
	char *records;
	int length = snprintf(head, sizeof(head),
			      "HTTP/1.1 200 OK\r\nServer: null\r\n"
			      "Content-Type: application/octet-stream\r\n"
			      "Content-Length: %zu\r\n%s\r\n",
			      size, server->one ? "Connection: close\r\n" : "");

	server->length = (size_t)length + size;
	server->stride = (server->length + PAGE - 1) & ~(PAGE - 1);
	server->records_fd = memfd_create("records", MFD_CLOEXEC);
	if (server->records_fd < 0 ||
	    ftruncate(server->records_fd, (off_t)(server->stride * server->count)) < 0)
		return -1;
	records = mmap(NULL, server->stride * server->count, PROT_READ | PROT_WRITE, MAP_SHARED,
		       server->records_fd, 0);
	if (records == MAP_FAILED)
		return -1;
	for (unsigned i = 0; i < server->count; i++) {
		memcpy(records + i * server->stride, head, (size_t)length);
		memset(records + i * server->stride + length, 'a' + (int)(i % 26), size);
	}
	server->records = records;
	return 0;
}

static int listen_on(const char *where)
{
	const int on = 1;
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const char *port = strchr(where, ':');
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	char name[INET_ADDRSTRLEN];

	if (port) {
		snprintf(name, sizeof(name), "%.*s", (int)(port - where), where);
		if (inet_pton(AF_INET, name, &address.sin_addr) != 1) {
			errno = EINVAL;
			return -1;
		}
	}
	address.sin_port = htons((unsigned short)atoi(port ? port + 1 : where));
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0)
		return -1;
	return fd;
}

static int usage(void)
{
	fputs("usage: null-server [ADDRESS:]PORT SIZE COUNT epoll|uring send|batch|splice "
	      "kept|one\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static struct null_connection connections[NULL_CONNECTIONS];
	static const char *const ways[] = {
		[NULL_SEND] = "send", [NULL_BATCH] = "batch", [NULL_SPLICE] = "splice"};
	struct null_server server = {.way = NULL_SEND};
	bool uring;
	size_t size;

	if (argc != 7)
		return usage();
	size = strtoul(argv[2], NULL, 10);
	server.count = (unsigned)strtoul(argv[3], NULL, 10);
	uring = strcmp(argv[4], "uring") == 0;
	while (server.way < NULL_SPLICE && strcmp(argv[5], ways[server.way]))
		server.way++;
	server.one = strcmp(argv[6], "one") == 0;
	if (!server.count || size > BODY_MAX || strcmp(argv[5], ways[server.way]) ||
	    (server.way == NULL_BATCH && !uring))
		return usage();
	signal(SIGPIPE, SIG_IGN);
	server.listener = listen_on(argv[1]);
	if (server.listener < 0 || fill(&server, size) < 0) {
		perror("null-server");
		return 1;
	}
	printf("null-server: ready\n");
	fflush(stdout);
	(uring ? null_uring : null_epoll)(&server, connections);
	return 1;
}
