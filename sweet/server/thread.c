/* SPDX-License-Identifier: MIT */
/*
 * thread.c - see thread.h.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <glib.h>

#include "base/address.h"
#include "base/container.h"
#include "base/list.h"
#include "config/arch.h"
#include "config/configuration.h"
#include "conn/connection.h"
#include "core/site.h"
#include "event/loop.h"
#include "exchange/output.h"
#include "gateway/gateway.h"
#include "log/log.h"
#include "process/endpoint.h"
#include "server/thread.h"

#define DRAIN_STEP_MS 50

struct server_threads *server_threads_new(unsigned count)
{
	struct server_threads *runners = g_new0(struct server_threads, 1);

	runners->count = count;
	runners->all = g_new0(struct server_thread, count);
	for (unsigned i = 0; i < count; i++)
		runners->all[i].siblings = runners;
	return runners;
}

void server_threads_free(struct server_threads *runners)
{
	if (runners)
		g_free(runners->all);
	g_free(runners);
}

/* --- listeners -------------------------------------------------------------------- */

struct seat *server_thread_seat(struct server_thread *runner, struct endpoint *endpoint)
{
	struct seat *seat = g_new0(struct seat, 1);

	seat->runner = runner;
	seat->id = endpoint->id;
	seat->inherited = endpoint->inherited;
	seat->listener.tls = endpoint->wanted.tls;
	seat->listener.status_only = endpoint->status_only;
	seat->listener.fd = endpoint_take(endpoint, runner->thread.number);
	return seat;
}

/* The next client of each address may be accepted. */
static void thread_vacated(struct thread *thread)
{
	struct server_thread *runner = container_of(thread, struct server_thread, thread);

	list_each (struct seat, seat, &runner->seats, node)
		listener_next(&seat->listener);
}

int server_thread_listen(struct server_thread *runner, struct seat *seat)
{
	bool single = runner->thread.server->arch->single;

	runner->thread.vacated = single ? thread_vacated : NULL;
	list_prepend(&runner->seats, &seat->node);
	return listener_start(&seat->listener, &runner->thread, seat->listener.fd, single);
}

static void thread_remove_seat(struct listener *listener)
{
	struct seat *seat = container_of(listener, struct seat, listener);

	list_remove(&seat->node);
	g_free(seat);
}

static void retire(struct seat *seat, bool leave_queue)
{
	if (!seat->listener.retired)
		listener_retire(&seat->listener, leave_queue, thread_remove_seat);
}

void server_thread_close_seats(struct server_thread *runner)
{
	struct seat *seat;

	while ((seat = list_take(&runner->seats, struct seat, node))) {
		listener_close(&seat->listener);
		g_free(seat);
	}
}

/* --- running ------------------------------------------------------------------------- */

static void thread_drain_check(struct timer *timer);

/* Runs on the main thread. */
static void thread_ended(struct loop_task *task)
{
	struct server_thread *runner = container_of(task, struct server_thread, ended);
	struct server_thread *first = &runner->siblings->all[0];

	runner->siblings->running--;
	gateway_thread_ended(runner->thread.server->gateway, &runner->thread);
	if (first->drain_until_ms)
		thread_drain_check(&first->drain_check);
}

static void *thread_run(void *argument)
{
	struct server_thread *runner = argument;

	loop_run(runner->thread.loop);
	runner->ended.run = thread_ended;
	loop_post(runner->siblings->all[0].thread.loop, &runner->ended);
	return NULL;
}

int server_thread_start(struct server_thread *runner)
{
	int error = -pthread_create(&runner->handle, NULL, thread_run, runner);

	runner->threaded = !error;
	runner->siblings->running += !error;
	return error;
}

void server_threads_join(struct server_threads *runners)
{
	for (unsigned i = 1; i < runners->count; i++)
		if (runners->all[i].threaded)
			pthread_join(runners->all[i].handle, NULL);
}

/* --- changing ----------------------------------------------------------------------- */

static void thread_changed(struct loop_task *task)
{
	struct thread_change *change = container_of(task, struct thread_change, over);

	change->done(change);
}

static bool lists(const unsigned *ids, unsigned count, unsigned id)
{
	for (unsigned i = 0; i < count; i++)
		if (ids[i] == id)
			return true;
	return false;
}

static void thread_apply(struct loop_task *task)
{
	struct thread_change *change = container_of(task, struct thread_change, task);
	struct server_thread *runner = change->runner;
	struct thread *thread = &runner->thread;
	struct config_ref *before = thread->config_ref;

	thread->config_ref = config_ref_open(change->site);
	change->site = NULL;
	config_ref_release(before);
	output_forget_date(thread);
	for (unsigned i = 0; i < change->fresh_count; i++) {
		int error = 0;

		/* When the thread is about to end it accepts no more clients. */
		if (!thread->draining)
			error = server_thread_listen(runner, change->fresh[i]);
		else
			close(change->fresh[i]->listener.fd);
		if (error)
			log_error("thread %u does not listen on a new address: %s", thread->number,
				  g_strerror(-error));
		if (thread->draining)
			g_free(change->fresh[i]);
	}
	change->fresh_count = 0;
	list_each (struct seat, seat, &runner->seats, node) {
		listener_tune(&seat->listener);
		if (lists(change->gone, change->gone_count, seat->id)) {
			retire(seat, false);
			continue;
		}
		seat->listener.tls = lists(change->tls, change->tls_count, seat->id);
		seat->listener.status_only =
			lists(change->status_only, change->status_only_count, seat->id);
	}
	change->over.run = thread_changed;
	loop_post(runner->siblings->all[0].thread.loop, &change->over);
}

void thread_change(struct thread_change *change)
{
	change->task.run = thread_apply;
	loop_post(change->runner->thread.loop, &change->task);
}

/* --- ending --------------------------------------------------------------------------- */

static void thread_stop_now(struct loop_task *task)
{
	struct server_thread *runner = container_of(task, struct server_thread, stop);

	loop_stop(runner->thread.loop);
}

void server_threads_stop(struct server_threads *runners)
{
	for (unsigned i = 0; i < runners->count; i++) {
		struct server_thread *runner = &runners->all[i];

		runner->stop.run = thread_stop_now;
		if (runner->thread.loop)
			loop_post(runner->thread.loop, &runner->stop);
	}
}

static void thread_drain_check(struct timer *timer)
{
	struct server_thread *runner = container_of(timer, struct server_thread, drain_check);
	struct loop *loop = runner->thread.loop;

	/* The main thread handles the second signal, so it stays until the end. */
	bool needed = connection_any(&runner->thread) || !list_is_empty(&runner->seats) ||
		      (runner == &runner->siblings->all[0] && runner->siblings->running > 0);

	if (!needed || loop_now_ms(loop) >= runner->drain_until_ms) {
		loop_stop(loop);
		return;
	}
	loop_timer_start(loop, timer, DRAIN_STEP_MS, thread_drain_check);
}

static void thread_drain(struct loop_task *task)
{
	struct server_thread *runner = container_of(task, struct server_thread, drain);
	struct thread *thread = &runner->thread;

	connection_drain(thread);
	/* Clients in a queue are accepted; the response says that it is the last. */
	list_each (struct seat, seat, &runner->seats, node)
		retire(seat, seat->inherited || runner->leave_queues);
	runner->drain_until_ms =
		loop_now_ms(thread->loop) + thread->config_ref->config->limits.stop_ms;
	thread_drain_check(&runner->drain_check);
}

void server_threads_drain(struct server_threads *runners, bool leave_queues)
{
	for (unsigned i = 0; i < runners->count; i++) {
		struct server_thread *runner = &runners->all[i];

		runner->drain.run = thread_drain;
		runner->leave_queues = leave_queues;
		loop_post(runner->thread.loop, &runner->drain);
	}
}

/* --- living ------------------------------------------------------------------------------ */

static void thread_beat(struct loop_task *task)
{
	struct server_thread *runner = container_of(task, struct server_thread, beat);

	atomic_store(&runner->beating, false);
}

bool server_threads_alive(struct server_threads *runners)
{
	bool alive = true;

	for (unsigned i = 0; i < runners->count; i++)
		alive &= !atomic_load(&runners->all[i].beating);
	for (unsigned i = 0; alive && i < runners->count; i++) {
		struct server_thread *runner = &runners->all[i];

		atomic_store(&runner->beating, true);
		runner->beat.run = thread_beat;
		loop_post(runner->thread.loop, &runner->beat);
	}
	return alive;
}
