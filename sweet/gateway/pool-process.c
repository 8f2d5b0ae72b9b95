/* SPDX-License-Identifier: MIT */
/*
 * pool-process.c - see pool-process.h.
 *
 * The pidfd of an own child shows its end; the spawner reports the end of the others.  Then every
 * part of the server has to release the process.  After the last one has, the process is closed,
 * and the next one starts, after a back-off that grows with quick failures.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "backend/pool.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/counter.h"
#include "base/timer.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "gateway/gateway.h"
#include "gateway/pool-process-end.h"
#include "gateway/pool-process.h"
#include "gateway/process-leaving.h"
#include "log/log.h"
#include "spawn/group-guard.h"
#include "spawn/program-log.h"
#include "spawn/spawn-child.h"
#include "spawn/spawn-table.h"
#include "spawn/spawner.h"

#define BACKOFF_FIRST 0 /* ms: the first restart is immediate */
#define BACKOFF_STEP 200
#define BACKOFF_MAX 10000
#define BACKOFF_FAILS (BACKOFF_STEP * 4) /* calls do not wait for a place with such a back-off */
#define RETIRING_MS 10000		 /* of a process from SIGTERM to SIGKILL, and more */

static struct loop *loop_of(const struct pool_process *process)
{
	return process->pool->gateway->main->loop;
}

static const char *name_of(const struct pool_process *process)
{
	return process->pool->settings->name;
}

static bool is_closing(const struct pool_process *process)
{
	return process->pool->gateway->closing;
}

/* --- coming ----------------------------------------------------------------------- */

static void process_ended(struct pool_process *process, int status);
static void process_own_ended(struct loop_watch *watch);
static void process_other_started(void *user, int error, int pidfd);
static void process_other_ended(void *user, int status);
static void retire(struct pool_process *process);
static void next_turn(struct gateway_pool *pool);
static void end_if_down(struct gateway_pool *pool);

int pool_processes_program(const struct gateway_pool *pool)
{
	int program = spawn_table_find(pool->server->spawn_table, pool->settings);

	if (program >= 0)
		return program;
	log_error("pool %s: a reload cannot change which programs run as another user, or "
		  "how: restart the server",
		  pool->settings->name);
	return -EPERM;
}

int pool_process_output(const struct pool_process *process)
{
	return program_log_pipe(process->pool->gateway->program_log, name_of(process));
}

int pool_process_run(struct pool_process *process, const struct start *what)
{
	static const struct spawn_child_user callbacks = {.started = process_other_started,
							  .ended = process_other_ended};
	struct spawn_table *table = process->pool->server->spawn_table;
	/* Channel 0 belongs to the main thread. */
	struct spawner_channel *channel = spawn_table_channel(table, 0);
	struct start with_output = *what;
	int output = pool_process_output(process), error;

	if (output < 0)
		return output;
	with_output.fds[STDERR_FILENO] = output;
	error = spawn_child_start(&process->child, channel, loop_of(process), &with_output,
				  &callbacks, process);
	close(output);
	return error;
}

static void drop_child(struct pool_process *process)
{
	if (process->child)
		spawn_child_close(process->child, &process->pool->gateway->leaving);
	process->child = NULL;
}

/* ended: the process has ended; otherwise it ends soon, and the next one need not wait for that. */
static void close_process(struct pool_process *process, bool ended)
{
	struct process_parts parts = {
		.pool = name_of(process),
		.number = process->number,
		.pid = process->started_pid,
		.pidfd = process->pidfd,
		.backend = process->kind->release ? process->kind->release(process) : NULL,
		.child = process->child,
		.ended = ended};

	process->child = NULL;
	process->pidfd = -1;
	atomic_store_explicit(&process->pid, 0, memory_order_relaxed);
	process_leaving_add(process->pool->gateway, &parts);
}

static int watch(struct pool_process *process)
{
	process->ended.ready = process_own_ended;
	return process->child ? 0
			      : loop_watch_start(loop_of(process), &process->ended, process->pidfd);
}

static void unwatch(struct pool_process *process)
{
	if (!process->child)
		loop_watch_stop(loop_of(process), process->pidfd);
}

/* Sets whether calls need not wait for this place; the pool counts such places. */
static void set_failing(struct pool_process *process, bool failing)
{
	struct gateway_pool *pool = process->pool;
	unsigned before;

	if (process->failing == failing)
		return;
	process->failing = failing;
	before =
		atomic_fetch_add_explicit(&pool->failing, failing ? 1u : -1u, memory_order_relaxed);
	/* Each new start counts as good for a moment; the first ones decide whether the server starts. */
	if (!failing || before + 1 < pool->count || pool->none_left || !pool->gateway->settled)
		return;
	pool->none_left = true;
	log_warning("pool %s: no worker left: its requests get status 503; all of its processes "
		    "end soon "
		    "after their start, or cannot be started",
		    pool->settings->name);
}

/* The process runs: all threads may use it. */
static int go_up(struct pool_process *process, pid_t pid)
{
	int error;

	process->started_pid = pid;
	if (!process->child)
		group_guard_add(process->pool->server->guard, pid);
	error = watch(process);
	if (error) {
		close_process(process, false);
		return error;
	}
	process->state = POOL_PROCESS_UP;
	process->planned = false;
	atomic_store_explicit(&process->served, 0, memory_order_relaxed);
	/*
	 * A thread that sees the pid also sees when the process was requested.  Pairs with the
	 * acquire in fastcgi-spawn.c.
	 */
	atomic_store_explicit(&process->pid, (int)pid, memory_order_release);
	counter_add(&process->starts, 1);
	process->started_ms = loop_now_ms(loop_of(process));
	/* A restarted process counts as good until it fails again. */
	set_failing(process, false);
	process->kind->up(process);
	if (process->pool->ending)
		retire(process);
	else if (process->pool->turn.at == process->number + 1)
		next_turn(process->pool);
	return 0;
}

/* Returns 0 if it runs, or will: process_other_started(). */
static int start(struct pool_process *process)
{
	pid_t pid = 0;
	int error;

	atomic_store_explicit(&process->doomed, false, memory_order_relaxed);
	atomic_store_explicit(&process->asked_to_go, false, memory_order_relaxed);
	atomic_store_explicit(&process->useful, false, memory_order_relaxed);
	atomic_store_explicit(&process->asked, clock_boottime_ns(), memory_order_relaxed);
	process->pidfd = -1;
	process->state = POOL_PROCESS_DOWN;
	error = process->kind->start(process, &pid, &process->pidfd);
	if (error) {
		drop_child(process);
		return error;
	}
	if (pid)
		return go_up(process, pid);
	process->state = POOL_PROCESS_STARTING;
	return 0;
}

static void process_restart(struct timer *timer);

static void cannot_start(struct pool_process *process, int error)
{
	struct gateway *gateway = process->pool->gateway;

	process->state = POOL_PROCESS_DOWN;
	/* Set before the message: a reader of the log may send a request at once. */
	set_failing(process, true);
	process->backoff = BACKOFF_MAX;
	if (!gateway->settled) {
		/* The server does not start, for the first reason. */
		if (!gateway->why)
			gateway->why = g_strdup_printf("pool \"%s\": cannot start: %s",
						       name_of(process), strerror(-error));
		return;
	}
	log_error("worker %s[%u]: cannot start: %s", name_of(process), process->number,
		  strerror(-error));
	loop_timer_start(loop_of(process), &process->restart, BACKOFF_MAX, process_restart);
	/* It does not delay the other replacements of the round. */
	if (process->pool->turn.at == process->number + 1)
		next_turn(process->pool);
}

static void process_restart(struct timer *timer)
{
	struct pool_process *process = container_of(timer, struct pool_process, restart);
	int error;

	if (is_closing(process))
		return;
	error = start(process);
	if (error)
		cannot_start(process, error);
}

static void process_other_started(void *user, int error, int pidfd)
{
	struct pool_process *process = user;

	process->pidfd = pidfd;
	if (error)
		close_process(process, true);
	else if (process->kind->started)
		error = -process->kind->started(process, spawn_child_pid(process->child), pidfd);
	/* Nothing can be done with the process. */
	if (error && process->child) {
		if (pidfd >= 0)
			close(pidfd);
		process->pidfd = -1;
		close_process(process, true);
	}
	if (!error)
		error = -go_up(process, spawn_child_pid(process->child));
	if (!error)
		return;
	if (!process->pool->ending) {
		cannot_start(process, -error);
		return;
	}
	process->state = POOL_PROCESS_DOWN;
	end_if_down(process->pool);
}

/* --- going -------------------------------------------------------------------------- */

static void end_if_down(struct gateway_pool *pool)
{
	for (unsigned i = 0; i < pool->count; i++)
		if (pool->processes[i].state != POOL_PROCESS_DOWN)
			return;
	pool->ended(pool);
}

/* Such a one would start again and again, and serve no request. */
static bool is_useless(const struct pool_process *process)
{
	return atomic_load_explicit(&process->asked_to_go, memory_order_relaxed) &&
	       !atomic_load_explicit(&process->useful, memory_order_relaxed);
}

/* Runs on the main thread when no part uses the process any more. */
static void process_gone(struct loop_task *task)
{
	struct pool_process *process = container_of(task, struct pool_process, gone);
	uint64_t lived = loop_now_ms(loop_of(process)) - process->started_ms;

	if (process->state == POOL_PROCESS_RETIRING)
		unwatch(process);
	close_process(process, process->state == POOL_PROCESS_LEAVING);
	process->state = POOL_PROCESS_DOWN;
	if (is_closing(process))
		return;
	if (process->pool->ending) {
		end_if_down(process->pool);
		return;
	}
	if ((process->planned && !is_useless(process)) || lived >= POOL_PROCESS_LIVED_MS) {
		process->backoff = BACKOFF_FIRST;
		process->pool->none_left = false;
	} else {
		process->backoff = process->backoff ? process->backoff * 2 : BACKOFF_STEP;
		if (process->backoff > BACKOFF_MAX)
			process->backoff = BACKOFF_MAX;
		set_failing(process, process->backoff >= BACKOFF_FAILS);
	}
	log_notice("worker %s[%u]: starting again%s", name_of(process), process->number,
		   process->backoff ? " after a pause" : "");
	loop_timer_start(loop_of(process), &process->restart, process->backoff, process_restart);
	/* A failing process does not delay the other replacements of the round. */
	if (process->backoff && process->pool->turn.at == process->number + 1)
		next_turn(process->pool);
}

void pool_process_left(struct pool_process *process)
{
	if (atomic_fetch_sub_explicit(&process->leaving, 1, memory_order_acq_rel) == 1)
		loop_post(loop_of(process), &process->gone);
}

static void process_ended(struct pool_process *process, int status)
{
	if (process->state != POOL_PROCESS_UP && process->state != POOL_PROCESS_RETIRING)
		return;
	process->state = POOL_PROCESS_LEAVING;
	pool_process_log_end(process, status);
	atomic_store_explicit(&process->pid, 0, memory_order_relaxed);
	unwatch(process);
	if (atomic_fetch_add_explicit(&process->leaving, process->parts, memory_order_acq_rel) ||
	    !process->planned)
		process->kind->down(process);
	else /* all parts have just released it, and process_gone() is posted */
		atomic_store_explicit(&process->leaving, 0, memory_order_relaxed);
}

static void process_own_ended(struct loop_watch *watch)
{
	struct pool_process *process = container_of(watch, struct pool_process, ended);

	process_ended(process, pool_process_status(process->pidfd));
}

static void process_other_ended(void *user, int status)
{
	process_ended(user, status);
}

static void retire(struct pool_process *process)
{
	process->state = POOL_PROCESS_RETIRING;
	process->planned = true;
	atomic_store_explicit(&process->pool->retired_ms, loop_now_ms(loop_of(process)),
			      memory_order_release);
	atomic_store_explicit(&process->leaving, process->parts, memory_order_release);
	process->kind->retire(process);
}

/* --- replacing ---------------------------------------------------------------------- */

/* Replaces the next running process of the round; a process that is down restarts by itself. */
static void next_turn(struct gateway_pool *pool)
{
	struct pool_process_turn *turn = &pool->turn;

	while (turn->at < pool->count) {
		struct pool_process *process = &pool->processes[turn->at++];

		if (process->state == POOL_PROCESS_UP) {
			retire(process);
			return;
		}
	}
	turn->at = 0;
	if (turn->again) {
		turn->again = false;
		next_turn(pool);
	}
}

void pool_processes_renew(struct gateway_pool *pool)
{
	if (pool->turn.at)
		pool->turn.again = true;
	else
		next_turn(pool);
}

static void process_used_up(struct loop_task *task)
{
	struct pool_process *process = container_of(task, struct pool_process, used_up);

	if (process->state == POOL_PROCESS_UP)
		retire(process);
}

void pool_process_served(struct pool_process *process)
{
	unsigned most = process->pool->settings->max_requests;

	/* Mostly it is set: all threads read the line, and none writes to it. */
	if (!atomic_load_explicit(&process->useful, memory_order_relaxed))
		atomic_store_explicit(&process->useful, true, memory_order_relaxed);
	/* Exactly one thread reaches this count. */
	if (most &&
	    atomic_fetch_add_explicit(&process->served, 1, memory_order_relaxed) + 1 == most)
		loop_post(loop_of(process), &process->used_up);
}

static void process_replace(struct loop_task *task)
{
	struct pool_process *process = container_of(task, struct pool_process, replace);

	if (process->state != POOL_PROCESS_UP)
		return;
	log_notice("worker %s[%u] (pid %d) asks to be replaced", name_of(process), process->number,
		   (int)process->started_pid);
	retire(process);
}

void pool_process_replace(struct pool_process *process)
{
	/* A worker can ask each thread. */
	if (!atomic_exchange_explicit(&process->asked_to_go, true, memory_order_relaxed))
		loop_post(loop_of(process), &process->replace);
}

/* --- all of them -------------------------------------------------------------------- */

int pool_processes_open(struct gateway_pool *pool, const struct pool_process_kind *kind,
			unsigned count, unsigned parts)
{
	for (unsigned i = 0; i < count; i++) {
		struct pool_process *process = &pool->processes[i];
		int error;

		process->pool = pool;
		process->kind = kind;
		process->number = i;
		process->parts = parts;
		process->gone.run = process_gone;
		process->used_up.run = process_used_up;
		process->replace.run = process_replace;
		error = start(process);
		if (error)
			return error;
	}
	return 0;
}

void pool_processes_end(struct gateway_pool *pool)
{
	bool any = false;

	pool->ending = true;
	for (unsigned i = 0; i < pool->count; i++) {
		struct pool_process *process = &pool->processes[i];

		timer_stop(&process->restart);
		if (process->state == POOL_PROCESS_UP)
			retire(process);
		/* It may be held; its start is reported, and then its end. */
		if (process->state == POOL_PROCESS_STARTING)
			spawn_child_kill(process->child);
		any |= process->state != POOL_PROCESS_DOWN;
	}
	if (!any)
		pool->ended(pool);
}

void pool_processes_close(struct gateway_pool *pool)
{
	for (unsigned i = 0; i < pool->count; i++) {
		struct pool_process *process = &pool->processes[i];

		timer_stop(&process->restart);
		if (process->state == POOL_PROCESS_DOWN)
			continue;
		if (process->state == POOL_PROCESS_UP || process->state == POOL_PROCESS_RETIRING)
			unwatch(process);
		close_process(process, process->state == POOL_PROCESS_LEAVING ||
					       process->state == POOL_PROCESS_STARTING);
		process->state = POOL_PROCESS_DOWN;
	}
}

bool pool_processes_retired(const struct gateway_pool *pool, uint64_t now_ms)
{
	uint64_t retired_ms = atomic_load_explicit(&pool->retired_ms, memory_order_acquire);

	/* The clock of the main thread may be ahead of the caller's. */
	return retired_ms && now_ms < retired_ms + RETIRING_MS;
}

bool pool_processes_fail(struct gateway_pool *pool)
{
	return atomic_load_explicit(&pool->failing, memory_order_relaxed) >= pool->count;
}
