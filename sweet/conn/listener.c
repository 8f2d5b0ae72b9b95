/* SPDX-License-Identifier: MIT */
/*
 * listener.c - see listener.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/container.h"
#include "base/list.h"
#include "base/timer.h"
#include "config/configuration.h"
#include "conn/connection.h"
#include "conn/listener.h"
#include "core/server.h"
#include "core/site.h"
#include "core/socket-options.h"
#include "event/loop.h"
#include "log/log.h"

#define LOG_INTERVAL_MS 10000
#define REST_MS 50

static void have_reserve(struct listener *listener)
{
	if (listener->reserve < 0)
		listener->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/*
 * No descriptors are left: closes the reserve, accepts one client and closes it, so that the others
 * are not stuck.  Returns false if none was there, or if the reserve cannot be opened again:
 * another thread may have taken the descriptor.
 */
static bool turn_away(struct listener *listener)
{
	int fd;

	if (listener->reserve >= 0)
		close(listener->reserve);
	listener->reserve = -1;
	fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	have_reserve(listener);
	return fd >= 0 && listener->reserve >= 0;
}

static void listener_rested(struct timer *timer)
{
	struct listener *listener = container_of(timer, struct listener, rest);

	have_reserve(listener);
	/* listener_next() follows later. */
	if (listener->accept.single && connection_any(listener->thread))
		return;
	if (loop_accept_next(listener->thread->loop, listener->fd) < 0)
		loop_timer_start(listener->thread->loop, timer, REST_MS, listener_rested);
}

/* Pauses: epoll would report waiting clients, and a ring's accept fail, again at once. */
static void failed(struct listener *listener, int error)
{
	struct loop *loop = listener->thread->loop;
	uint64_t now = loop_now_ms(loop);
	bool full = error == -EMFILE || error == -ENFILE;

	if (!listener->logged_ms || now - listener->logged_ms > LOG_INTERVAL_MS) {
		log_error("accepting connections: %s", strerror(-error));
		listener->logged_ms = now;
	}
	if (full ? turn_away(listener) : error != -ENOMEM && error != -ENOBUFS)
		return;
	loop_accept_rest(loop, listener->fd);
	loop_timer_start(loop, &listener->rest, REST_MS, listener_rested);
}

static void listener_accepted(struct loop_accept *op, int fd)
{
	struct listener *listener = container_of(op, struct listener, accept);

	if (fd < 0) {
		failed(listener, fd);
		return;
	}
	connection_open(listener->thread, fd, listener->tls, listener->status_only);
	/* The connection may have been refused. */
	if (op->single && !connection_any(listener->thread))
		listener_next(listener);
}

static void shut(struct listener *listener)
{
	timer_stop(&listener->rest);
	if (listener->fd >= 0)
		loop_close_fd(listener->thread->loop, listener->fd);
	if (listener->reserve >= 0)
		close(listener->reserve);
	listener->fd = listener->reserve = -1;
}

/* The loop accepts no more; the clients in the queue are still to be served. */
static void listener_stopped(struct loop_accept *op)
{
	struct listener *listener = container_of(op, struct listener, accept);
	int fd = 0;

	while (!listener->leave_queue && (fd >= 0 || errno == EINTR || errno == ECONNABORTED)) {
		fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			connection_open(listener->thread, fd, listener->tls, listener->status_only);
	}
	shut(listener);
	if (listener->retired)
		listener->retired(listener);
}

int listener_start(struct listener *listener, struct thread *thread, int fd, bool single)
{
	*listener = (struct listener){.accept = {.accepted = listener_accepted,
						 .stopped = listener_stopped,
						 .single = single},
				      .thread = thread,
				      .tls = listener->tls,
				      .status_only = listener->status_only,
				      .fd = fd,
				      .reserve = open("/dev/null", O_RDONLY | O_CLOEXEC)};
	listener_tune(listener);
	return loop_accept_start(thread->loop, &listener->accept, fd);
}

void listener_next(struct listener *listener)
{
	timer_stop(&listener->rest);
	if (listener->fd >= 0)
		(void)loop_accept_next(listener->thread->loop, listener->fd);
}

void listener_tune(struct listener *listener)
{
	const struct config *config = listener->thread->config_ref->config;

	if (listener->fd >= 0)
		socket_options_set(listener->fd, &config->sockets, config->limits.header_ms);
}

void listener_retire(struct listener *listener, bool leave_queue,
		     void (*retired)(struct listener *listener))
{
	listener->leave_queue = leave_queue;
	listener->retired = retired;
	loop_accept_stop(listener->thread->loop, listener->fd);
}

void listener_close(struct listener *listener)
{
	shut(listener);
}
