/* SPDX-License-Identifier: MIT */
/*
 * listener.c - see listener.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn/connection.h"
#include "conn/listener.h"
#include "core/socket-options.h"

#define TELL_MS 10000
#define REST_MS 50

static void have_reserve(struct listener *listener)
{
	if (listener->reserve < 0)
		listener->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/*
 * Out of descriptors: one client is turned away, so that the rest are not stuck.
 * False: nobody was, or nobody can be the next time.  Between the two calls any
 * thread may take the descriptor that was given up.
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

static void rested(struct timer *timer)
{
	struct listener *listener =
		(struct listener *)((char *)timer - offsetof(struct listener, rest));

	have_reserve(listener);
	/* It is vacated later. */
	if (listener->accept.single && listener->thread->connections)
		return;
	if (loop_accept_next(listener->thread->loop, listener->fd) < 0)
		loop_timer_start(listener->thread->loop, timer, REST_MS, rested);
}

/* What is wanting now will be so at once again: epoll tells of who waits, a ring's accept fails. */
static void failed(struct listener *listener, int error)
{
	struct loop *loop = listener->thread->loop;
	uint64_t now = loop_now_ms(loop);
	bool full = error == -EMFILE || error == -ENFILE;

	if (!listener->told_ms || now - listener->told_ms > TELL_MS) {
		log_error("accepting connections: %s", strerror(-error));
		listener->told_ms = now;
	}
	if (full ? turn_away(listener) : error != -ENOMEM && error != -ENOBUFS)
		return;
	loop_accept_rest(loop, listener->fd);
	loop_timer_start(loop, &listener->rest, REST_MS, rested);
}

static void accepted(struct loop_accept *op, int fd)
{
	struct listener *listener = (struct listener *)op;

	if (fd < 0) {
		failed(listener, fd);
		return;
	}
	connection_open(listener->thread, fd);
	/* It may have been turned away. */
	if (op->single && !listener->thread->connections)
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

/* The loop accepts no more; the clients that wait in the queue have been promised an answer. */
static void stopped(struct loop_accept *op)
{
	struct listener *listener = (struct listener *)op;
	int fd = 0;

	while (!listener->leave_queue && (fd >= 0 || errno == EINTR || errno == ECONNABORTED)) {
		fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			connection_open(listener->thread, fd);
	}
	shut(listener);
	if (listener->retired)
		listener->retired(listener);
}

int listener_start(struct listener *listener, struct thread *thread, int fd, bool single)
{
	*listener = (struct listener){
		.accept = {.accepted = accepted, .stopped = stopped, .single = single},
		.thread = thread,
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
