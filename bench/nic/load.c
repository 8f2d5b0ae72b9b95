// SPDX-License-Identifier: MIT
/*
 * load.c - the clients of "bench nic": some persistent HTTP connections, each with
 * one request in flight, until all requests of a round are answered.  Bodies are
 * dropped in the kernel (MSG_TRUNC), except in the warm-up, where they may be
 * compared.  One thread, which owns everything.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest.h"
#include "nic.h"

#define HEAD_MAX 4096
#define EVENTS 64
#define RECEIVE_MAX ((size_t)1 << 20)

struct connection {
	int fd;
	bool in_body;
	size_t have; /* bytes of the head */
	size_t left; /* of the body */
	char head[HEAD_MAX];
};

struct load {
	struct nic_load what;
	int epoll;
	bool check;
	unsigned int unsent, unanswered; /* requests of this round */
	char request[NIC_PATH_MAX + 100];
	size_t request_length;
	char *wanted, *got; /* a body, to compare */
	struct connection *connections;
};

static void ask(struct load *load, struct connection *connection)
{
	if (!load->unsent)
		return;
	load->unsent--;
	connection->in_body = false;
	connection->have = 0;
	must(send(connection->fd, load->request, load->request_length, MSG_NOSIGNAL) ==
	     (ssize_t)load->request_length);
}

/* Fails unless a head is that of a good response with a body of the expected size. */
static void check_head(const struct load *load, const char *head)
{
	const char *line;

	if (strncmp(head, "HTTP/1.1 200 ", 13) != 0) {
		printf("%s", head);
		must(!"a good response");
	}
	for (line = strchr(head, '\n'); line && strncasecmp(line + 1, "content-length:", 15) != 0;
	     line = strchr(line + 1, '\n'))
		;
	must(line != NULL);
	must(strtoul(line + 16, NULL, 10) == load->what.size);
}

static void check_body(const struct load *load, const char *bytes, size_t left, size_t length)
{
	if (load->check)
		must(memcmp(bytes, load->wanted + load->what.size - left, length) == 0);
}

/* Returns whether a whole head is there; bytes of the body may follow. */
static bool take_head(struct load *load, struct connection *connection)
{
	ssize_t got = recv(connection->fd, connection->head + connection->have,
			   HEAD_MAX - 1 - connection->have, MSG_DONTWAIT);
	char *end;
	size_t extra;

	if (got < 0 && errno == EAGAIN)
		return false;
	must(got > 0);
	connection->have += (size_t)got;
	connection->head[connection->have] = '\0';
	end = memmem(connection->head, connection->have, "\r\n\r\n", 4);
	must(end != NULL || connection->have < HEAD_MAX - 1);
	if (!end)
		return false;
	end += 4;
	extra = connection->have - (size_t)(end - connection->head);
	must(extra <= load->what.size);
	check_body(load, end, load->what.size, extra);
	*(end - 2) = '\0';
	check_head(load, connection->head);
	connection->left = load->what.size - extra;
	connection->in_body = true;
	return true;
}

static bool take_body(struct load *load, struct connection *connection)
{
	size_t most = connection->left < RECEIVE_MAX ? connection->left : RECEIVE_MAX;
	ssize_t got = load->check ? recv(connection->fd, load->got, most, MSG_DONTWAIT)
				  : recv(connection->fd, NULL, most, MSG_DONTWAIT | MSG_TRUNC);

	if (got < 0 && errno == EAGAIN)
		return false;
	must(got > 0);
	check_body(load, load->got, connection->left, (size_t)got);
	connection->left -= (size_t)got;
	return true;
}

static void take(struct load *load, struct connection *connection)
{
	if (!connection->in_body && !take_head(load, connection))
		return;
	while (connection->left)
		if (!take_body(load, connection))
			return;
	load->unanswered--;
	ask(load, connection);
}

void load_round(struct load *load, unsigned int requests)
{
	load->unsent = load->unanswered = requests;
	for (unsigned int i = 0; i < load->what.connections; i++)
		ask(load, &load->connections[i]);
	while (load->unanswered) {
		struct epoll_event events[EVENTS];
		int count = epoll_wait(load->epoll, events, EVENTS, -1);

		must(count > 0);
		for (int i = 0; i < count; i++)
			take(load, events[i].data.ptr);
	}
}

static void join(struct load *load, struct connection *connection)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)load->what.port)};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
	const int on = 1;

	connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(connection->fd >= 0);
	must(inet_pton(AF_INET, NIC_SERVER, &address.sin_addr) == 1);
	must(connect(connection->fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	must(setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
	must(epoll_ctl(load->epoll, EPOLL_CTL_ADD, connection->fd, &event) == 0);
}

struct load *load_open(const struct nic_load *what)
{
	struct load *load = calloc(1, sizeof(*load));

	must(load != NULL);
	load->what = *what;
	load->check = what->check;
	load->request_length = (size_t)snprintf(load->request, sizeof(load->request),
						"GET %s HTTP/1.1\r\nHost: nic\r\n\r\n", what->path);
	must(load->request_length < sizeof(load->request));
	load->wanted = malloc(what->size);
	load->got = malloc(RECEIVE_MAX);
	load->connections = calloc(what->connections, sizeof(*load->connections));
	must(load->wanted && load->got && load->connections);
	nic_fill(load->wanted, 0, what->size);
	load->epoll = epoll_create1(EPOLL_CLOEXEC);
	must(load->epoll >= 0);
	for (unsigned int i = 0; i < what->connections; i++)
		join(load, &load->connections[i]);
	load_round(load, what->warm_up);
	load->check = false;
	return load;
}

void load_close(struct load *load)
{
	for (unsigned int i = 0; i < load->what.connections; i++)
		close(load->connections[i].fd);
	close(load->epoll);
	free(load->connections);
	free(load->wanted);
	free(load->got);
	free(load);
}
