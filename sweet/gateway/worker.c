/* SPDX-License-Identifier: MIT */
/*
 * worker.c - see worker.h.  Runs on the calls' thread; processes start and end on the main thread.
 */
#include <assert.h>
#include <errno.h>
#include <nabc-worker.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <glib.h>
#include <sys/types.h>
#include <unistd.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "backend/protocol.h"
#include "base/budget.h"
#include "base/container.h"
#include "base/list.h"
#include "base/timer.h"
#include "config/pool-config.h"
#include "core/page-memory.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/data-path.h"
#include "event/loop.h"
#include "gateway/cgi-env.h"
#include "gateway/gateway-thread.h"
#include "gateway/gateway.h"
#include "gateway/pool-process.h"
#include "gateway/worker-channel.h"
#include "gateway/worker.h"
#include "http/body.h"
#include "spawn/spawner.h"

/* The worker of a process of the pool: the protocol's part of it. */
struct worker_process {
	NC_backend *backend; /* of the main thread; channels copy it while the worker runs */
	struct worker_channel channels[];
};

static struct worker_process *worker_of(const struct pool_process *process)
{
	return process->own;
}

const struct worker_channel *worker_channels(const struct pool_process *process)
{
	return worker_of(process)->channels;
}

/* --- calls ------------------------------------------------------------------------------ */

static unsigned load_of(const struct pool_process *process)
{
	/* See pool_process_leaves(). */
	return atomic_load_explicit(&process->load, memory_order_seq_cst);
}

/*
 * Smaller is better: slow processes last, then by the requests of all threads, then by those of
 * this thread, then by number, so that no two are equal.
 */
static uint64_t cost_of(const struct worker_channel *channel, uint64_t now_ms)
{
	const struct pool_process *process = channel->process;

	return (uint64_t)pool_process_is_slow(process, now_ms) << 63 |
	       (uint64_t)load_of(process) << 24 | (uint64_t)channel->in_flight << 8 |
	       process->number;
}

/*
 * Whether the process has memory for the page of one more request.  If not, asks the threads to
 * release memory of slow clients; call_queue_room_everywhere() follows then.
 */
static bool has_room(struct gateway_pool *pool, unsigned number)
{
	const struct server *server = pool->server;
	struct page_memory *pages = &pool->pages[number];
	const struct pool_process *process = &pool->processes[number];

	if (page_memory_fits(pages, load_of(process)))
		return true;
	if (!atomic_exchange(&pages->has_waiters, true))
		for (unsigned i = 0; i < server->threads; i++)
			thread_shed(server->per_thread[i]);
	/* Memory may have been released before `has_waiters` was set. */
	return page_memory_fits(pages, load_of(process));
}

/*
 * Returns the channel of the pool whose process has the fewest requests, of all threads, among
 * those that cost at least `*least`; sets `*least` to its cost.  Returns NULL if there is none.  A
 * worker processes one request at a time, so each new request waits behind the current one.
 */
static struct worker_channel *choose(struct gateway_pool *pool, const struct thread *thread,
				     uint64_t *least)
{
	uint64_t now_ms = loop_now_ms(thread->loop), found = UINT64_MAX;
	struct worker_channel *best = NULL;

	for (unsigned i = 0; i < pool->count; i++) {
		struct worker_channel *channel =
			&worker_of(&pool->processes[i])->channels[thread->number];
		uint64_t cost;

		if (!channel->backend || channel->retiring ||
		    atomic_load_explicit(&pool->processes[i].doomed, memory_order_relaxed) ||
		    channel->in_flight >= pool->settings->in_flight || !has_room(pool, i))
			continue;
		cost = cost_of(channel, now_ms);
		if (cost >= *least && cost < found) {
			best = channel;
			found = cost;
		}
	}
	*least = found;
	return best;
}

static void watch_calls(struct worker_channel *channel);

static bool worker_submit(struct backend_call *call, const char *block, size_t length)
{
	struct gateway_pool *pool = call->pool;
	unsigned tries = call->moves ? 1 : pool->count;
	uint64_t least = 0;

	/*
	 * The worker's queue may be full of withdrawn requests: try the next one.  A moving call is
	 * queued instead: the next choice may be the process that it comes from.
	 */
	for (; tries--; least++) {
		struct worker_channel *channel = choose(pool, call->transaction->thread, &least);

		if (!channel)
			return false;
		if (worker_channel_submit(channel, call, block, length)) {
			watch_calls(channel);
			return true;
		}
	}
	return false;
}

/* --- calls that wait behind a long one ---------------------------------------------------- */

static void set_behind(struct worker_channel *channel, bool behind)
{
	if (channel->behind == behind)
		return;
	channel->behind = behind;
	channel->process->pool->queues[channel->thread->number].behind += behind ? 1u : -1u;
}

static void worker_look(struct timer *timer)
{
	struct worker_channel *channel = container_of(timer, struct worker_channel, look);
	struct thread *thread = channel->thread;
	bool waits = worker_channel_waiting(channel) > 0;

	if (waits)
		watch_calls(channel);
	set_behind(channel,
		   waits && pool_process_is_slow(channel->process, loop_now_ms(thread->loop)));
	if (channel->behind)
		call_queue_room(channel->process->pool, thread);
}

/*
 * Checks whether calls wait in the channel, first when its process may be slow, then as long as
 * they wait: another thread may see that a process becomes idle.
 */
static void watch_calls(struct worker_channel *channel)
{
	if (channel->process->pool->count > 1 && !timer_is_running(&channel->look))
		loop_timer_start(channel->thread->loop, &channel->look, POOL_PROCESS_SLOW_MS + 1,
				 worker_look);
}

/*
 * Whether another process would begin sooner with a call that waits in this channel.  A process
 * that is not slow ends at least one request in POOL_PROCESS_SLOW_MS; this channel's process must
 * have stalled for longer than the other needs for all its requests.  So no call moves back and
 * forth between processes whose requests all take long.  The last call of a process waits behind no
 * other; a process that is stopped or still starts needs it to count as busy.
 */
static bool is_better_elsewhere(const struct worker_channel *channel)
{
	uint64_t now_ms = loop_now_ms(channel->thread->loop), least = 0;
	const struct worker_channel *best = choose(channel->process->pool, channel->thread, &least);

	return load_of(channel->process) > 1 && best && best != channel &&
	       !pool_process_is_slow(best->process, now_ms) &&
	       pool_process_stalled_ms(channel->process, now_ms) >
		       (uint64_t)POOL_PROCESS_SLOW_MS * (load_of(best->process) + 1);
}

/* Moves one call: that increases the load of the other process. */
static void worker_relieve(struct gateway_pool *pool, struct thread *thread)
{
	for (unsigned i = 0; i < pool->count; i++) {
		struct worker_channel *channel =
			&worker_of(&pool->processes[i])->channels[thread->number];

		if (!channel->behind || !is_better_elsewhere(channel))
			continue;
		if (worker_channel_withdraw(channel))
			return;
		set_behind(channel, false);
	}
}

static bool worker_is_unavailable(struct gateway_pool *pool)
{
	return pool_processes_fail(pool);
}

static void release_channel(struct worker_channel *channel);

static void worker_rung(struct loop_watch *watch)
{
	(void)worker_channel_reap(container_of(watch, struct worker_channel, doorbell));
}

/* Wakes workers once a turn, then looks for records; true: there were some. */
static bool worker_before_sleep(struct loop_hook *hook)
{
	struct gateway_thread *all = container_of(hook, struct gateway_thread, hook);
	bool work = false;

	list_each (struct worker_channel, channel, &all->channels, node) {
		work |= worker_channel_settle(channel);
		if (channel->retiring && worker_channel_is_idle(channel))
			release_channel(channel);
	}
	return work;
}

void gateway_thread_open(struct thread *thread)
{
	thread->gateway = g_new0(struct gateway_thread, 1);
	thread->gateway->hook.before_sleep = worker_before_sleep;
	loop_hook_add(thread->loop, &thread->gateway->hook);
}

void gateway_thread_close(struct thread *thread)
{
	g_clear_pointer(&thread->gateway, g_free);
}

/* --- workers that come and go, on each thread ------------------------------------------ */

static void worker_channel_up(struct loop_task *task)
{
	struct worker_channel *channel = container_of(task, struct worker_channel, up);
	struct thread *thread = channel->thread;

	worker_channel_reset(channel, worker_of(channel->process)->backend);
	channel->doorbell.ready = worker_rung;
	if (loop_watch_start(thread->loop, &channel->doorbell,
			     NC_backend_fd(channel->backend, thread->number)) < 0) {
		channel->backend = NULL;
		pool_process_kill(channel->process, "cannot be watched: out of memory");
		return;
	}
	list_prepend(&thread->gateway->channels, &channel->node);
	call_queue_room(channel->process->pool, thread);
}

/* Removes the channel from its thread; its calls have ended or will fail. */
static void detach(struct worker_channel *channel)
{
	struct thread *thread = channel->thread;

	loop_watch_stop(thread->loop, NC_backend_fd(channel->backend, thread->number));
	list_remove(&channel->node);
	timer_stop(&channel->look);
	set_behind(channel, false);
	channel->backend = NULL;
}

static void release_channel(struct worker_channel *channel)
{
	detach(channel);
	channel->retiring = false;
	pool_process_left(channel->process);
}

static void worker_channel_retire(struct loop_task *task)
{
	struct worker_channel *channel = container_of(task, struct worker_channel, retire);

	/* When the last part is released, the channel may be freed. */
	if (!channel->backend) {
		pool_process_left(channel->process);
	} else if (worker_channel_is_idle(channel)) {
		release_channel(channel);
	} else {
		channel->retiring = true;
		worker_channel_drain(channel);
	}
}

static void worker_channel_down(struct loop_task *task)
{
	struct worker_channel *channel = container_of(task, struct worker_channel, down);
	bool owed = channel->retiring;

	if (channel->backend) {
		/* Its records are still valid, but it gets no new calls. */
		channel->retiring = true;
		worker_channel_reap_last(channel);
		worker_channel_take_back(channel);
		detach(channel);
		channel->retiring = false;
		worker_channel_abandon(channel);
		call_queue_room(channel->process->pool, channel->thread);
	}
	if (owed)
		pool_process_left(channel->process);
	pool_process_left(channel->process);
}

/* --- the same on the main thread --------------------------------------------------------- */

/* Has the spawner start a worker; the spawner adds the pool's own variables to environment. */
static int worker_start_other(void *context, int socket, char *const *environment, pid_t *pid,
			      int *pidfd)
{
	struct pool_process *process = context;
	int program = pool_processes_program(process->pool), error;
	struct start what = {.program = (unsigned)program, .fds = {-1, -1, -1, socket}};
	GString *block;

	if (program < 0) {
		errno = -program;
		return -1;
	}
	block = g_string_new(NULL);
	for (unsigned i = 0; environment[i]; i++)
		g_string_append_len(block, environment[i], (gssize)strlen(environment[i]) + 1);
	what.block = block->str;
	what.block_length = block->len;
	/* worker_started() follows. */
	*pid = 0;
	*pidfd = -1;
	error = pool_process_run(process, &what);
	g_string_free(block, TRUE);
	errno = -error;
	return error ? -1 : 0;
}

static int worker_started(struct pool_process *process, pid_t pid, int pidfd)
{
	return NC_backend_started(worker_of(process)->backend, pid, pidfd) < 0 ? -errno : 0;
}

static int worker_start(struct pool_process *process, pid_t *pid, int *pidfd)
{
	const struct pool_config *settings = process->pool->settings;
	struct server *server = process->pool->server;
	struct worker_process *worker = worker_of(process);
	int output = -1, error;
	struct NC_backend_options options =
		NC_BACKEND_OPTIONS_INIT(.argv = settings->argv,
					.environment = settings->environment,
					.channels = server->threads, .memory = settings->memory,
					.flags = server->path->backend_flags);

	if (pool_config_is_other(settings)) {
		options.environment = NULL;
		options.start = worker_start_other;
		options.context = process;
	} else {
		options.output = output = pool_process_output(process);
		options.flags |= NC_BACKEND_OUTPUT;
		if (output < 0)
			return output;
	}
	worker->backend = NC_backend_start(server->cache, &options);
	error = worker->backend ? 0 : -errno;
	if (output >= 0)
		close(output);
	if (error)
		return error;
	if (!options.start) {
		*pid = NC_backend_pid(worker->backend);
		*pidfd = NC_backend_pidfd(worker->backend);
	}
	return 0;
}

/* Posts a task of each channel to its thread. */
static void post_tasks(struct pool_process *process, size_t task,
		       void (*run)(struct loop_task *task))
{
	struct worker_process *worker = worker_of(process);

	for (unsigned i = 0; i < process->parts; i++) {
		struct loop_task *at = (void *)((char *)&worker->channels[i] + task);

		at->run = run;
		loop_post(worker->channels[i].thread->loop, at);
	}
}

static void worker_up(struct pool_process *process)
{
	post_tasks(process, offsetof(struct worker_channel, up), worker_channel_up);
}

static void worker_retire(struct pool_process *process)
{
	post_tasks(process, offsetof(struct worker_channel, retire), worker_channel_retire);
}

static void worker_down(struct pool_process *process)
{
	post_tasks(process, offsetof(struct worker_channel, down), worker_channel_down);
}

static NC_backend *worker_release(struct pool_process *process)
{
	struct worker_process *worker = worker_of(process);
	NC_backend *backend = worker->backend;

	worker->backend = NULL;
	return backend;
}

static int worker_open_pool(struct gateway_pool *pool)
{
	static const struct pool_process_kind kind = {.start = worker_start,
						      .started = worker_started,
						      .up = worker_up,
						      .retire = worker_retire,
						      .down = worker_down,
						      .release = worker_release};
	struct server *server = pool->server;
	bool good = true;

	pool->count = pool->settings->processes;
	pool->processes = g_new0(struct pool_process, pool->count);
	pool->ahead = g_new0(struct budget, pool->count);
	pool->pages = g_new0(struct page_memory, pool->count);
	for (unsigned i = 0; i < pool->count; i++) {
		struct worker_process *worker =
			g_malloc0(sizeof(*worker) + server->threads * sizeof(worker->channels[0]));

		pool->processes[i].own = worker;
		/* The worker needs the rest for new responses. */
		pool->ahead[i].most = pool->settings->memory / 2;
		page_memory_init(&pool->pages[i], pool->settings->memory);
		for (unsigned k = 0; k < server->threads; k++) {
			worker->channels[k].process = &pool->processes[i];
			worker->channels[k].thread = server->per_thread[k];
			good &= worker_channel_grow(&worker->channels[k]);
		}
	}
	if (!good)
		return -ENOMEM;
	return pool_processes_open(pool, &kind, pool->count, server->threads);
}

static void worker_close_pool(struct gateway_pool *pool)
{
	for (unsigned i = 0; i < pool->count; i++)
		for (unsigned k = 0; k < pool->server->threads; k++) {
			struct worker_channel *channel =
				&worker_of(&pool->processes[i])->channels[k];

			timer_stop(&channel->look);
			worker_channel_abandon(channel);
			worker_channel_free(channel);
		}
	pool_processes_close(pool);
	for (unsigned i = 0; i < pool->count; i++)
		g_free(pool->processes[i].own);
	g_free(pool->processes);
	pool->processes = NULL;
	pool->count = 0;
}

const struct backend_protocol worker_protocol = {
	.takes_back = true,
	.describe = cgi_env_write,
	.open = worker_open_pool,
	.end = pool_processes_end,
	.close = worker_close_pool,
	.renew = pool_processes_renew,
	.submit = worker_submit,
	.relieve = worker_relieve,
	.is_unavailable = worker_is_unavailable,
	.body = worker_channel_body,
	.too_late = worker_channel_too_late,
	.gone = worker_channel_gone,
	.finish = worker_channel_finish,
};
