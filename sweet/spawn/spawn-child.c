/* SPDX-License-Identifier: MIT */
/*
 * spawn-child.c - see spawn-child.h.
 *
 * A child is freed when it was closed and the end of its group was reported, because
 * the spawner's channel refers to it until then.  At the end of the server, no ends
 * are reported any more.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include <glib.h>

#include "base/container.h"
#include "base/list.h"
#include "base/timer.h"
#include "event/loop.h"
#include "spawn/spawn-child.h"
#include "spawn/spawner-wire.h"
#include "spawn/spawner.h"

#define STARTS 3 /* attempts, if the spawner dies during a start */

struct spawn_child {
	struct start start;
	struct spawner_channel *channel;
	struct loop *loop;
	struct timer end_timer;
	unsigned starts;
	char *block; /* of its request */
	void (*started)(void *user, int error, int pidfd);
	void (*ended)(void *user, int status);
	void *user;
	struct list_node closed; /* in the list of closed children */
	bool over, gone;	 /* it has ended; so has its group */
};

static void close_fds(struct spawn_child *child)
{
	for (unsigned i = 0; i < SPAWNER_FDS; i++) {
		if (child->start.fds[i] >= 0)
			close(child->start.fds[i]);
		child->start.fds[i] = -1;
	}
}

static void free_child(struct spawn_child *child)
{
	list_remove(&child->closed);
	close_fds(child);
	g_free(child->block);
	g_free(child);
}

static void child_ended(struct start *start, int status)
{
	struct spawn_child *child = container_of(start, struct spawn_child, start);

	child->over = true;
	if (!list_is_linked(&child->closed) && child->ended)
		child->ended(child->user, status);
}

static void child_gone(struct start *start)
{
	struct spawn_child *child = container_of(start, struct spawn_child, start);

	child->gone = true;
	if (list_is_linked(&child->closed))
		free_child(child);
}

static void child_done(struct start *start, int error, int pidfd)
{
	struct spawn_child *child = container_of(start, struct spawn_child, start);

	if (error == EOWNERDEAD && !list_is_linked(&child->closed) && ++child->starts < STARTS) {
		spawner_ask(child->channel, start);
		return;
	}
	close_fds(child);
	child->gone = error != 0;
	child->over = child->gone;
	if (!list_is_linked(&child->closed)) {
		child->started(child->user, error, pidfd);
		return;
	}
	if (pidfd >= 0)
		close(pidfd);
	if (error)
		free_child(child);
	else
		spawner_signal(start, SIGKILL);
}

/* The descriptors and the block must last until the request is answered. */
static int copy_request(struct spawn_child *child, const struct start *what)
{
	int error = 0;

	child->start.fds[0] = child->start.fds[1] = child->start.fds[2] = child->start.fds[3] = -1;
	for (unsigned i = 0; i < SPAWNER_FDS && !error; i++) {
		if (what->fds[i] < 0)
			continue;
		child->start.fds[i] = fcntl(what->fds[i], F_DUPFD_CLOEXEC, 0);
		error = child->start.fds[i] < 0 ? -errno : 0;
	}
	child->block = g_memdup2(what->block, what->block_length);
	child->start.block = child->block;
	return error;
}

int spawn_child_start(struct spawn_child **out, struct spawner_channel *channel, struct loop *loop,
		      const struct start *what, const struct spawn_child_user *callbacks,
		      void *user)
{
	struct spawn_child *child = g_new0(struct spawn_child, 1);
	int error;

	child->start = *what;
	child->start.done = child_done;
	child->start.ended = child_ended;
	child->start.gone = child_gone;
	child->channel = channel;
	child->loop = loop;
	child->started = callbacks->started;
	child->ended = callbacks->ended;
	child->user = user;
	error = copy_request(child, what);
	if (error) {
		close_fds(child);
		g_free(child->block);
		g_free(child);
		return error;
	}
	*out = child;
	spawner_ask(channel, &child->start);
	return 0;
}

pid_t spawn_child_pid(const struct spawn_child *child)
{
	return child->start.pid;
}

void spawn_child_kill(struct spawn_child *child)
{
	if (!child->gone)
		spawner_signal(&child->start, SIGKILL);
}

static void child_too_slow(struct timer *timer)
{
	spawn_child_kill(container_of(timer, struct spawn_child, end_timer));
}

void spawn_child_ask_to_end(struct spawn_child *child, unsigned ms)
{
	if (child->over)
		return;
	spawner_signal(&child->start, SIGTERM);
	if (ms)
		loop_timer_start(child->loop, &child->end_timer, ms, child_too_slow);
}

void spawn_child_leave(struct spawn_child *child)
{
	child->ended = NULL;
}

void spawn_child_close(struct spawn_child *child, struct list *leaving)
{
	timer_stop(&child->end_timer);
	spawn_child_kill(child);
	list_prepend(leaving, &child->closed);
	if (child->gone)
		free_child(child);
}

void spawn_children_free(struct list *leaving)
{
	list_each (struct spawn_child, child, leaving, closed)
		free_child(child);
}
