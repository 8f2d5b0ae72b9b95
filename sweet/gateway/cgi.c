/* SPDX-License-Identifier: MIT */
/*
 * cgi.c - pools of CGI programs (RFC 3875): one process for each request.
 *
 * A pool runs a limited number of programs, for all threads together.  A program counts until it
 * has exited, which may be after its response; its slot is then offered to the threads in turn.  If
 * a program cannot be started for lack of descriptors or memory, possibly no slot is ever released:
 * then the thread retries by a timer as long as calls are queued.
 */
#include <errno.h>
#include <glib.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "backend/protocol.h"
#include "backend/response-stream.h"
#include "base/container.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/timer.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/site.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "gateway/cgi-env.h"
#include "gateway/cgi-internal.h"
#include "gateway/gateway.h"
#include "log/log.h"
#include "spawn/cgi-run.h"
#include "spawn/spawn-table.h"

#define LOG_INTERVAL_MS 10000
#define RETRY_MS 50

static struct cgi_channel *cgi_channel_of(const struct backend_call *call)
{
	struct cgi_pool *all = call->pool->own;

	return &all->channels[call->transaction->thread->number];
}

/* --- room ------------------------------------------------------------------------------ */

static bool take_room(struct gateway_pool *pool)
{
	struct cgi_pool *all = pool->own;
	unsigned running = atomic_load(&all->running);

	while (running < pool->settings->processes)
		if (atomic_compare_exchange_weak(&all->running, &running, running + 1))
			return true;
	return false;
}

static void post_offer(struct cgi_channel *channel)
{
	loop_notify(channel->thread->loop, &channel->offer);
}

static bool is_awaited(const struct cgi_channel *channel)
{
	return atomic_load(&channel->pool->queues[channel->thread->number].count) > 0;
}

/* Offers a free slot to a thread with queued calls, other threads first. */
static void offer_room(struct cgi_channel *from)
{
	struct cgi_pool *all = from->pool->own;
	unsigned number = from->thread->number;

	for (unsigned i = 1; i <= all->count; i++) {
		struct cgi_channel *channel = &all->channels[(number + i) % all->count];

		if (!is_awaited(channel))
			continue;
		post_offer(channel);
		return;
	}
}

static void cgi_offered(struct loop_task *task)
{
	struct cgi_channel *channel = container_of(task, struct cgi_channel, offer.task);
	struct cgi_pool *all = channel->pool->own;

	loop_notice_begin(&channel->offer);
	/* The count of queued calls before the look for a slot: pairs with cgi_over(). */
	atomic_thread_fence(memory_order_seq_cst);
	if (call_queue_room(channel->pool, channel->thread)) {
		post_offer(channel); /* other threads are next when all calls had their turn */
		return;
	}
	/* If calls are still queued no program could be started: see cgi_try_again(). */
	if (!is_awaited(channel) && atomic_load(&all->running) < channel->pool->settings->processes)
		offer_room(channel);
}

static void cgi_try_again(struct timer *timer)
{
	struct cgi_channel *channel = container_of(timer, struct cgi_channel, again);
	struct cgi_pool *all = channel->pool->own;

	call_queue_room(channel->pool, channel->thread);
	/* The limit is not reached: offer the free slots to other threads that wait, too. */
	if (atomic_load(&all->running) < channel->pool->settings->processes)
		offer_room(channel);
}

static void cannot_start(struct cgi_channel *channel, int error)
{
	struct loop *loop = channel->thread->loop;
	struct cgi_pool *all = channel->pool->own;
	uint64_t now = loop_now_ms(loop);

	if (!channel->logged_ms || now - channel->logged_ms > LOG_INTERVAL_MS) {
		log_warning("pool %s: cannot start a program: %s", channel->pool->settings->name,
			    strerror(error));
		channel->logged_ms = now;
	}
	atomic_fetch_sub(&all->running, 1);
	loop_timer_start(loop, &channel->again, RETRY_MS, cgi_try_again);
}

static void leave(struct cgi_channel *channel)
{
	struct cgi_pool *all = channel->pool->own;

	channel->ending = false;
	if (atomic_fetch_sub_explicit(&all->leaving, 1, memory_order_acq_rel) == 1)
		loop_post(channel->pool->gateway->main->loop, &all->ended);
}

static void cgi_over(struct cgi_run *run)
{
	struct cgi_channel *channel = run->home;
	struct cgi_pool *all = channel->pool->own;

	atomic_fetch_sub(&all->running, 1);
	offer_room(channel);
}

static void cgi_freed(struct cgi_run *run)
{
	struct cgi_channel *channel = run->home;

	list_remove(&run->node);
	if (channel->ending && list_is_empty(&channel->runs))
		leave(channel);
}

/* --- a call's life ------------------------------------------------------------------------ */

/* The program has read the whole piece. */
static void cgi_drained(struct cgi_run *run)
{
	backend_call_next_body(run->user);
}

/* At the end of the output the stream releases itself, with its length. */
static void release(struct cgi_call *own)
{
	if (!own->at_end)
		response_stream_release(&own->stream);
}

static void cgi_stopped_reading(struct cgi_run *run)
{
	struct backend_call *call = run->user;

	/* The program no longer waits for the client. */
	if (call->state == CALL_IN_FLIGHT)
		backend_call_start_timer(call);
	release(cgi_call_of(call));
}

static const struct cgi_run_owner run_owner = {.readable = cgi_read,
					       .refused = cgi_refused,
					       .drained = cgi_drained,
					       .stopped_reading = cgi_stopped_reading,
					       .silent = cgi_silent,
					       .settled = cgi_settled,
					       .over = cgi_over,
					       .freed = cgi_freed};

static bool cgi_submit(struct backend_call *call, const char *block, size_t length)
{
	struct cgi_call *own = cgi_call_of(call);
	struct transaction *transaction = call->transaction;
	struct cgi_channel *channel = cgi_channel_of(call);
	struct cgi_pool *all = call->pool->own;
	struct server *server = call->pool->server;
	struct NC_range piece = backend_call_piece(call);
	struct cgi_body body = {piece.id, piece.length, transaction->upload.more};
	char **argv = call->pool->settings->argv;
	struct cgi_program program = {all->program, argv ? argv[0] : NULL};
	struct cgi_run *run;

	if (!take_room(call->pool)) {
		/*
		 * A slot may have been released before this call is queued; later releases see the
		 * queue.
		 */
		if (!is_awaited(channel))
			post_offer(channel);
		return false;
	}
	run = cgi_run_start(channel->thread->loop,
			    spawn_table_channel(server->spawn_table, channel->thread->number),
			    program, (struct slice){block, length}, body, all->cache_socket,
			    &run_owner);
	if (!run) {
		cannot_start(channel, errno);
		return false;
	}
	response_stream_begin(&own->stream, call, &cgi_source);
	own->run = run;
	run->user = call;
	run->home = channel;
	list_prepend(&channel->runs, &run->node);
	return true;
}

/* Passes a further piece of the body; returns false if the program reads no more of it. */
static bool cgi_give_body(struct backend_call *call)
{
	struct cgi_call *own = cgi_call_of(call);
	struct NC_range piece = backend_call_piece(call);
	bool more = call->transaction->upload.more;

	if (!own->run || !cgi_run_body(own->run, piece.id, piece.length, more))
		return false;
	if (!more)
		release(own);
	return true;
}

static void cgi_body_lost(struct backend_call *call)
{
	struct cgi_run *run = cgi_call_of(call)->run;

	/* Without a run the response is complete, and nobody reads the body. */
	if (run)
		cgi_break_off(run, "the request body cannot be read back from disk");
}

static void cgi_too_late(struct backend_call *call)
{
	char text[512];

	log_warning("%s: took too long to answer: ending it", cgi_name(call, text, sizeof(text)));
	cgi_detach(call);
	backend_call_fail(call, 504, "The program took too long to answer.");
}

static void cgi_gone(struct backend_call *call)
{
	struct cgi_run *run = cgi_call_of(call)->run;

	if (run && run->reading) {
		run->unwanted = true; /* checked after the current buffer is processed */
		return;
	}
	cgi_detach(call);
	backend_call_fail(call, 502, NULL);
}

static void cgi_finish(struct backend_call *call)
{
	if (call->stream)
		response_stream_clear(&cgi_call_of(call)->stream);
	cgi_detach(call);
}

/* --- pools ---------------------------------------------------------------------------------- */

static void end_runs(struct cgi_channel *channel)
{
	list_each (struct cgi_run, run, &channel->runs, node)
		cgi_run_end(run);
}

static void cgi_end_channel(struct loop_task *task)
{
	struct cgi_channel *channel = container_of(task, struct cgi_channel, end);

	timer_stop(&channel->again);
	end_runs(channel);
	channel->ending = true;
	if (list_is_empty(&channel->runs))
		leave(channel);
}

static void cgi_pool_ended(struct loop_task *task)
{
	struct cgi_pool *all = container_of(task, struct cgi_pool, ended);

	all->pool->ended(all->pool);
}

static int cgi_open_pool(struct gateway_pool *pool)
{
	struct server *server = pool->server;
	const char *socket = server->per_thread[0]->config_ref->config->cache_socket;
	int program = spawn_table_find(server->spawn_table, pool->settings);
	struct cgi_pool *all = g_malloc0(sizeof(*all) + server->threads * sizeof(all->channels[0]));

	pool->own = all;
	if (program < 0) {
		log_error("pool %s: a reload cannot add or change a CGI program: "
			  "restart the server",
			  pool->settings->name);
		return -EPERM;
	}
	all->program = (unsigned)program;
	all->pool = pool;
	all->ended.run = cgi_pool_ended;
	/* Programs run in other directories, so the path must be absolute. */
	all->cache_socket = socket ? g_canonicalize_filename(socket, NULL) : NULL;
	all->count = server->threads;
	for (unsigned i = 0; i < all->count; i++) {
		struct cgi_channel *channel = &all->channels[i];

		channel->pool = pool;
		channel->thread = server->per_thread[i];
		channel->offer.task.run = cgi_offered;
		channel->end.run = cgi_end_channel;
	}
	return 0;
}

static void cgi_end_pool(struct gateway_pool *pool)
{
	struct cgi_pool *all = pool->own;

	atomic_store_explicit(&all->leaving, all->count, memory_order_release);
	for (unsigned i = 0; i < all->count; i++)
		loop_post(all->channels[i].thread->loop, &all->channels[i].end);
}

static void cgi_close_pool(struct gateway_pool *pool)
{
	struct cgi_pool *all = pool->own;

	for (unsigned i = 0; i < all->count; i++) {
		struct cgi_channel *channel = &all->channels[i];
		struct cgi_run *run;

		timer_stop(&channel->again);
		/* The spawner ends the programs. */
		while ((run = list_first(&channel->runs, struct cgi_run, node))) {
			struct backend_call *call = run->user;

			if (call) {
				cgi_call_of(call)->run = NULL;
				backend_call_fail(call, 502, NULL);
			}
			cgi_run_free(run);
		}
	}
	g_free(all->cache_socket);
	g_free(all);
	pool->own = NULL;
}

const struct backend_protocol cgi_protocol = {
	.redirects = true,
	.wants_length = true,
	.describe = cgi_env_write,
	.open = cgi_open_pool,
	.end = cgi_end_pool,
	.close = cgi_close_pool,
	.submit = cgi_submit,
	.body = cgi_give_body,
	.body_lost = cgi_body_lost,
	.too_late = cgi_too_late,
	.gone = cgi_gone,
	.finish = cgi_finish,
};
