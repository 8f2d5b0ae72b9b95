/* SPDX-License-Identifier: MIT */
/*
 * listener.c - see listener.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <connection.h>
#include <listener.h>
#include <socket-options.h>

#define TELL_MS 10000

/* Out of descriptors: one client is turned away, so that the rest are not stuck. */
static void turn_away(struct listener *listener, int error)
{
	uint64_t now = loop_now_ms(listener->server->loop);
	int fd;

	if (!listener->told_ms || now - listener->told_ms > TELL_MS) {
		log_error("accepting connections: %s", strerror(-error));
		listener->told_ms = now;
	}
	if (error != -EMFILE && error != -ENFILE)
		return;
	if (listener->reserve >= 0)
		close(listener->reserve);
	fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	listener->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void accepted(struct loop_accept *op, int fd)
{
	struct listener *listener = (struct listener *)op;

	if (fd < 0)
		turn_away(listener, fd);
	else
		connection_open(listener->server, fd);
	/* It may have been turned away. */
	if (op->single && !listener->server->connections)
		listener_next(listener);
}

static void shut(struct listener *listener)
{
	if (listener->fd >= 0)
		loop_close_fd(listener->server->loop, listener->fd);
	if (listener->reserve >= 0)
		close(listener->reserve);
	listener->fd = listener->reserve = -1;
}

/* The loop accepts no more; the clients that wait in the queue have been promised an answer. */
static void stopped(struct loop_accept *op)
{
	struct listener *listener = (struct listener *)op;
	int fd = 0;

	while (!listener->leave_queue && (fd >= 0 || errno == EINTR || errno == ECONNABORTED)) {
		fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			connection_open(listener->server, fd);
	}
	shut(listener);
	if (listener->retired)
		listener->retired(listener);
}

int listener_start(struct listener *listener, struct server *server, int fd, bool single)
{
	*listener = (struct listener){
		.accept = {.accepted = accepted, .stopped = stopped, .single = single},
		.server = server,
		.fd = fd,
		.reserve = open("/dev/null", O_RDONLY | O_CLOEXEC)};
	listener_tune(listener);
	return loop_accept_start(server->loop, &listener->accept, fd);
}

void listener_next(struct listener *listener)
{
	if (listener->fd >= 0)
		loop_accept_next(listener->server->loop, listener->fd);
}

void listener_tune(struct listener *listener)
{
	const struct config *config = listener->server->generation->config;

	if (listener->fd >= 0)
		socket_options_set(listener->fd, &config->sockets, config->limits.header_ms);
}

void listener_retire(struct listener *listener, bool leave_queue,
		     void (*retired)(struct listener *listener))
{
	listener->leave_queue = leave_queue;
	listener->retired = retired;
	loop_accept_stop(listener->server->loop, listener->fd);
}

void listener_close(struct listener *listener)
{
	shut(listener);
}
