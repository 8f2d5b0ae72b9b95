/* SPDX-License-Identifier: MIT */
/*
 * epoll-server.c - a program's own event loop, with a sender of libnabc in it.
 *
 * The loop waits for the sender's descriptor like for any other.  The sender sends
 * responses of any length; the loop need not handle full sockets.
 *
 * 	cc -o epoll-server epoll-server.c $(pkg-config --cflags --libs nabc)
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nabc-async.h>
#include <nabc.h>

#include "example.h"

struct client {
	int fd;
	bool sending; /* the sender has a response */
	bool last;    /* which is the last one */
	struct client *next, **link;
	struct input input;
};

static NC_sender *sender;
static struct NC_range body;
static struct client *clients;

static void drop(struct client *client)
{
	*client->link = client->next;
	if (client->next)
		client->next->link = client->link;
	close(client->fd);
	free(client);
}

static bool respond(struct client *client, size_t request)
{
	char head[200];
	struct NC_send message = NC_SEND_INIT(.header = head, .ranges = &body, .range_count = 1);

	client->last = input_take(&client->input, request);
	message.header_length = response_head(head, sizeof(head), body.length, client->last);
	if (client->last)
		message.flags = NC_SEND_CLOSE;
	client->sending = NC_sender_send(sender, client->fd, &message, client) == 0;
	return client->sending;
}

/* Answers the next request, or reads until one is complete; drops the client at its end. */
static void serve(struct client *client)
{
	while (!client->sending) {
		struct input *input = &client->input;
		size_t request = input_request(input);
		ssize_t got;

		if (request) {
			if (!respond(client, request))
				break;
			return;
		}
		got = recv(client->fd, input->data + input->have, REQUEST_MAX - input->have, 0);
		if (got < 0 && errno == EAGAIN)
			return;
		/* End of the stream, an error, or a request that is too long. */
		if (got <= 0)
			break;
		input->have += (size_t)got;
	}
	if (!client->sending)
		drop(client);
}

static void welcome(int epoll, int listener)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct client *client = fd < 0 ? NULL : calloc(1, sizeof(*client));

	if (!client) {
		close(fd);
		return;
	}
	client->fd = fd;
	client->link = &clients;
	client->next = clients;
	if (clients)
		clients->link = &client->next;
	clients = client;
	event.data.ptr = client;
	/* Edge-triggered: serve() reads until nothing is left. */
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		drop(client);
}

static void reap(void)
{
	struct NC_completion done[32];
	int count = NC_sender_reap(sender, done, sizeof(*done), 32);

	for (int i = 0; i < count; i++) {
		struct client *client = done[i].data;

		client->sending = false;
		/* Only now may its socket be closed. */
		if (done[i].error || client->last)
			drop(client);
		else
			serve(client);
	}
}

static void watch(int epoll, int fd, void *what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};

	if (fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		err(1, "epoll");
}

int main(int argc, char **argv)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), listener, signals;
	bool stopping = false;
	NC_cache *cache;

	if (argc != 3)
		errx(2, "usage: epoll-server PORT FILE");
	signals = example_signals();
	cache = example_cache(argv[2], &body);
	sender = NC_sender_open(cache, 1024, 0);
	if (!sender)
		err(1, "sender");
	listener = example_listen(argv[1], SOCK_NONBLOCK);
	watch(epoll, signals, &signals);
	watch(epoll, listener, &listener);
	watch(epoll, NC_sender_fd(sender), &sender);
	watch(epoll, NC_cache_fd(cache), &cache);
	while (!stopping) {
		struct epoll_event events[1];
		int count = epoll_wait(epoll, events, 1, -1);

		for (int i = 0; i < count; i++) {
			void *what = events[i].data.ptr;

			if (what == &signals)
				stopping = true;
			else if (what == &listener)
				welcome(epoll, listener);
			else if (what == &sender)
				reap();
			else if (what == &cache)
				NC_cache_dispatch(cache);
			else
				serve(what);
		}
		/* Start everything that was queued in this iteration. */
		NC_sender_submit(sender);
	}
	NC_sender_close(sender);
	while (clients)
		drop(clients);
	close(listener);
	close(signals);
	close(epoll);
	return NC_cache_close(cache) < 0;
}
