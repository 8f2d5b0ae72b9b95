/* SPDX-License-Identifier: MIT */
/*
 * honest.c - honest clients: they request known documents, at a rate, and compare
 * every byte.
 *
 *	honest [-a AUTHORITY] [-f FIELD] [-n TURNS] PORT RATE FIGURES TARGET=FILE...
 *
 * RATE requests a second are begun, all that go if it is 0, on CLIENTS
 * connections, each of which ends after TURNS requests (20) and comes from another
 * of 1000 addresses, 127.0.2.1 and following; a request that finds no connection
 * free waits, and what is not begun within LATE_NS is not made up for.  FILE holds the body.
 * With -a, they use TLS, and trust this authority; each connection performs a full handshake.
 * -f: a line of each head, such as "Authorization: Basic ...".
 * Figures: 0 good answers, 1 errors, 2 connections, 3 the slowest answer in us, 4 times late,
 * 5 how the last error came about (an errno, or 1000 + status), 6 us of all answers; from TIMES
 * on, answers by their time, EIGHTHS numbers for each power of two of us.
 * Single-threaded; owns its sockets.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "honest-tls.h"
#include "hostile.h"

#define CLIENTS 16
#define ADDRESSES 1000
#define TARGETS 16
#define ROOM (8 << 20)
#define LATE_NS 20000000u
#define PATIENCE_NS UINT64_C(10000000000)
#define RESTED_NS UINT64_C(5000000000)

#define EIGHTHS 8

enum { GOOD, ERRORS, CONNECTIONS, SLOWEST, LATE, REASON, ALL_US, TIMES };

struct target {
	char request[512];
	char *body;
	size_t length;
};

struct client {
	int fd; /* -1: not connected */
	unsigned turns;
	const struct target *target; /* NULL: free */
	bool connecting, shaking;
	SSL *ssl; /* NULL: clear text */
	uint64_t since_ns, due_ns;
	size_t have, head; /* bytes of the answer; of its head, 0 until it is there */
	char *data;
};

static struct target targets[TARGETS];
static unsigned target_count;
static struct client clients[CLIENTS];
static struct sockaddr_in server;
static int poller;
static bool secure;
static unsigned most_turns = 20;
static const char *field = "User-Agent: honest";

static void leave(struct client *client)
{
	if (client->fd >= 0) {
		tls_leave(client->ssl);
		close(client->fd);
	}
	client->ssl = NULL;
	client->fd = -1;
	client->target = NULL;
}

static void fail(struct client *client, int reason)
{
	figures[ERRORS]++;
	figures[REASON] = (uint64_t)reason;
	leave(client);
}

static void start(struct client *client)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = client};
	static unsigned turn;
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(0x7f000201 + turn++ % ADDRESSES)};
	int on = 1;

	client->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (client->fd < 0)
		err(1, "socket");
	client->turns = 0;
	client->connecting = true;
	client->shaking = false;
	figures[CONNECTIONS]++;
	(void)setsockopt(client->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	if (bind(client->fd, (struct sockaddr *)&from, sizeof(from)) < 0 ||
	    (connect(client->fd, (struct sockaddr *)&server, sizeof(server)) < 0 &&
	     errno != EINPROGRESS) ||
	    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
	    epoll_ctl(poller, EPOLL_CTL_ADD, client->fd, &event) < 0)
		fail(client, errno);
}

static void say(struct client *client)
{
	size_t length = strlen(client->target->request);

	if (tls_send(client->ssl, client->fd, client->target->request, length) != (ssize_t)length)
		fail(client, errno);
}

static void ask(struct client *client, const struct target *target, uint64_t due_ns)
{
	uint64_t now = now_ns();

	/* As browsers do: the server may just be closing a connection that was idle for long. */
	if (client->fd >= 0 && now - client->since_ns > RESTED_NS)
		leave(client);
	client->target = target;
	client->since_ns = now;
	client->due_ns = due_ns;
	client->have = client->head = 0;
	if (client->fd < 0)
		start(client);
	else
		say(client);
}

static void shake(struct client *client)
{
	int done = tls_shake(client->ssl);

	if (done < 0) {
		fail(client, errno);
	} else if (done) {
		client->shaking = false;
		say(client);
	}
}

static void connected(struct client *client)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
	socklen_t length = sizeof(int);
	int error = 0;

	client->connecting = false;
	if (getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 || error)
		fail(client, error);
	else if (epoll_ctl(poller, EPOLL_CTL_MOD, client->fd, &event) < 0)
		fail(client, errno);
	else if (secure && !(client->ssl = tls_enter(client->fd)))
		fail(client, ENOMEM);
	else if ((client->shaking = secure))
		shake(client);
	else
		say(client);
}

/* Counts an answer: to its power of two, and the eighth between it and the next. */
static void count_time(uint64_t us)
{
	unsigned power = us ? 63 - (unsigned)__builtin_clzll(us) : 0;
	uint64_t eighth = ((us << 3) >> power) & 7;
	size_t at = TIMES + EIGHTHS * power + eighth;

	figures[at < FIGURES ? at : FIGURES - 1]++;
}

/* The response is complete; it is right if it equals the file. */
static void judge(struct client *client)
{
	const struct target *target = client->target;
	uint64_t us = (now_ns() - client->due_ns) / 1000;

	if (memcmp(client->data + client->head, target->body, target->length) != 0) {
		fail(client, EILSEQ);
		return;
	}
	figures[GOOD]++;
	figures[ALL_US] += us;
	count_time(us);
	if (us > figures[SLOWEST])
		figures[SLOWEST] = us;
	client->target = NULL;
	if (++client->turns == most_turns)
		leave(client);
}

static void take(struct client *client)
{
	ssize_t got;
	char *blank;

	if (client->connecting) {
		connected(client);
		return;
	}
	if (client->shaking) {
		shake(client);
		return;
	}
	got = tls_recv(client->ssl, client->fd, client->data + client->have, ROOM - client->have);

	if (got < 0 && errno == EAGAIN)
		return;
	/* Unused since a burst, and the server closes it. */
	if (got == 0 && !client->target) {
		leave(client);
		return;
	}
	if (got <= 0 || !client->target) {
		fail(client, got < 0 ? errno : ECONNRESET);
		return;
	}
	client->have += (size_t)got;
	if (!client->head) {
		char *last = memmem(client->data, client->have, "\r\n\r\n", 4);

		blank = memchr(client->data, ' ', client->have);
		if (!last)
			return;
		client->head = (size_t)(last - client->data) + 4;
		if (!blank || atoi(blank) != 200) {
			fail(client, 1000 + (blank ? atoi(blank) : 0));
			return;
		}
	}
	if (client->have - client->head >= client->target->length)
		judge(client);
}

static void add_target(char *text)
{
	struct target *target = &targets[target_count++];
	char *path = strrchr(text, '=');
	struct stat stat;
	int fd;

	if (target_count > TARGETS || !path)
		errx(1, "%s: TARGET=FILE, at most %d", text, TARGETS);
	*path++ = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &stat) < 0)
		err(1, "%s", path);
	target->length = (size_t)stat.st_size;
	target->body = malloc(target->length + 1);
	if (!target->body || target->length > ROOM / 2 ||
	    read(fd, target->body, target->length) != stat.st_size)
		errx(1, "%s: cannot be read", path);
	close(fd);
	snprintf(target->request, sizeof(target->request),
		 "GET %s HTTP/1.1\r\nHost: test\r\n%s\r\n\r\n", text, field);
}

/* Starts due requests; returns how long to wait for the next. */
static int start_due(uint64_t started_ns, double rate)
{
	static uint64_t begun, skipped_ns;
	uint64_t now = now_ns(), due = now;

	for (unsigned i = 0; i < CLIENTS; i++) {
		struct client *client = &clients[i];

		if (client->target && now - client->since_ns > PATIENCE_NS)
			fail(client, ETIMEDOUT);
		if (client->target)
			continue;
		if (rate > 0)
			due = started_ns + skipped_ns + (uint64_t)((double)begun * 1e9 / rate);
		if (due > now)
			return (int)((due - now) / 1000000) + 1;
		if (now - due > LATE_NS) {
			skipped_ns += now - due;
			due = now;
			figures[LATE]++;
		}
		ask(client, &targets[begun % target_count], due);
		begun++;
	}
	return 100;
}

int main(int argc, char **argv)
{
	struct epoll_event events[CLIENTS];
	uint64_t started;
	double rate;
	int option;

	while ((option = getopt(argc, argv, "a:f:n:")) >= 0) {
		if (option == 'a') {
			secure = true;
			tls_begin(optarg);
		} else if (option == 'f') {
			field = optarg;
		} else if (option != 'n' || (most_turns = (unsigned)atoi(optarg)) == 0) {
			optind = argc;
		}
	}
	argv += optind - 1;
	argc -= optind - 1;
	if (argc < 5)
		errx(1, "usage: honest [-a AUTHORITY] [-f FIELD] [-n TURNS] PORT RATE FIGURES "
			"TARGET=FILE...");
	server = (struct sockaddr_in){.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)atoi(argv[1])),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	rate = atof(argv[2]);
	begin(argv[3]);
	for (int i = 4; i < argc; i++)
		add_target(argv[i]);
	poller = epoll_create1(EPOLL_CLOEXEC);
	for (unsigned i = 0; i < CLIENTS; i++)
		if (!(clients[i] = (struct client){.fd = -1, .data = malloc(ROOM)}).data)
			err(1, "malloc");
	started = now_ns();
	while (!ended) {
		int wait = start_due(started, rate);
		int count = epoll_wait(poller, events, CLIENTS, wait);

		for (int i = 0; i < count; i++)
			take(events[i].data.ptr);
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		free(clients[i].data);
	for (unsigned i = 0; i < target_count; i++)
		free(targets[i].body);
	return 0;
}
