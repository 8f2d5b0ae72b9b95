/* SPDX-License-Identifier: MIT */
/*
 * gw-child.c - see gw-child.h.
 *
 * It lasts until it is both closed and told to have ended, since the starter's
 * channel has it until then; at the server's end nobody is told any more.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>

#include <glib.h>

#include "spawn/gw-child.h"

#define END_MS 5000 /* for a process to end when it was asked to */
#define STARTS 3    /* of one that was lost with its starter */

struct gw_child {
	struct start start; /* must be first */
	struct loop *loop;
	struct timer patience;
	void (*ended)(void *user, int status);
	void *user;
	struct gw_child *next, **link; /* of those that leave; NULL: it is not closed */
	bool over;
};

static void free_child(struct gw_child *child)
{
	*child->link = child->next;
	if (child->next)
		child->next->link = child->link;
	g_free(child);
}

static void ended(struct start *start, int status)
{
	struct gw_child *child = (struct gw_child *)start;

	child->over = true;
	if (child->link)
		free_child(child);
	else
		child->ended(child->user, status);
}

int gw_child_start(struct gw_child **out, struct starter_channel *channel, struct loop *loop,
		   const struct start *what, void (*told)(void *user, int status), void *user,
		   int *pidfd)
{
	struct gw_child *child = g_new0(struct gw_child, 1);
	int error, starts = 0;

	child->start = *what;
	child->start.ended = ended;
	child->loop = loop;
	child->ended = told;
	child->user = user;
	do
		error = starter_run(channel, &child->start, pidfd);
	while (error == -EOWNERDEAD && ++starts < STARTS);
	if (error)
		g_free(child);
	else
		*out = child;
	return error;
}

pid_t gw_child_pid(const struct gw_child *child)
{
	return child->start.pid;
}

void gw_child_kill(struct gw_child *child)
{
	if (!child->over)
		starter_signal(&child->start, SIGKILL);
}

static void too_slow(struct timer *timer)
{
	gw_child_kill((struct gw_child *)((char *)timer - offsetof(struct gw_child, patience)));
}

void gw_child_ask_to_end(struct gw_child *child)
{
	if (child->over)
		return;
	starter_signal(&child->start, SIGTERM);
	loop_timer_start(child->loop, &child->patience, END_MS, too_slow);
}

void gw_child_close(struct gw_child *child, struct gw_child **leaving)
{
	timer_stop(&child->patience);
	gw_child_kill(child);
	child->next = *leaving;
	if (child->next)
		child->next->link = &child->next;
	child->link = leaving;
	*leaving = child;
	if (child->over)
		free_child(child);
}

void gw_children_free(struct gw_child **leaving)
{
	while (*leaving)
		free_child(*leaving);
}
