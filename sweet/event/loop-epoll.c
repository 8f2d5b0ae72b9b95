/* SPDX-License-Identifier: MIT */
/*
 * loop-epoll.c - the event loop on epoll: works on every Linux.
 *
 * A descriptor is registered once, edge-triggered for both directions, so no call
 * is needed to change the events.  If a descriptor becomes readable while nobody
 * receives, this is remembered.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "event/loop-backend.h"
#include "event/loop.h"

#define EVENTS 256
#define BUFFER (32 << 10)
/* Reads of one connection in a turn: a fast sender must not delay the others. */
#define READS 4

struct epoll_state {
	int epoll;
	struct epoll_event events[EVENTS];
	char buffer[BUFFER];
	int *again; /* descriptors to read without an event */
	unsigned again_count, again_room;
};

static int epoll_loop_open(struct loop *loop, char *why, size_t why_size)
{
	struct epoll_state *state = malloc(sizeof(*state));

	if (state) {
		state->again = NULL;
		state->again_count = state->again_room = 0;
		state->epoll = epoll_create1(EPOLL_CLOEXEC);
	}
	if (!state || state->epoll < 0) {
		int error = state ? -errno : -ENOMEM;

		snprintf(why, why_size, "epoll_create1: %s", strerror(-error));
		free(state);
		return error;
	}
	loop->state = state;
	return 0;
}

static void epoll_loop_close(struct loop *loop)
{
	struct epoll_state *state = loop->state;

	close(state->epoll);
	free(state->again);
	free(state);
}

static uint64_t key(const struct loop *loop, int fd)
{
	return (uint64_t)loop->fds[fd].generation << 32 | (unsigned)fd;
}

/* Reads fd in the next turn; without memory, it is read at the next edge. */
static void read_again(struct loop *loop, int fd)
{
	struct epoll_state *state = loop->state;

	if (state->again_count == state->again_room) {
		unsigned room = state->again_room ? state->again_room * 2 : 64;
		int *again = realloc(state->again, room * sizeof(*again));

		if (!again)
			return;
		state->again = again;
		state->again_room = room;
	}
	state->again[state->again_count++] = fd;
	loop->again = true;
}

static int epoll_begin(struct loop *loop, int fd)
{
	struct epoll_state *state = loop->state;
	struct loop_fd *entry = &loop->fds[fd];
	struct epoll_event event = {.data.u64 = key(loop, fd)};

	/* If threads share a listening socket, an event wakes only one of them. */
	event.events = entry->receive || entry->sending ? EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET
		       : entry->accept			? EPOLLIN | EPOLLEXCLUSIVE
							: EPOLLIN | EPOLLET;
	if (epoll_ctl(state->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	entry->registered = true;
	entry->readable = false;
	return 0;
}

/* Deletes the registration: EPOLLEXCLUSIVE does not permit changing events. */
static void epoll_rest(struct loop *loop, int fd)
{
	struct epoll_state *state = loop->state;
	struct epoll_event event = {0};

	(void)epoll_ctl(state->epoll, EPOLL_CTL_DEL, fd, &event);
	loop->fds[fd].registered = false;
}

/* Without memory to report it in the next turn, the accept stays until fd is closed. */
static void epoll_stop_accept(struct loop *loop, int fd)
{
	struct epoll_state *state = loop->state;
	struct epoll_event event = {0};

	(void)epoll_ctl(state->epoll, EPOLL_CTL_DEL, fd, &event);
	loop->fds[fd].registered = false;
	read_again(loop, fd);
}

static void epoll_pause(struct loop *loop, int fd)
{
	(void)loop;
	(void)fd; /* receive() checks the flag */
}

static void epoll_resume(struct loop *loop, int fd)
{
	if (loop->fds[fd].readable)
		read_again(loop, fd);
}

static void epoll_unwatch(struct loop *loop, int fd)
{
	struct epoll_state *state = loop->state;
	struct epoll_event event = {0};

	if (loop->fds[fd].registered)
		(void)epoll_ctl(state->epoll, EPOLL_CTL_DEL, fd, &event);
	loop->fds[fd].registered = false;
}

static void epoll_await_room(struct loop *loop, int fd)
{
	(void)loop;
	(void)fd; /* already registered for EPOLLOUT edges */
}

static void epoll_close_fd(struct loop *loop, int fd)
{
	loop->fds[fd].registered = false;
	loop->fds[fd].readable = false;
	close(fd);
}

/* ending: the peer has closed, so no further edge will report the end. */
static void receive(struct loop *loop, int fd, bool ending)
{
	struct epoll_state *state = loop->state;
	uint32_t generation = loop->fds[fd].generation;

	for (unsigned reads = 0; reads < READS; reads++) {
		ssize_t got;

		if (!loop->fds[fd].receive || loop->fds[fd].paused) {
			loop->fds[fd].readable = true;
			return;
		}
		loop->fds[fd].readable = false;
		got = recv(fd, state->buffer, BUFFER, MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return;
		loop_received(loop, fd, state->buffer, got < 0 ? -errno : (int)got);
		if (got <= 0 || loop->fds[fd].generation != generation)
			return;
		/* A short read has emptied the socket. */
		if (got < BUFFER && !ending)
			return;
	}
	loop->fds[fd].readable = true;
	read_again(loop, fd);
}

static void accept_all(struct loop *loop, int fd)
{
	uint32_t generation = loop->fds[fd].generation;

	for (unsigned i = 0; i < 64; i++) {
		int accepted = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (accepted < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (accepted < 0 && errno == EAGAIN)
			return;
		loop_accepted(loop, fd, accepted < 0 ? -errno : accepted);
		if (accepted < 0 || loop->fds[fd].generation != generation ||
		    loop->fds[fd].stopping || loop->fds[fd].resting)
			return;
	}
}

static void dispatch(struct loop *loop, const struct epoll_event *event)
{
	int fd = (int)(uint32_t)event->data.u64;
	uint32_t generation = (uint32_t)(event->data.u64 >> 32);
	struct loop_fd *entry = &loop->fds[fd];

	if (entry->generation != generation)
		return;
	if (entry->accept) {
		if (!entry->stopping && !entry->resting)
			accept_all(loop, fd);
		return;
	}
	if (entry->watch && !entry->sending) {
		entry->watch->ready(entry->watch);
		return;
	}
	if (event->events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
		loop_send_continue(loop, fd);
	if (loop->fds[fd].generation != generation ||
	    !(event->events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)))
		return;
	if (loop->fds[fd].watch)
		loop->fds[fd].watch->ready(loop->fds[fd].watch);
	else
		receive(loop, fd, event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
}

static bool epoll_loop_wait(struct loop *loop, int timeout)
{
	struct epoll_state *state = loop->state;
	unsigned again = state->again_count;
	int count = epoll_wait(state->epoll, state->events, EVENTS, timeout);

	loop_tick(loop);
	for (int i = 0; i < count; i++) {
		dispatch(loop, &state->events[i]);
		loop_complete_send(loop);
	}
	for (unsigned i = 0; i < again; i++) {
		int fd = state->again[i];

		if (loop->fds[fd].receive && loop->fds[fd].readable)
			receive(loop, fd, true);
		else if (loop->fds[fd].stopping)
			loop_accept_stopped(loop, fd);
	}
	state->again_count -= again;
	if (again)
		memmove(state->again, state->again + again,
			state->again_count * sizeof(*state->again));
	loop->again = state->again_count > 0;
	return count >= 0 && count < EVENTS;
}

const struct loop_backend loop_epoll = {
	.name = "epoll",
	.open = epoll_loop_open,
	.close = epoll_loop_close,
	.begin = epoll_begin,
	.rest = epoll_rest,
	.stop_accept = epoll_stop_accept,
	.pause = epoll_pause,
	.resume = epoll_resume,
	.unwatch = epoll_unwatch,
	.await_room = epoll_await_room,
	.close_fd = epoll_close_fd,
	.wait = epoll_loop_wait,
};
