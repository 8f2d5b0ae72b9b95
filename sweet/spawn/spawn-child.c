/* SPDX-License-Identifier: MIT */
/*
 * spawn-child.c - see spawn-child.h.
 *
 * A child is freed when it was closed and the end of its group was reported, because
 * the spawner's channel refers to it until then.  At the end of the server, no ends
 * are reported any more.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

#include "base/timer.h"
#include "event/loop.h"
#include "spawn/spawn-child.h"
#include "spawn/spawner.h"

#define STARTS 3 /* attempts, if the spawner dies during a start */

struct spawn_child {
	struct start start; /* must be first */
	struct loop *loop;
	struct timer end_timer;
	void (*ended)(void *user, int status);
	void *user;
	struct spawn_child *next, **link; /* in the list of closed children; NULL: not closed */
	bool over, gone;		  /* it has ended; so has its group */
};

static void free_child(struct spawn_child *child)
{
	*child->link = child->next;
	if (child->next)
		child->next->link = child->link;
	g_free(child);
}

static void ended(struct start *start, int status)
{
	struct spawn_child *child = (struct spawn_child *)start;

	child->over = true;
	if (!child->link && child->ended)
		child->ended(child->user, status);
}

static void gone(struct start *start)
{
	struct spawn_child *child = (struct spawn_child *)start;

	child->gone = true;
	if (child->link)
		free_child(child);
}

int spawn_child_start(struct spawn_child **out, struct spawner_channel *channel, struct loop *loop,
		      const struct start *what, void (*on_end)(void *user, int status), void *user,
		      int *pidfd)
{
	struct spawn_child *child = g_new0(struct spawn_child, 1);
	int error, starts = 0;

	child->start = *what;
	child->start.ended = ended;
	child->start.gone = gone;
	child->loop = loop;
	child->ended = on_end;
	child->user = user;
	do
		error = spawner_run(channel, &child->start, pidfd);
	while (error == -EOWNERDEAD && ++starts < STARTS);
	if (error)
		g_free(child);
	else
		*out = child;
	return error;
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

static void too_slow(struct timer *timer)
{
	spawn_child_kill(
		(struct spawn_child *)((char *)timer - offsetof(struct spawn_child, end_timer)));
}

void spawn_child_ask_to_end(struct spawn_child *child, unsigned ms)
{
	if (child->over)
		return;
	spawner_signal(&child->start, SIGTERM);
	if (ms)
		loop_timer_start(child->loop, &child->end_timer, ms, too_slow);
}

void spawn_child_leave(struct spawn_child *child)
{
	child->ended = NULL;
}

void spawn_child_close(struct spawn_child *child, struct spawn_child **leaving)
{
	timer_stop(&child->end_timer);
	spawn_child_kill(child);
	child->next = *leaving;
	if (child->next)
		child->next->link = &child->next;
	child->link = leaving;
	*leaving = child;
	if (child->gone)
		free_child(child);
}

void spawn_children_free(struct spawn_child **leaving)
{
	while (*leaving)
		free_child(*leaving);
}
