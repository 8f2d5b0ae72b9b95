/* SPDX-License-Identifier: MIT */
/*
 * uring-server.c - a program with its own io_uring, which also sends units of
 * libnabc on it.
 *
 * Each client has one submission in flight: a receive, or a step of its send
 * operation.
 *
 * 	cc -o uring-server uring-server.c $(pkg-config --cflags --libs nabc liburing)
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <poll.h>

#include <liburing.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nabc-async.h>
#include <nabc.h>

#include "example.h"

/* user_data: a client, or one of these. */
#define ACCEPT 0
#define STOP 1

struct client {
	int fd;
	bool last;	       /* the response is the last one */
	NC_send_op *operation; /* the response in flight */
	struct client *next, **link;
	struct input input;
};

static struct io_uring ring;
static struct NC_range body;
static struct client *clients;
static bool stopping;

static struct io_uring_sqe *get_sqe(void)
{
	struct io_uring_sqe *sqe;

	while (!(sqe = io_uring_get_sqe(&ring)))
		io_uring_submit(&ring);
	return sqe;
}

static void accept_next(int listener)
{
	struct io_uring_sqe *sqe = get_sqe();

	/* Blocking sockets: io_uring itself waits until they are writable. */
	io_uring_prep_accept(sqe, listener, NULL, NULL, SOCK_CLOEXEC);
	io_uring_sqe_set_data64(sqe, ACCEPT);
}

static void drop(struct client *client)
{
	if (client->operation)
		NC_send_op_close(client->operation);
	*client->link = client->next;
	if (client->next)
		client->next->link = client->link;
	close(client->fd);
	free(client);
}

/* Submits the first or the next step of the response. */
static void send_step(struct client *client)
{
	struct io_uring_sqe *sqe = get_sqe();

	(void)NC_prep_send(sqe, client->operation); /* cannot fail: no step is in flight */
	io_uring_sqe_set_data(sqe, client);
}

static void respond(struct client *client, size_t request)
{
	char head[200];
	struct NC_send message = NC_SEND_INIT(.header = head, .ranges = &body, .range_count = 1);

	client->last = input_take(&client->input, request);
	message.header_length = response_head(head, sizeof(head), body.length, client->last);
	if (client->last)
		message.flags = NC_SEND_CLOSE;
	client->operation = NC_send_op_open(NULL, client->fd, &message, NC_SEND_OP_UNLINKED);
	if (client->operation)
		send_step(client);
	else
		drop(client);
}

/* Answers the next request, or receives more of it. */
static void serve(struct client *client)
{
	struct input *input = &client->input;
	size_t request = input_request(input);
	struct io_uring_sqe *sqe;

	if (request) {
		respond(client, request);
		return;
	}
	sqe = get_sqe();
	io_uring_prep_recv(sqe, client->fd, input->data + input->have, REQUEST_MAX - input->have,
			   0);
	io_uring_sqe_set_data(sqe, client);
}

static void sent(struct client *client, const struct io_uring_cqe *cqe)
{
	int progress = NC_send_op_complete(client->operation, cqe);

	if (progress == NC_PROGRESS_AGAIN) {
		send_step(client);
	} else if (progress == NC_PROGRESS_DONE && !client->last) {
		NC_send_op_close(client->operation);
		client->operation = NULL;
		serve(client);
	} else if (progress < 0 || progress == NC_PROGRESS_DONE) {
		drop(client);
	}
	/*
	 * Otherwise another completion follows; at NC_PROGRESS_SENT, another
	 * operation could start.
	 */
}

static void welcome(int fd)
{
	struct client *client = fd < 0 || stopping ? NULL : calloc(1, sizeof(*client));

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
	serve(client);
}

/* Waits for a completion and handles it. */
static void step(int listener)
{
	struct io_uring_cqe *cqe;
	struct client *client;

	io_uring_submit(&ring);
	if (io_uring_wait_cqe(&ring, &cqe) < 0)
		return;
	client = io_uring_cqe_get_data(cqe);
	if (cqe->user_data == STOP) {
		stopping = true;
	} else if (cqe->user_data == ACCEPT) {
		welcome(cqe->res);
		accept_next(listener);
	} else if (client->operation) {
		sent(client, cqe);
	} else if (cqe->res > 0) {
		client->input.have += (size_t)cqe->res;
		serve(client);
	} else {
		drop(client); /* end of the stream, an error, or a request that is too long */
	}
	io_uring_cqe_seen(&ring, cqe);
}

int main(int argc, char **argv)
{
	struct io_uring_sqe *sqe;
	int listener, signals;
	NC_cache *cache;

	if (argc != 3)
		errx(2, "usage: uring-server PORT FILE");
	errno = -io_uring_queue_init(256, &ring, 0);
	if (errno)
		err(1, "io_uring");
	signals = example_signals();
	sqe = get_sqe();
	io_uring_prep_poll_add(sqe, signals, POLLIN);
	io_uring_sqe_set_data64(sqe, STOP);
	cache = example_cache(argv[2], &body);
	listener = example_listen(argv[1], 0);
	accept_next(listener);
	while (!stopping)
		step(listener);
	/* End what is in flight, so that no completion is lost with the ring. */
	for (struct client *client = clients; client; client = client->next)
		shutdown(client->fd, SHUT_RDWR);
	while (clients)
		step(listener);
	io_uring_queue_exit(&ring);
	close(listener);
	close(signals);
	return NC_cache_close(cache) < 0;
}
