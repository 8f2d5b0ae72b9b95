/* SPDX-License-Identifier: MIT */
/*
 * process-leaving.c - see process-leaving.h.
 *
 * The pidfd shows the end.  The process is not reaped before, so its number, and that of its group,
 * is its own until then.
 */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <glib.h>
#include <nabc-worker.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/list.h"
#include "base/timer.h"
#include "config/configuration.h"
#include "core/server.h"
#include "core/site.h"
#include "event/loop.h"
#include "gateway/gateway.h"
#include "gateway/process-leaving.h"
#include "log/log.h"
#include "spawn/group-guard.h"
#include "spawn/program-log.h"
#include "spawn/spawn-child.h"

struct process_leaving {
	struct process_parts parts;
	char *pool; /* a copy */
	struct gateway *gateway;
	struct loop_watch ended;
	struct timer late;
	struct list_node node;
};

static int pidfd_of(const struct process_parts *parts)
{
	return parts->backend ? NC_backend_pidfd(parts->backend) : parts->pidfd;
}

/* Its end, and that of its group; an own child is reaped, which waits only if it still runs. */
static void close_parts(const struct process_parts *parts, struct gateway *gateway)
{
	if (parts->child)
		spawn_child_close(parts->child, &gateway->leaving);
	else
		group_guard_remove(gateway->server->guard, parts->pid);
	if (parts->backend)
		(void)NC_backend_close(parts->backend);
	else if (parts->pidfd >= 0)
		close(parts->pidfd);
}

static void finish(struct process_leaving *leaving)
{
	struct gateway *gateway = leaving->gateway;

	list_remove(&leaving->node);
	timer_stop(&leaving->late);
	close_parts(&leaving->parts, gateway);
	g_free(leaving->pool);
	g_free(leaving);
}

static void kill_now(struct process_leaving *leaving)
{
	const struct process_parts *parts = &leaving->parts;

	log_warning("worker %s[%u] (pid %d) does not end: killing it", leaving->pool, parts->number,
		    parts->pid);
	if (parts->child)
		spawn_child_kill(parts->child);
	else
		kill(-parts->pid, SIGKILL);
}

static void leaving_is_late(struct timer *timer)
{
	kill_now(container_of(timer, struct process_leaving, late));
}

static void leaving_has_ended(struct loop_watch *watch)
{
	struct process_leaving *leaving = container_of(watch, struct process_leaving, ended);

	loop_watch_stop(leaving->gateway->main->loop, pidfd_of(&leaving->parts));
	finish(leaving);
}

static void ask_to_end(const struct process_parts *parts)
{
	if (parts->backend)
		(void)NC_backend_stop(parts->backend);
	else if (parts->child)
		spawn_child_ask_to_end(parts->child, 0);
}

void process_leaving_add(struct gateway *gateway, const struct process_parts *parts)
{
	struct loop *loop = gateway->main->loop;
	struct process_leaving *leaving;

	if (parts->ended || pidfd_of(parts) < 0) {
		close_parts(parts, gateway);
		return;
	}
	/* The place gets another process, which this one's end does not concern. */
	if (parts->child)
		spawn_child_leave(parts->child);
	leaving = g_new0(struct process_leaving, 1);
	leaving->parts = *parts;
	leaving->pool = g_strdup(parts->pool);
	leaving->gateway = gateway;
	list_prepend(&gateway->ending, &leaving->node);
	ask_to_end(parts);
	if (gateway->closing)
		return;
	leaving->ended.ready = leaving_has_ended;
	if (loop_watch_start(loop, &leaving->ended, pidfd_of(parts)) < 0) {
		kill_now(leaving);
		finish(leaving);
		return;
	}
	loop_timer_start(loop, &leaving->late, gateway->main->config_ref->config->limits.stop_ms,
			 leaving_is_late);
}

/* Returns how many still run. */
static unsigned finish_ended(struct gateway *gateway)
{
	unsigned running = 0;

	list_each (struct process_leaving, leaving, &gateway->ending, node) {
		struct pollfd state = {.fd = pidfd_of(&leaving->parts), .events = POLLIN};

		if (poll(&state, 1, 0) > 0)
			finish(leaving);
		else
			running++;
	}
	return running;
}

/*
 * Waits until one of the processes has ended, or has written what is logged; returns false if there is
 * no time left.
 */
static bool wait_for_one(struct gateway *gateway, unsigned running, uint64_t until_ns, int hurry)
{
	unsigned pipes = program_log_poll(gateway->program_log, NULL), count = 0;
	struct pollfd *polls = g_new0(struct pollfd, running + pipes + 1);
	uint64_t now_ns = clock_monotonic_ns();
	int result;

	list_each (struct process_leaving, leaving, &gateway->ending, node)
		polls[count++] = (struct pollfd){.fd = pidfd_of(&leaving->parts), .events = POLLIN};
	count += program_log_poll(gateway->program_log, polls + count);
	polls[count++] = (struct pollfd){.fd = hurry, .events = POLLIN};
	result = now_ns < until_ns ? poll(polls, count, (int)((until_ns - now_ns) / 1000000 + 1))
				   : 0;
	if (result > 0 && polls[count - 1].revents)
		result = 0;
	g_free(polls);
	/* A full pipe would delay the end of its program. */
	program_log_read(gateway->program_log, NULL);
	return result != 0;
}

void process_leaving_await(struct gateway *gateway, unsigned ms, int hurry)
{
	uint64_t until_ns = clock_monotonic_ns() + (uint64_t)ms * 1000000;
	unsigned running;

	list_each (struct process_leaving, leaving, &gateway->ending, node) {
		timer_stop(&leaving->late);
		if (leaving->ended.ready)
			loop_watch_stop(gateway->main->loop, pidfd_of(&leaving->parts));
		leaving->ended.ready = NULL;
	}
	while ((running = finish_ended(gateway)) > 0)
		if (!wait_for_one(gateway, running, until_ns, hurry))
			break;
	list_each (struct process_leaving, leaving, &gateway->ending, node)
		kill_now(leaving);
	list_each (struct process_leaving, leaving, &gateway->ending, node)
		finish(leaving);
}
